import type { StreamMode } from "@langchain/langgraph-sdk";

/** What `useStream` asks for here, for the runs that are started beside it. */
export const STREAM_MODES: StreamMode[] = ["values", "messages-tuple", "custom"];
