import { EventSourceParserStream } from "eventsource-parser/stream";

/** One event of a stream. */
export interface LiveEvent {
  name: string;
  data: unknown;
}

/**
 * Read a stream of events to its end.
 *
 * `onSign` is called at each sign of life, heartbeats included.
 */
export async function readEvents(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  onEvent: (event: LiveEvent) => void,
  onSign: () => void,
): Promise<void> {
  const reader = body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream({ onComment: onSign }))
    .getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onSign();
    onEvent({ name: value.event ?? "message", data: JSON.parse(value.data) });
  }
}
