/** How many rows of each table were removed, or would be removed. */
export class ArchiveCounts {
  readonly #counts = new Map<string, number>();

  add(table: string, rows: number): void {
    this.#counts.set(table, (this.#counts.get(table) ?? 0) + rows);
  }

  /** By table, in the order in which they were first counted. */
  get all(): ReadonlyMap<string, number> {
    return this.#counts;
  }
}
