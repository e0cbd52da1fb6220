import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import {
  FIRST_PAUSE_MS,
  HIDDEN_MS,
  LINGER_MS,
  LiveEvents,
  LONGEST_PAUSE_MS,
  pauseBefore,
  SILENCE_MS,
} from "./LiveEvents";

/** A service that streams what a test says. */
class Service {
  readonly opened: { signal: AbortSignal; stream: ReadableStreamDefaultController }[] = [];
  answer: Response | null = null;

  connect = (signal: AbortSignal): Promise<Response> => {
    let stream!: ReadableStreamDefaultController;
    const body = new ReadableStream({
      start: (controller) => {
        stream = controller;
      },
    });
    signal.addEventListener("abort", () => {
      try {
        stream.error(new DOMException("aborted", "AbortError"));
      } catch {
        // It has ended already.
      }
    });
    this.opened.push({ signal, stream });
    return Promise.resolve(this.answer ?? new Response(body));
  };

  get last() {
    const last = this.opened.at(-1);
    if (last === undefined) throw new Error("Nobody has asked.");
    return last;
  }

  say(text: string): void {
    this.last.stream.enqueue(new TextEncoder().encode(text));
  }
}

function look(visibility: DocumentVisibilityState): void {
  vi.spyOn(document, "visibilityState", "get").mockReturnValue(visibility);
  document.dispatchEvent(new Event("visibilitychange"));
}

/** Let what is under way come as far as it comes without time. */
const settled = () => vi.advanceTimersByTimeAsync(0);

describe("the stream of events", () => {
  let service: Service;
  let heard: unknown[];
  let live: LiveEvents;

  /** Let time pass on a connection that is alive. */
  async function beating(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 5_000) {
      if (!service.last.signal.aborted) service.say(": heartbeat\n\n");
      await vi.advanceTimersByTimeAsync(Math.min(left, 5_000));
    }
  }

  beforeEach(() => {
    vi.useFakeTimers();
    service = new Service();
    heard = [];
    live = new LiveEvents(service.connect, (event) => heard.push(event));
  });

  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it("is one for all who want it, and is closed a while after the last has left", async () => {
    const first = live.hold();
    const second = live.hold();
    await settled();
    expect(service.opened).toHaveLength(1);
    first();
    second();
    await vi.advanceTimersByTimeAsync(LINGER_MS - 1);
    expect(service.last.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(service.last.signal.aborted).toBe(true);
    expect(live.state).toBe("closed");
    await vi.advanceTimersByTimeAsync(LONGEST_PAUSE_MS);
    expect(service.opened).toHaveLength(1);
  });

  it("goes on for whoever wants it before it is closed", async () => {
    live.hold()();
    live.hold();
    await vi.advanceTimersByTimeAsync(LINGER_MS * 2);
    expect(service.opened).toHaveLength(1);
    expect(service.last.signal.aborted).toBe(false);
  });

  it("tells what it brings, in whatever pieces it comes", async () => {
    live.hold();
    await settled();
    expect(live.state).toBe("connecting");
    service.say('event: limits\ndata: {"pl');
    service.say('an": null}\n\n: heartbeat\n\n');
    await settled();
    expect(heard).toEqual([{ name: "limits", data: { plan: null } }]);
    expect(live.state).toBe("open");
  });

  it("is opened again when it ends, later each time, until it brings something", async () => {
    live.hold();
    for (const most of [1, 2, 4]) {
      await settled();
      const asked = service.opened.length;
      service.last.stream.close();
      await settled();
      expect(live.state).toBe("connecting");
      await vi.advanceTimersByTimeAsync((FIRST_PAUSE_MS * most) / 2 - 1);
      expect(service.opened).toHaveLength(asked);
      await vi.advanceTimersByTimeAsync((FIRST_PAUSE_MS * most) / 2 + 1);
      expect(service.opened).toHaveLength(asked + 1);
    }
    service.say("event: limits\ndata: {}\n\n");
    await settled();
    service.last.stream.close();
    await vi.advanceTimersByTimeAsync(FIRST_PAUSE_MS);
    expect(service.opened).toHaveLength(5);
  });

  it("is taken for lost when not even a heartbeat comes", async () => {
    live.hold();
    await settled();
    const { signal } = service.last;
    await vi.advanceTimersByTimeAsync(SILENCE_MS - 1);
    service.say(": heartbeat\n\n");
    await vi.advanceTimersByTimeAsync(SILENCE_MS - 1);
    expect(signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(signal.aborted).toBe(true);
    await vi.advanceTimersByTimeAsync(FIRST_PAUSE_MS);
    expect(service.opened).toHaveLength(2);
  });

  it("is asked for again no sooner than the service says", async () => {
    service.answer = new Response("{}", { status: 429, headers: { "Retry-After": "40" } });
    live.hold();
    await vi.advanceTimersByTimeAsync(39_999);
    expect(service.opened).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(service.opened).toHaveLength(2);
  });

  it.each([
    ["signed out", 401],
    ["no user any more", 403],
  ])("is not asked for again by somebody who is %s", async (_, status) => {
    service.answer = new Response("{}", { status });
    live.hold();
    await vi.advanceTimersByTimeAsync(LONGEST_PAUSE_MS * 10);
    expect(service.opened).toHaveLength(1);
  });

  it("is closed while the page is hidden for long, and opened when it is looked at", async () => {
    live.hold();
    await settled();
    look("hidden");
    await beating(HIDDEN_MS);
    expect(service.last.signal.aborted).toBe(true);
    expect(live.state).toBe("closed");
    look("visible");
    await settled();
    expect(service.opened).toHaveLength(2);
  });

  it("is kept where the page is hidden for a moment", async () => {
    live.hold();
    await settled();
    look("hidden");
    await beating(HIDDEN_MS - 1);
    look("visible");
    await vi.advanceTimersByTimeAsync(1);
    expect(service.opened).toHaveLength(1);
    expect(service.last.signal.aborted).toBe(false);
  });
});

describe("the pause before another attempt", () => {
  it("doubles up to the longest, and is not the same for all", () => {
    expect(pauseBefore(1, 0, 0)).toBe(FIRST_PAUSE_MS / 2);
    expect(pauseBefore(1, 0, 1)).toBe(FIRST_PAUSE_MS);
    expect(pauseBefore(3, 0, 1)).toBe(FIRST_PAUSE_MS * 4);
    expect(pauseBefore(50, 0, 1)).toBe(LONGEST_PAUSE_MS);
  });
});
