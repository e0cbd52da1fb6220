import type { mentions as english } from "../en/mentions";

/** Worauf eine Nachricht verweisen kann: beim Tippen gefunden, und dort gezeigt, wo es gesendet wurde. */
export const mentions: typeof english = {
  list: "Was sich erwähnen lässt",
  hint: "Tippen Sie weiter, um Chats, Erinnerungen, Werkzeuge und Modelle zu finden.",
  searching: "Wird gesucht …",
  nothing: "Nichts gefunden für „{{query}}“.",
  found_one: "{{count}} gefunden. Die Pfeiltasten wählen aus, die Eingabetaste erwähnt es.",
  found_other: "{{count}} gefunden. Die Pfeiltasten wählen aus, die Eingabetaste erwähnt eines.",
  failed: "Die Suche hat nicht geklappt. {{reason}}",
  chosen: "In dieser Nachricht erwähnt",
  remove: "„{{title}}“ aus der Nachricht nehmen",
  sent: "Erwähnt: {{kinds}}",
  tooMany: "Eine Nachricht erwähnt höchstens {{most}} Dinge. Nehmen Sie welche heraus.",
  name: "„{{name}}“",
  notFound_one: "{{names}} gibt es nicht mehr. Nehmen Sie es heraus, oder wählen Sie etwas anderes.",
  notFound_other: "{{names}} gibt es nicht mehr. Nehmen Sie sie heraus, oder wählen Sie andere.",
  from: "von {{provider}}",
  kind: {
    thread: "Chats",
    memory: "Erinnerungen",
    resource: "Dateien und Daten von Werkzeugservern",
    prompt: "Vorlagen von Werkzeugservern",
    tool: "Werkzeuge",
    model: "Modelle",
  },
  one: {
    thread: "Chat",
    memory: "Erinnerung",
    resource: "Ressource",
    prompt: "Vorlage",
    tool: "Werkzeug",
    model: "Modell",
  },
  status: {
    unauthorized:
      "{{kind}}: Sie müssen sich zuerst bei einem Server anmelden, auf der Seite der Werkzeuge und Verbindungen.",
    rate_limited: "{{kind}}: gerade zu oft durchsucht. Versuchen Sie es gleich noch einmal.",
    timeout: "{{kind}}: keine Antwort in der Zeit.",
    upstream_error: "{{kind}}: ließ sich nicht durchsuchen.",
  },
};
