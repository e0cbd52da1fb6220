import { QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { Queries } from "./Queries";

const KEY = ["threads"];

/** A service that answers when a test says so, with what was so when it was asked. */
class Service {
  now = "before";
  readonly asked: (() => void)[] = [];

  answer = (): Promise<string> => {
    const known = this.now;
    return new Promise((resolve) => {
      this.asked.push(() => {
        resolve(known);
      });
    });
  };

  tell(number: number): Promise<unknown> {
    this.asked[number]?.();
    return vi.advanceTimersByTimeAsync(0);
  }
}

describe("what is out of date", () => {
  let service: Service;
  let queries: Queries;
  let leave: () => void;

  beforeEach(() => {
    vi.useFakeTimers();
    service = new Service();
    queries = new Queries();
    const observer = new QueryObserver(queries, { queryKey: KEY, queryFn: service.answer });
    leave = observer.subscribe(() => undefined);
  });

  afterEach(() => {
    leave();
    queries.clear();
    vi.useRealTimers();
  });

  it("is asked for again also where the first answer was on its way", async () => {
    service.now = "after";
    void queries.invalidateQueries({ queryKey: KEY });
    await service.tell(0);
    expect(queries.getQueryData(KEY)).toBe("before");
    await service.tell(1);
    expect(queries.getQueryData(KEY)).toBe("after");
    expect(service.asked).toHaveLength(2);
  });

  it("is asked for again at once where there was an answer before", async () => {
    await service.tell(0);
    void queries.invalidateQueries({ queryKey: KEY });
    service.now = "after";
    void queries.invalidateQueries({ queryKey: KEY });
    await service.tell(2);
    expect(queries.getQueryData(KEY)).toBe("after");
    await service.tell(1);
    expect(queries.getQueryData(KEY)).toBe("after");
    expect(service.asked).toHaveLength(3);
  });

  it("is not asked for by anybody who has given up the first question", async () => {
    const done = queries.invalidateQueries({ queryKey: KEY });
    await queries.cancelQueries({ queryKey: KEY });
    await done;
    expect(service.asked).toHaveLength(1);
  });
});
