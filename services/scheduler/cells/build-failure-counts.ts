import type { SoftState } from "../../../core/stores/soft-state.ts";

/** Counts of recent failed builds by cell and host: a copy of the soft state's counts that searches can read without waiting. */
export class BuildFailureCounts {
  readonly #softState: SoftState;
  readonly #onChanged: (cell: string, host: string) => void;
  /** Null until the counts have been read. */
  #byCell: ReadonlyMap<string, ReadonlyMap<string, number>> | null = null;

  /** Calls `onChanged` for each host whose count has changed. */
  constructor(softState: SoftState, onChanged: (cell: string, host: string) => void) {
    this.#softState = softState;
    this.#onChanged = onChanged;
  }

  of(cell: string): ReadonlyMap<string, number> | undefined {
    return this.#byCell?.get(cell);
  }

  async refresh(): Promise<void> {
    const byCell = new Map<string, Map<string, number>>();
    for (const [key, count] of await this.#softState.buildFailures()) {
      const slash = key.indexOf("/");
      const cell = key.slice(0, slash);
      const hosts = byCell.get(cell) ?? new Map<string, number>();
      byCell.set(cell, hosts.set(key.slice(slash + 1), count));
    }
    const before = this.#byCell ?? new Map<string, ReadonlyMap<string, number>>();
    this.#byCell = byCell;
    for (const cell of new Set([...before.keys(), ...byCell.keys()])) {
      for (const host of changedKeys(before.get(cell), byCell.get(cell))) this.#onChanged(cell, host);
    }
  }

  failed(cell: string, host: string): Promise<void> {
    return this.#softState.recordBuildFailure(cell, host);
  }

  /** Clears the host's count. Calls the soft state only if the host has a count, or while the counts have not been read. */
  async succeeded(cell: string, host: string): Promise<void> {
    if (this.#byCell === null || this.of(cell)?.has(host)) await this.#softState.clearBuildFailures(cell, host);
  }
}

function changedKeys(before: ReadonlyMap<string, number> = new Map(), now: ReadonlyMap<string, number> = new Map()) {
  return [...new Set([...before.keys(), ...now.keys()])].filter((key) => before.get(key) !== now.get(key));
}
