import { type InvalidateOptions, type InvalidateQueryFilters, QueryClient } from "@tanstack/react-query";

/**
 * What is known of the service.
 *
 * An answer that is on its way may have been given before what makes it out of date. One that takes
 * the place of another is asked for anew, which is what TanStack Query does; the first of all, for
 * which it waits instead, is asked for once more when it is there.
 */
export class Queries extends QueryClient {
  override async invalidateQueries(
    filters?: InvalidateQueryFilters,
    options?: InvalidateOptions,
  ): Promise<void> {
    const first = this.getQueryCache()
      .findAll({ ...filters, fetchStatus: "fetching" })
      .filter(({ state }) => state.data === undefined);
    await super.invalidateQueries(filters, options);
    const answered = first.filter(({ state }) => state.data !== undefined);
    await Promise.all(
      answered.map(({ queryKey }) => super.invalidateQueries({ queryKey, exact: true }, options)),
    );
  }
}
