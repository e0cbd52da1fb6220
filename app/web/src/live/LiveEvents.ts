import { toProblem } from "../api/problem";
import { type LiveEvent, readEvents } from "./readEvents";

/** Whether what is heard is up to date. */
export type LiveState = "closed" | "connecting" | "open";

/** How long nobody has to want the stream before it is closed: another page may want it next. */
export const LINGER_MS = 2_000;
/** A hidden page gives its connection back: a browser has few of them for one origin. */
export const HIDDEN_MS = 30_000;
/** The service beats every few seconds; a connection that is silent for this long is dead. */
export const SILENCE_MS = 20_000;
export const FIRST_PAUSE_MS = 1_000;
export const LONGEST_PAUSE_MS = 30_000;

type Connect = (signal: AbortSignal) => Promise<Response>;

/** How long to wait before the next attempt; the service's own word for it is heeded. */
export function pauseBefore(attempt: number, retrySeconds = 0, chance = Math.random()): number {
  const backoff = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1));
  // Apart from each other, when a service comes back that many had a stream to.
  return Math.max(backoff * (0.5 + chance / 2), retrySeconds * 1_000);
}

/**
 * The one stream of events of this page: open as long as somebody wants it and the page is looked
 * at, opened again when it is lost.
 */
export class LiveEvents {
  readonly #connect: Connect;
  readonly #onEvent: (event: LiveEvent) => void;
  readonly #listeners = new Set<() => void>();
  #holders = 0;
  #state: LiveState = "closed";
  #connection: AbortController | null = null;
  #attempt = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #closing: ReturnType<typeof setTimeout> | undefined;

  constructor(connect: Connect, onEvent: (event: LiveEvent) => void) {
    this.#connect = connect;
    this.#onEvent = onEvent;
  }

  get state(): LiveState {
    return this.#state;
  }

  /** Hear of each change of the state. Returns how to stop. */
  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  };

  /** Want the stream. Returns how to want it no longer. */
  hold(): () => void {
    this.#holders += 1;
    if (this.#holders === 1) this.#watchPage();
    this.#wake();
    return () => {
      this.#holders -= 1;
      if (this.#holders > 0) return;
      this.#unwatchPage();
      this.#closeIn(LINGER_MS);
    };
  }

  readonly #onVisibility = (): void => {
    if (document.visibilityState === "hidden") this.#closeIn(HIDDEN_MS);
    else this.#wake();
  };

  readonly #onOnline = (): void => {
    this.#attempt = 0;
    this.#wake();
  };

  #watchPage(): void {
    document.addEventListener("visibilitychange", this.#onVisibility);
    window.addEventListener("online", this.#onOnline);
  }

  #unwatchPage(): void {
    document.removeEventListener("visibilitychange", this.#onVisibility);
    window.removeEventListener("online", this.#onOnline);
  }

  #wake(): void {
    clearTimeout(this.#closing);
    if (this.#connection !== null || document.visibilityState === "hidden") return;
    clearTimeout(this.#retry);
    void this.#follow();
  }

  #closeIn(ms: number): void {
    clearTimeout(this.#closing);
    this.#closing = setTimeout(() => {
      clearTimeout(this.#retry);
      this.#connection?.abort();
      this.#connection = null;
      this.#attempt = 0;
      this.#become("closed");
    }, ms);
  }

  async #follow(): Promise<void> {
    const connection = new AbortController();
    this.#connection = connection;
    this.#become("connecting");
    let problem: unknown;
    try {
      await this.#read(connection);
    } catch (error) {
      problem = error;
    }
    // Closed on purpose, or opened anew meanwhile.
    if (this.#connection !== connection) return;
    connection.abort();
    this.#connection = null;
    this.#become("connecting");
    const { status, retrySeconds } = toProblem(problem);
    // Signed out, or no account any more: nothing is to be had, and the page says so.
    if (status === 401 || status === 403) return;
    this.#attempt += 1;
    this.#retry = setTimeout(() => {
      this.#wake();
    }, pauseBefore(this.#attempt, retrySeconds));
  }

  async #read(connection: AbortController): Promise<void> {
    let silence: ReturnType<typeof setTimeout> | undefined;
    const onSign = () => {
      clearTimeout(silence);
      silence = setTimeout(() => {
        connection.abort();
      }, SILENCE_MS);
    };
    try {
      onSign();
      const response = await this.#connect(connection.signal);
      const { status } = response;
      if (!response.ok || response.body === null) {
        throw Object.assign(new Error(`GET /events: ${status}`), { status, response });
      }
      await readEvents(
        response.body,
        (event) => {
          if (this.#connection !== connection) return;
          this.#attempt = 0;
          this.#become("open");
          this.#onEvent(event);
        },
        onSign,
      );
    } finally {
      clearTimeout(silence);
    }
  }

  #become(state: LiveState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#listeners.forEach((listener) => {
      listener();
    });
  }
}
