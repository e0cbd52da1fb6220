/** What is said while a part of the service does not work. */
export const runtime = {
  title: "The service cannot answer right now",
  partTitle: "Part of the service does not work right now",
  operatorActs: "Whoever runs the service has to see to it.",
  kept: "Your chats and drafts are safe.",
  sent: {
    waits: "What you send is answered as soon as it works again.",
    waits_a_while: "What you send waits for a while, and can be tried again later.",
  },
  server: "Your connection to “{{server}}” does not work: {{reason}}.",
  reconnect: "Reconnect",
  reconnectTo: "Reconnect to {{server}}",
  stillDead: "It was tried again. The connection to “{{server}}” still does not work.",
  look: "Pools and workers",
  restart: "Restart the service",
  restarting: "The restart has been asked for. Once the service works again, this goes away.",
  restartFailed: "The restart did not begin.",
  restartRefused: "What the deployment offers for it did not take it on: restart the service there.",
  reason: {
    database_unreachable: "Its database cannot be reached.",
    no_workers: "Nothing is running that could work on answers.",
    worker_lost: "What works on answers has stopped.",
    ollama_unreachable: "A language model cannot be reached.",
    model_missing: "A language model is not installed.",
    model_failing: "A language model fails again and again.",
    other: "A part of it does not work.",
  },
  todo: {
    database_unreachable: "The database cannot be reached: see to PostgreSQL, and to the way there.",
    no_workers: "No worker is running: start one (stoa worker).",
    worker_lost: "The last worker died and its lease ran out: start one (stoa worker), and see its log.",
    ollama_unreachable:
      "A model server does not answer: start Ollama, or put its address right (STOA_OLLAMA_URL, or its pool’s).",
    model_missing: "A model server does not have its model: pull it there (ollama pull).",
    model_failing: "A model server fails again and again: see its log.",
    other: "A part of the service does not work: see the logs.",
  },
};
