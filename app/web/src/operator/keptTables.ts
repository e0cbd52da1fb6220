import type { Person } from "../api/people";

/** The tables that have rows of somebody, those of most rows first. */
export function keptTables({ rows, sizes }: Pick<Person, "rows" | "sizes">) {
  return Object.entries(rows)
    .filter(([, count]) => count > 0)
    .sort(([one, many], [other, more]) => more - many || one.localeCompare(other))
    .map(([table, count]) => ({ table, rows: count, bytes: sizes[table] ?? null }));
}
