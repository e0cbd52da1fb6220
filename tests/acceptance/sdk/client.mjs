// Uses LangGraph's JavaScript client as a program would, and prints what it saw as JSON.
// Arguments: the folder whose node_modules has the client, two addresses of one service, a token.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, first, second, authorization] = process.argv.slice(2);
const require = createRequire(join(folder, "package.json"));
const { Client } = await import(pathToFileURL(require.resolve("@langchain/langgraph-sdk")));

const defaultHeaders = { Authorization: authorization };
const client = new Client({ apiUrl: first, apiKey: null, defaultHeaders });
const elsewhere = new Client({ apiUrl: second, apiKey: null, defaultHeaders });
const input = { messages: [{ role: "user", content: "Hello there" }] };

async function collected(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

const thread = await client.threads.create({ metadata: { about: "bees" } });
let run;
const streamed = await collected(
  client.runs.stream(thread.thread_id, "agent", {
    input,
    streamMode: ["values", "messages-tuple"],
    streamResumable: true,
    onRunCreated: (created) => {
      run = created;
    },
  }),
);
const joined = await collected(
  elsewhere.runs.joinStream(thread.thread_id, run.run_id, { lastEventId: "-1" }),
);
const rest = await collected(
  elsewhere.runs.joinStream(thread.thread_id, run.run_id, { lastEventId: streamed[0].id }),
);
const waited = await client.runs.wait(thread.thread_id, "agent", { input });
const background = await client.runs.create(thread.thread_id, "agent", { input });
const final = await client.runs.join(thread.thread_id, background.run_id);
const asking = await client.threads.create();
const asked = await client.runs.wait(asking.thread_id, "asking", {
  input: { question: "May I?" },
});
const answered = await collected(
  elsewhere.runs.stream(asking.thread_id, "asking", {
    command: { resume: { [asked.__interrupt__[0].id]: "yes" } },
  }),
);
const asker = await client.runs.list(asking.thread_id);
const missing = await client.threads.get(crypto.randomUUID()).catch((error) => error.status);

const runs = await client.runs.list(thread.thread_id);
const state = await client.threads.getState(thread.thread_id);
const history = await client.threads.getHistory(thread.thread_id, { limit: 2 });
const changed = await client.threads.updateState(thread.thread_id, {
  values: { messages: [{ role: "user", content: "by hand" }] },
  asNode: "model",
});
const afterChange = await client.threads.getState(thread.thread_id);
// The runs of this thread have ended: cancelling them changes nothing.
await client.runs.cancel(thread.thread_id, run.run_id);
await client.runs.cancel(thread.thread_id, run.run_id, true, "rollback");
await client.runs.cancelMany({ threadId: thread.thread_id, runIds: [run.run_id] });
await client.runs.cancelMany({ status: "all", action: "rollback" });
const afterCancel = await client.runs.get(thread.thread_id, run.run_id);

await client.store.putItem(["notes", "travel"], "lisbon", { text: "trams" }, { ttl: 60 });
const item = await elsewhere.store.getItem(["notes", "travel"], "lisbon", { refreshTtl: false });
const noItem = await client.store.getItem(["notes"], "lisbon");
const items = await client.store.searchItems(["notes"], { query: "tram", filter: {} });
const namespaces = await client.store.listNamespaces({ prefix: ["notes"], maxDepth: 1 });
await client.store.deleteItem(["notes", "travel"], "lisbon");
const deleted = await client.store.getItem(["notes", "travel"], "lisbon");

console.log(
  JSON.stringify({
    thread,
    run,
    streamed,
    joined,
    rest,
    waited,
    final,
    asked,
    answered,
    asker,
    runs,
    state,
    history,
    found: await client.threads.search({ metadata: { about: "bees" } }),
    missing,
    changed,
    afterChange,
    afterCancel,
    store: { item, noItem, items, namespaces, deleted },
  }),
);
