import type { runtime as english } from "../en/runtime";

/** Was gesagt wird, solange ein Teil des Dienstes nicht arbeitet. */
export const runtime: typeof english = {
  title: "Der Dienst kann gerade nicht antworten",
  partTitle: "Ein Teil des Dienstes arbeitet gerade nicht",
  operatorActs: "Wer den Dienst betreibt, muss danach sehen.",
  kept: "Ihre Chats und Entwürfe sind sicher.",
  sent: {
    waits: "Was Sie senden, wird beantwortet, sobald es wieder geht.",
    waits_a_while:
      "Was Sie senden, wartet eine Weile und lässt sich später noch einmal versuchen.",
  },
  server: "Ihre Verbindung zum Server „{{server}}“ funktioniert nicht: {{reason}}.",
  reconnect: "Neu verbinden",
  reconnectTo: "Neu verbinden mit {{server}}",
  stillDead:
    "Es wurde noch einmal versucht. Die Verbindung zu „{{server}}“ funktioniert weiterhin nicht.",
  look: "Modelle und Worker",
  restart: "Dienst neu starten",
  restarting: "Der Neustart ist angefordert. Sobald der Dienst wieder arbeitet, verschwindet dies.",
  restartFailed: "Der Neustart hat nicht begonnen.",
  restartRefused: "Was dafür eingerichtet ist, hat ihn nicht angenommen: Starten Sie den Dienst dort neu.",
  reason: {
    database_unreachable: "Seine Datenbank ist nicht erreichbar.",
    no_workers: "Es läuft nichts, das an Antworten arbeiten könnte.",
    worker_lost: "Was an Antworten arbeitet, ist stehen geblieben.",
    ollama_unreachable: "Ein Sprachmodell ist nicht erreichbar.",
    model_missing: "Ein Sprachmodell ist nicht installiert.",
    model_failing: "Ein Sprachmodell versagt immer wieder.",
    other: "Ein Teil davon arbeitet nicht.",
  },
  todo: {
    database_unreachable:
      "Die Datenbank ist nicht erreichbar: Sehen Sie nach PostgreSQL und dem Weg dorthin.",
    no_workers: "Es läuft kein Worker: Starten Sie einen (stoa worker).",
    worker_lost:
      "Der letzte Worker ist gestorben und sein Lease abgelaufen: Starten Sie einen (stoa worker), und sehen Sie in sein Log.",
    ollama_unreachable:
      "Ein Modellserver antwortet nicht: Starten Sie Ollama, oder berichtigen Sie seine Adresse (STOA_OLLAMA_URL oder die seines Pools).",
    model_missing: "Ein Modellserver hat sein Modell nicht: Laden Sie es dort (ollama pull).",
    model_failing: "Ein Modellserver versagt immer wieder: Sehen Sie in sein Log.",
    other: "Ein Teil des Dienstes arbeitet nicht: Sehen Sie in die Logs.",
  },
};
