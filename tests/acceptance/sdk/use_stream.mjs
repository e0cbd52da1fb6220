// Uses the React hook of LangGraph's JavaScript client as a page does: a graph asks, the page answers.
// Prints as JSON what the hook showed. Arguments: the folder whose node_modules has the client, the
// service's address, a token.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, apiUrl, authorization] = process.argv.slice(2);
const require = createRequire(join(folder, "package.json"));
const { JSDOM } = require("jsdom");
const dom = new JSDOM("<main></main>", { url: "http://localhost/" });
Object.assign(globalThis, { window: dom.window, document: dom.window.document });

const { createElement } = require("react");
const { createRoot } = require("react-dom/client");
const { useStream } = await import(
  pathToFileURL(require.resolve("@langchain/langgraph-sdk/react"))
);

let shown;
let runs = [];
let changed = () => {};

function Page() {
  shown = useStream({
    apiUrl,
    apiKey: null,
    assistantId: "asking",
    defaultHeaders: { Authorization: authorization },
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

const root = createRoot(document.querySelector("main"));
root.render(createElement(Page));
await until(() => shown !== undefined);

await shown.submit({ question: "May I?" });
await until(() => !shown.isLoading && shown.interrupt !== undefined);
const asked = shown.interrupt;

await shown.submit(undefined, { command: { resume: "yes" } });
await until(() => !shown.isLoading && shown.values.answer !== undefined);

console.log(
  JSON.stringify({ asked, runs, values: shown.values, interrupt: shown.interrupt ?? null }),
);
root.unmount();
process.exit(0);
