import type { HostMapStore } from "../../../core/cell/host-map-store.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { Cells } from "../servers/hydrate-servers.ts";

/** While hosts of a cell come and go, their names are written no oftener. */
const WRITE_SPACING_MS = 10_000;

/** What was last written of a cell: `hosts` is the view's own record, replaced when the view is loaded again. */
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

  /** Writes the cells whose hosts changed since the last look. Throws what the store throws; the next look writes then. */
  async look(): Promise<void> {
    for (const { name, view } of this.#cells.values()) {
      // A view without hosts says nothing: it may not be loaded yet.
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
