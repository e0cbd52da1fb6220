/** How many pages there are; one at least. */
export function pageCount(total: number, size: number): number {
  return Math.max(1, Math.ceil(total / size));
}
