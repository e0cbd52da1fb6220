import { describe, expect, it } from "vitest";

import type { PartStatus, Runtime, RuntimeComponent } from "../api/runtime";
import { outageOf, withNews } from "./parts";

const part = (
  component: string,
  version: number,
  status: PartStatus = "available",
  reason?: string,
): RuntimeComponent => ({ component, version, status, ...(reason && { reason }) });

const all = (...components: RuntimeComponent[]): Runtime => ({ components });

describe("what is known of the parts", () => {
  const lost = part("workers", 2, "unavailable", "worker_lost");

  it("is what is heard first", () => {
    expect(withNews(undefined, all(lost), { isStream: false })).toEqual(all(lost));
  });

  it("is not taken back by an older word, whoever says it", () => {
    for (const isStream of [true, false]) {
      expect(withNews(all(lost), all(part("workers", 1)), { isStream })).toEqual(all(lost));
    }
  });

  it("is replaced by a newer one", () => {
    const back = part("workers", 3);
    expect(withNews(all(lost), all(back), { isStream: true })).toEqual(all(back));
  });

  it("loses a connection that the stream does not name, and none that another answer leaves out", () => {
    const own = part("connection:notes", 7, "unavailable", "mcp_exited");
    expect(withNews(all(lost, own), all(lost), { isStream: true })).toEqual(all(lost));
    expect(withNews(all(lost, own), all(lost), { isStream: false })).toEqual(all(lost, own));
  });

  it("keeps what is lost, though a stream that has just begun does not know of it", () => {
    const away = part("database", 9, "unavailable", "database_unreachable");
    expect(withNews(all(lost), all(away), { isStream: true })).toEqual(all(away, lost));
    expect(withNews(all(away, lost), all(), { isStream: true })).toEqual(all(away, lost));
  });
});

describe("what does not work", () => {
  it("is nothing while all parts do, or one is a part less", () => {
    expect(outageOf(all())).toBeNull();
    const degraded = part("model:two", 4, "degraded", "ollama_unreachable");
    expect(outageOf(all(part("workers", 1), degraded))).toBeNull();
  });

  it("is named by its reasons, each once, the most basic first, and one's own servers", () => {
    const parts = all(
      part("connection:notes", 1, "unavailable", "mcp_exited"),
      part("model:b", 1, "unavailable", "ollama_unreachable"),
      part("model:a", 1, "unavailable", "ollama_unreachable"),
      part("workers", 1, "unavailable", "no_workers"),
      part("connection:files", 1, "unavailable", "mcp_timeout"),
      part("connection:time", 1),
    );
    expect(outageOf(parts)).toMatchObject({
      reasons: ["no_workers", "ollama_unreachable"],
      servers: [
        { server: "files", reason: "timeout" },
        { server: "notes", reason: "exited" },
      ],
    });
  });

  it("is the whole service without a database, a worker or any model, else a part of it", () => {
    const failing = part("model:a", 1, "unavailable", "ollama_unreachable");
    const isWhole = (...parts: RuntimeComponent[]) => outageOf(all(...parts))?.isWhole;
    expect(isWhole(part("database", 1, "unavailable"), part("model:a", 1))).toBe(true);
    expect(isWhole(part("workers", 1, "unavailable"), part("model:a", 1))).toBe(true);
    expect(isWhole(part("workers", 1), failing)).toBe(true);
    expect(isWhole(part("workers", 1), failing, part("model:b", 1))).toBe(false);
    expect(isWhole(part("workers", 1), failing, part("model:b", 1, "degraded"))).toBe(false);
    expect(isWhole(part("connection:notes", 1, "unavailable"))).toBe(false);
  });

  it("has what is sent wait, for a model not for ever, and be refused without a database", () => {
    const noWorkers = part("workers", 1, "unavailable");
    const noModel = part("model:a", 1, "unavailable");
    const noDatabase = part("database", 1, "unavailable");
    const sent = (...parts: RuntimeComponent[]) => outageOf(all(...parts))?.sent;
    expect(sent(noWorkers, part("model:a", 1))).toBe("waits");
    expect(sent(noWorkers, noModel)).toBe("waits_a_while");
    expect(sent(noWorkers, noModel, noDatabase)).toBe("refused");
  });
});
