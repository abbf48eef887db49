import type { HostMapStore } from "../../../../core/stores/api/host-map-store.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";

/** Shortest time between two writes of one cell's host names. */
const WRITE_SPACING_MS = 10_000;

/** The state at the last write. `hosts` is the view's own object, which is replaced when the view is reloaded. */
interface Written {
  readonly hosts: unknown;
  readonly mapping: number;
  readonly atMs: number;
}

/** Writes the names of the cells' hosts into the API database, so that they are known while a cell does not answer. */
export class HostMapKeeper {
  readonly #store: HostMapStore;
  readonly #cells: Cells;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #written = new Map<string, Written>();

  constructor(deps: {
    readonly store: HostMapStore;
    readonly cells: Cells;
    readonly clock: Pick<Clock, "monotonic">;
  }) {
    this.#store = deps.store;
    this.#cells = deps.cells;
    this.#clock = deps.clock;
  }

  /** Writes the host names of cells whose hosts have changed since the last call. Rejects as the store does; the next call tries again. */
  async look(): Promise<void> {
    for (const { name, view } of this.#cells.values()) {
      // A view without hosts may not be loaded yet, so it is skipped.
      if (view === null || view.hosts.count === 0) continue;
      const { hosts } = view;
      const { mapping } = hosts;
      const before = this.#written.get(name);
      const atMs = this.#clock.monotonic();
      if (before?.hosts === hosts && before.mapping === mapping) continue;
      if (before !== undefined && atMs - before.atMs < WRITE_SPACING_MS) continue;
      await this.#store.keepHosts(
        name,
        Array.from(hosts.all(), (host) => host.name),
      );
      this.#written.set(name, { hosts, mapping, atMs });
    }
  }
}
