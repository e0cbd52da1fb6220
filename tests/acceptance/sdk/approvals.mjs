// Uses the React hook of LangGraph's JavaScript client as a chat page does whose agent asks before it
// acts: two calls at once, one edited and one rejected; then another one, approved after the page was
// loaded anew. Prints as JSON what the hook showed. Arguments: the folder whose node_modules has the
// client, the service's address, a token.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, apiUrl, authorization] = process.argv.slice(2);
const require = createRequire(join(folder, "package.json"));
const { JSDOM } = require("jsdom");
const dom = new JSDOM("<main></main>", { url: "http://localhost/" });
Object.assign(globalThis, { window: dom.window, document: dom.window.document });

const { createElement, useState } = require("react");
const { createRoot } = require("react-dom/client");
const { useStream } = await import(
  pathToFileURL(require.resolve("@langchain/langgraph-sdk/react"))
);

let shown;
let threadId;
let runs = [];
let changed = () => {};

function Page({ thread }) {
  const [current, setCurrent] = useState(thread);
  shown = useStream({
    apiUrl,
    apiKey: null,
    assistantId: "agent",
    threadId: current,
    fetchStateHistory: true,
    defaultHeaders: { Authorization: authorization },
    onThreadId: (id) => {
      threadId = id;
      setCurrent(id);
    },
    onCreated: (run) => runs.push(run.run_id),
    onError: (error) => {
      console.error(error);
      process.exit(1);
    },
  });
  // Looked at, so that the hook asks for these modes.
  void [shown.values, shown.messages];
  changed();
  return null;
}

async function until(condition) {
  while (!condition()) {
    await new Promise((resolve) => {
      changed = resolve;
    });
  }
}

function open(thread) {
  const root = createRoot(document.querySelector("main"));
  root.render(createElement(Page, { thread }));
  return root;
}

const asksSomething = () => !shown.isLoading && shown.interrupt?.value !== undefined;
const hasEnded = () => !shown.isLoading && shown.interrupt === undefined;
const write = (text) => shown.submit({ messages: [{ type: "human", content: text }] });
const decide = (decisions) => shown.submit({}, { command: { resume: { decisions } } });

// As agent-chat-ui takes it: the names of fields in the interrupt's value are those of Python.
function asked() {
  const { value } = shown.interrupt;
  return { requests: value.action_requests, configs: value.review_configs };
}

let root = open(null);
await until(() => shown !== undefined);
await write("Note two things");
await until(asksSomething);
const two = asked();
const history = shown.history.map((state) => state.tasks.flatMap((task) => task.interrupts));
const [first] = two.requests;
await decide([
  { type: "edit", edited_action: { name: first.name, args: { ...first.args, text: "better" } } },
  { type: "reject", message: "Not this one" },
]);
await until(hasEnded);
const decided = shown.messages;

await write("Note one more");
await until(asksSomething);
root.unmount();
shown = undefined;
root = open(threadId); // who comes back later finds it
await until(() => shown !== undefined && asksSomething());
const again = asked();
await decide(again.requests.map(() => ({ type: "approve" })));
await until(hasEnded);

console.log(
  JSON.stringify({ threadId, two, history, decided, again, runs, messages: shown.messages }),
);
root.unmount();
process.exit(0);
