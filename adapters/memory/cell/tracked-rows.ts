import type { RowChange } from "../../../core/ledger/row-change.ts";

/**
 * The rows of a table by uuid, which knows what followers were told of each: a step gets the rows that it changes from here, so only
 * those that it got are compared when it is over. `Shown` is what followers see of a row.
 */
export abstract class TrackedRows<Row, Shown> extends Map<string, Row> {
  readonly #got = new Set<string>();
  readonly #told = new Map<string, Shown>();

  protected abstract shownOf(row: Row): Shown;
  protected abstract isSame(one: Shown, other: Shown): boolean;
  protected abstract changeOf(row: Row, shown: Shown): RowChange;
  /** Of a row that is gone, and that followers know; null: they are not told. */
  protected abstract removalOf(uuid: string): RowChange | null;

  override get(uuid: string): Row | undefined {
    this.#got.add(uuid);
    return super.get(uuid);
  }

  override set(uuid: string, row: Row): this {
    this.#got.add(uuid);
    return super.set(uuid, row);
  }

  override clear(): void {
    this.#got.clear();
    this.#told.clear();
    super.clear();
  }

  /** What changed of the rows that were got since the last call, as a follower sees it. */
  takeChanges(): RowChange[] {
    const changes: RowChange[] = [];
    for (const uuid of this.#got) {
      const told = this.#told.get(uuid);
      const row = super.get(uuid);
      if (row === undefined) {
        const removal = told === undefined ? null : this.removalOf(uuid);
        if (removal !== null) changes.push(removal);
        this.#told.delete(uuid);
        continue;
      }
      const now = this.shownOf(row);
      if (told !== undefined && this.isSame(told, now)) continue;
      this.#told.set(uuid, now);
      changes.push(this.changeOf(row, now));
    }
    this.#got.clear();
    return changes;
  }

  /** Every row as a follower sees it. */
  rows(): RowChange[] {
    return Array.from(this.values(), (row) => this.changeOf(row, this.shownOf(row)));
  }
}
