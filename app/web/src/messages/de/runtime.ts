import type { runtime as english } from "../en/runtime";

/** Was gesagt wird, solange ein Teil des Dienstes nicht arbeitet. */
export const runtime: typeof english = {
  title: "Der Dienst kann gerade nicht antworten",
  operatorActs: "Wer den Dienst betreibt, muss danach sehen.",
  kept: "Ihre Chats und Entwürfe sind sicher. Was Sie senden, wartet, bis es an der Reihe ist.",
  server: "Ihre Verbindung zu „{{server}}“ funktioniert nicht.",
  look: "Modelle und Worker",
  reason: {
    database_unreachable: "Seine Datenbank ist nicht erreichbar.",
    no_workers: "Es läuft nichts, das an Antworten arbeiten könnte.",
    worker_lost: "Was an Antworten arbeitet, ist stehen geblieben.",
    ollama_unreachable: "Das Sprachmodell ist nicht erreichbar.",
    model_missing: "Das Sprachmodell ist nicht installiert.",
    model_failing: "Das Sprachmodell versagt immer wieder.",
    other: "Ein Teil davon arbeitet nicht.",
  },
  todo: {
    database_unreachable:
      "Die Datenbank ist nicht erreichbar: Sehen Sie nach PostgreSQL und dem Weg dorthin.",
    no_workers: "Es läuft kein Worker: Starten Sie einen (stoa worker).",
    worker_lost:
      "Der letzte Worker ist gestorben und sein Lease abgelaufen: Starten Sie einen (stoa worker), und sehen Sie in sein Log.",
    ollama_unreachable:
      "Der Modellserver antwortet nicht: Starten Sie Ollama, oder berichtigen Sie seine Adresse (STOA_OLLAMA_URL).",
    model_missing: "Der Modellserver hat das Modell nicht: Laden Sie es dort (ollama pull).",
    model_failing: "Der Modellserver versagt immer wieder: Sehen Sie in sein Log.",
    other: "Ein Teil des Dienstes arbeitet nicht: Sehen Sie in die Logs.",
  },
};
