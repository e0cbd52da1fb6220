/** Which model answers, and what is worth knowing before one is chosen. */
export const models = {
  choose: "Model: {{model}}",
  default: "Default",
  context: "{{tokens}} tokens of context",
  capability: {
    tools: "Tools",
    vision: "Images",
    thinking: "Thinking",
  },
  price: "{{amounts}} per million tokens",
  input: "{{amount}} in",
  output: "{{amount}} out",
  unpriced: "price not known",
  seat: "costs time on the model server, no money",
  seatSeconds: "costs time on the model server: {{span}} for a call",
  out: "Cannot answer right now. What you send to it waits.",
  gone: "“{{model}}” is not offered any more. {{instead}} answers instead.",
  missing: "The list of models could not be loaded. The default model answers instead of “{{model}}”.",
};
