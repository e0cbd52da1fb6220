import type { ServedModel } from "../api/models";

/** Which model answers, and what of a choice cannot be kept. */
export interface Resolved {
  /** None where it is not known which ones there are. */
  answering: ServedModel | undefined;
  /** What is asked of the service; none is its default. */
  asked: string | undefined;
  /** What was chosen and is not served any more. */
  gone: string | undefined;
}

/**
 * Which model answers what is sent now.
 *
 * As long as the models are not known, a choice is taken for one that can be kept, which the service
 * checks; where they cannot be had, the default answers.
 */
export function resolveModel(
  models: readonly ServedModel[] | undefined,
  chosen: string | undefined,
  isMissing: boolean,
): Resolved {
  if (models === undefined) {
    return { answering: undefined, asked: isMissing ? undefined : chosen, gone: undefined };
  }
  const wanted = models.find(({ model }) => model === chosen);
  const answering = wanted ?? models.find((each) => each.default) ?? models[0];
  const isGone = chosen !== undefined && wanted === undefined;
  return { answering, asked: wanted?.model, gone: isGone ? chosen : undefined };
}

/** What of a run's request names its model. */
export function withModel(model: string | undefined): { config?: { configurable: { model: string } } } {
  return model === undefined ? {} : { config: { configurable: { model } } };
}

/**
 * Whether none of a model's servers works just now. It may be chosen all the same: what is sent to it
 * waits, and a choice is for longer than that.
 */
export function isOut({ status }: Pick<ServedModel, "status">): boolean {
  return status === "unavailable";
}
