import { describe, expect, it } from "vitest";

import type { ServedModel } from "../api/models";
import { resolveModel } from "./resolve";

function served(model: string, isDefault = false): ServedModel {
  return {
    model,
    default: isDefault,
    status: "available",
    context_length: 8_192,
    max_output: null,
    capabilities: [],
    price: { source: "unpriced" },
    cost: "seat_seconds",
  };
}

const small = served("small:1b", true);
const large = served("large:8b");
const models = [small, large];

describe("the model that answers", () => {
  it("is the default, and none is asked for, where none was chosen", () => {
    expect(resolveModel(models, undefined, false)).toEqual({
      answering: small,
      asked: undefined,
      gone: undefined,
    });
  });

  it("is the one that was chosen", () => {
    expect(resolveModel(models, "large:8b", false)).toEqual({
      answering: large,
      asked: "large:8b",
      gone: undefined,
    });
  });

  it("is the default where the chosen one is gone, which is told", () => {
    expect(resolveModel(models, "huge:70b", false)).toEqual({
      answering: small,
      asked: undefined,
      gone: "huge:70b",
    });
  });

  it("is the chosen one as long as it is not known which ones there are", () => {
    expect(resolveModel(undefined, "large:8b", false).asked).toBe("large:8b");
  });

  it("is the default where that cannot be known", () => {
    expect(resolveModel(undefined, "large:8b", true).asked).toBeUndefined();
    expect(resolveModel([], "large:8b", false)).toEqual({
      answering: undefined,
      asked: undefined,
      gone: "large:8b",
    });
  });
});
