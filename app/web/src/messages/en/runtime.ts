/** What is said while a part of the service does not work. */
export const runtime = {
  title: "The service cannot answer right now",
  operatorActs: "Whoever runs the service has to see to it.",
  kept: "Your chats and drafts are safe. What you send waits for its turn.",
  server: "Your connection to “{{server}}” does not work.",
  look: "Pools and workers",
  reason: {
    database_unreachable: "Its database cannot be reached.",
    no_workers: "Nothing is running that could work on answers.",
    worker_lost: "What works on answers has stopped.",
    ollama_unreachable: "The language model cannot be reached.",
    model_missing: "The language model is not installed.",
    model_failing: "The language model fails again and again.",
    other: "A part of it does not work.",
  },
  todo: {
    database_unreachable: "The database cannot be reached: see to PostgreSQL, and to the way there.",
    no_workers: "No worker is running: start one (stoa worker).",
    worker_lost: "The last worker died and its lease ran out: start one (stoa worker), and see its log.",
    ollama_unreachable:
      "The model server does not answer: start Ollama, or put its address right (STOA_OLLAMA_URL).",
    model_missing: "The model server does not have the model: pull it there (ollama pull).",
    model_failing: "The model server fails again and again: see its log.",
    other: "A part of the service does not work: see the logs.",
  },
};
