import { describe, expect, it } from "vitest";

import type { StoaRun } from "../api/types";
import { lastFailure, ReadRuns, unsettledRuns, waitingRun, wasLastStopped } from "./runs";

function run(id: number, status: StoaRun["status"], error?: StoaRun["error"]): StoaRun {
  const created = new Date(id * 1_000).toISOString();
  return { run_id: `r${id}`, status, created_at: created, error } as unknown as StoaRun;
}

describe("at the first look at a thread", () => {
  it("the oldest run that is still going is read", () => {
    const runs = [run(3, "pending"), run(2, "running"), run(1, "success")];
    expect(new ReadRuns().next("t", runs)?.run_id).toBe("r2");
  });

  it("nothing is read where the last run went well: the state holds it", () => {
    expect(new ReadRuns().next("t", [run(2, "success"), run(1, "error")])).toBeUndefined();
  });

  it("the last run is read if it failed, for what it had streamed", () => {
    expect(new ReadRuns().next("t", [run(2, "error"), run(1, "success")])?.run_id).toBe("r2");
  });

  it("nothing is read where nothing ran", () => {
    expect(new ReadRuns().next("t", [])).toBeUndefined();
  });
});

describe("later", () => {
  it("a run that was read to its end is not read again, though a stale list calls it running", () => {
    const read = new ReadRuns();
    read.next("t", [run(1, "running")]);
    read.settle("r1");
    expect(read.next("t", [run(1, "running")])).toBeUndefined();
  });

  it("a run that began and ended elsewhere is read", () => {
    const read = new ReadRuns();
    read.next("t", [run(1, "success")]);
    expect(read.next("t", [run(2, "success"), run(1, "success")])?.run_id).toBe("r2");
  });

  it("a run whose end was missed is read, though the thread was never looked at", () => {
    const read = new ReadRuns();
    read.open("t");
    expect(read.next("t", [run(1, "success")])?.run_id).toBe("r1");
  });
});

describe("a run that waits for the person", () => {
  const waiting = { ...run(2, "interrupted"), state: "waiting" } as StoaRun;

  it("is not read at the first look: the state holds it and what is asked", () => {
    expect(new ReadRuns().next("t", [waiting, run(1, "success")])).toBeUndefined();
  });

  it("is read again once it goes on, whoever answered", () => {
    const read = new ReadRuns();
    read.next("t", [run(2, "running")]);
    read.settle("r2");
    expect(read.next("t", [waiting])).toBeUndefined();
    expect(read.next("t", [run(2, "running")])?.run_id).toBe("r2");
    expect(read.next("t", [run(2, "running")])?.run_id).toBe("r2");
    read.settle("r2");
    expect(read.next("t", [run(2, "running")])).toBeUndefined();
  });

  it("is read again though it has ended before anybody looked, and others came after it", () => {
    const read = new ReadRuns();
    read.next("t", [waiting]);
    expect(read.next("t", [run(3, "pending"), run(2, "success")])?.run_id).toBe("r2");
  });

  it("is before those that were sent after it: they have not begun", () => {
    const read = new ReadRuns();
    expect(read.next("t", [run(3, "pending"), waiting])).toBeUndefined();
    expect(waitingRun([run(3, "pending"), waiting])?.run_id).toBe("r2");
    expect(waitingRun([run(3, "pending")])).toBeUndefined();
  });
});

describe("a run that was sent while another tab's was still going", () => {
  const runs = [run(2, "pending"), run(1, "running")];

  it("is behind that one", () => {
    expect(new ReadRuns().isBehindAnother(runs, "r2")).toBe(true);
    expect(new ReadRuns().isBehindAnother(runs, "r1")).toBe(false);
  });

  it("is no more once that one was read, though a stale list calls it running", () => {
    const read = new ReadRuns();
    read.settle("r1");
    expect(read.isBehindAnother(runs, "r2")).toBe(false);
  });

  it("is not as long as it is not listed itself", () => {
    expect(new ReadRuns().isBehindAnother(runs, "r9")).toBe(false);
  });
});

describe("runs whose messages the thread may not hold", () => {
  it("are those after the last success, the oldest first", () => {
    const runs = [run(4, "pending"), run(3, "error"), run(2, "success"), run(1, "error")];
    expect(unsettledRuns(runs).map(({ run_id }) => run_id)).toEqual(["r3", "r4"]);
  });

  it("are none where all went well", () => {
    expect(unsettledRuns([run(2, "success"), run(1, "success")])).toEqual([]);
  });
});

describe("whether the last run was stopped", () => {
  const stopped = { ...run(2, "interrupted"), state: "cancelled" } as StoaRun;
  const waiting = { ...run(2, "interrupted"), state: "waiting" } as StoaRun;

  it("is said by its state, not by LangGraph's word, which also means waiting", () => {
    expect(wasLastStopped([stopped, run(1, "success")])).toBe(true);
    expect(wasLastStopped([waiting])).toBe(false);
  });

  it("is not said of an earlier one", () => {
    expect(wasLastStopped([run(3, "success"), stopped])).toBe(false);
  });
});

describe("the last failure", () => {
  it("is the last run's own error, with the run's id", () => {
    const error = { code: "model_unavailable", message: "No model." };
    expect(lastFailure([run(1, "success"), run(2, "error", error)])).toEqual({ ...error, runId: "r2" });
  });

  it("is forgotten once a later run went well", () => {
    expect(lastFailure([run(2, "success"), run(1, "error")])).toBeUndefined();
  });

  it("has a code even where the run names none", () => {
    expect(lastFailure([run(1, "timeout")])?.code).toBe("run_timeout");
  });
});
