import type { RowChange } from "../../../core/ledger/row-change.ts";

/**
 * The rows of a table by UUID, with the state of each that followers saw last. Steps get the rows that they change from here, so only the
 * rows that a step has got are compared after it. `Shown` is the part of a row that followers see.
 */
export abstract class TrackedRows<Row, Shown> extends Map<string, Row> {
  readonly #got = new Set<string>();
  readonly #told = new Map<string, Shown>();

  protected abstract shownOf(row: Row): Shown;
  protected abstract isSame(one: Shown, other: Shown): boolean;
  /** `told` is what followers saw last; undefined when the row is new to them. */
  protected abstract changeOf(row: Row, shown: Shown, told: Shown | undefined): RowChange;
  /** The change for a removed row that followers know. Null when followers are not told. */
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

  /** The changes that followers see in the rows that were got since the last call. */
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
      changes.push(this.changeOf(row, now, told));
    }
    this.#got.clear();
    return changes;
  }

  /** Every row as a follower sees it. */
  rows(): RowChange[] {
    return Array.from(this.values(), (row) => this.changeOf(row, this.shownOf(row), undefined));
  }
}
