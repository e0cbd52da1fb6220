import type { models as english } from "../en/models";

/** Welches Modell antwortet, und was man davor wissen möchte. */
export const models: typeof english = {
  choose: "Modell: {{model}}",
  default: "Voreinstellung",
  context: "{{tokens}} Token Kontext",
  capability: {
    tools: "Werkzeuge",
    vision: "Bilder",
    thinking: "Nachdenken",
  },
  price: "{{amounts}} je Million Token",
  input: "{{amount}} hinein",
  output: "{{amount}} heraus",
  unpriced: "Preis nicht bekannt",
  seat: "kostet Zeit auf dem Modellserver, kein Geld",
  seatSeconds: "kostet Zeit auf dem Modellserver: {{span}} je Aufruf",
  out: "Kann gerade nicht antworten. Was Sie ihm senden, wartet.",
  gone: "„{{model}}“ wird nicht mehr angeboten. Stattdessen antwortet {{instead}}.",
  missing:
    "Die Liste der Modelle ließ sich nicht laden. Statt „{{model}}“ antwortet das voreingestellte Modell.",
};
