import {
  type HostSync,
  type OperatorsWill,
  ownedUuids,
  planHostSync,
} from "../../../../core/stores/api/plan-host-sync.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { Ticker } from "../../../../runtime/ticker.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import type { OperatorStores } from "../../ports.ts";
import { HostMapKeeper } from "./host-map-keeper.ts";

/** The changes of a sync, made or planned. */
export interface SyncReport {
  readonly changed: readonly (HostSync & { readonly cell: string })[];
  /** Cells that did not answer. They are synced once they do. */
  readonly unreachable: readonly string[];
}

/** Maximum number of retries after concurrent changes. Writers of aggregates are few; after that, the background sync takes over. */
const OVERTAKEN_MAX = 5;
/** Maximum number of hosts that one call to a cell names. */
const BATCH_MAX = 500;

/**
 * Copies the operators' settings of the API tier to the cells: placement aggregates to the hosts' roots, allocation ratios to their inventories.
 * The API database is authoritative: changes that a cell missed while it was unreachable are found by comparison and written later.
 *
 * `sync` does this once. In the background, every change of the version is applied, whichever api made it. Cells that were unreachable are
 * tried again in each round, and everything is compared once in `fullMs`, to find changes inside the cells. The same rounds keep the names
 * of the cells' hosts in the API database.
 */
export class HostSyncer {
  readonly #stores: OperatorStores;
  readonly #cells: Cells;
  readonly #events: ApiEvents;
  readonly #clock: Clock;
  readonly #fullMs: number;
  readonly #hostMap: HostMapKeeper;
  readonly #ticker: Ticker;
  /** The version up to which all cells are in sync, or -1 when it is not known. */
  #syncedVersion = -1;
  #fullAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    deps: {
      readonly stores: OperatorStores;
      readonly cells: Cells;
      readonly events: ApiEvents;
      readonly clock: Clock;
    },
    options: { readonly pollMs: number; readonly fullMs: number },
  ) {
    this.#stores = deps.stores;
    this.#cells = deps.cells;
    this.#events = deps.events;
    this.#clock = deps.clock;
    this.#fullMs = options.fullMs;
    this.#hostMap = new HostMapKeeper({ store: deps.stores.hostMap, cells: deps.cells, clock: deps.clock });
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: options.pollMs,
      work: () => this.#follow(),
      onError: (error) => deps.events.syncFailed(error),
    });
  }

  start(): void {
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  /**
   * Compares and writes now; `hosts` null means all hosts. Repeats when aggregates or ratios changed meanwhile, so that the last write is
   * up to date. Rejects as the API database does. Cells that do not answer are named in the report.
   */
  async sync(hosts: readonly string[] | null, options: { readonly dryRun?: boolean } = {}): Promise<SyncReport> {
    const changed: SyncReport["changed"][number][] = [];
    for (let round = 0; ; round += 1) {
      const { aggregates, ratios } = this.#stores;
      const version = await aggregates.version();
      const will: OperatorsWill = {
        aggregates: await aggregates.aggregates(),
        formerUuids: await aggregates.formerUuids(),
        ratios: await ratios.ratioSettings(),
      };
      const reports = await Promise.all(
        Array.from(this.#cells.values(), (cell) => syncCell(cell, will, hosts, options.dryRun ?? false)),
      );
      for (const [index, cell] of [...this.#cells.keys()].entries())
        for (const sync of reports[index] ?? []) changed.push({ cell, ...sync });
      const unreachable = [...this.#cells.keys()].filter((_, index) => reports[index] === null);
      const settled = (await aggregates.version()) === version;
      if (settled || options.dryRun || round === OVERTAKEN_MAX) {
        if (hosts === null && settled && unreachable.length === 0 && !options.dryRun) this.#syncedVersion = version;
        if (changed.length > 0 && !options.dryRun) this.#events.hostsSynced(changed.length);
        return { changed, unreachable };
      }
    }
  }

  /** Runs `sync` for a change that is already stored; the background sync does whatever fails now. Never rejects. */
  async syncSoon(hosts: readonly string[] | null): Promise<SyncReport> {
    try {
      return await this.sync(hosts);
    } catch (error) {
      this.#events.syncFailed(error);
      return { changed: [], unreachable: [] };
    }
  }

  async #follow(): Promise<void> {
    await this.#hostMap.look();
    const nowMs = this.#clock.monotonic();
    const full = nowMs - this.#fullAtMs >= this.#fullMs;
    if (!full && (await this.#stores.aggregates.version()) === this.#syncedVersion) return;
    await this.sync(null);
    if (full) this.#fullAtMs = nowMs;
  }
}

/** Returns the changes that were (or would be) written in the cell, or null when the cell did not answer. It may then have received a part. */
async function syncCell(
  cell: CellClient,
  will: OperatorsWill,
  hosts: readonly string[] | null,
  dryRun: boolean,
): Promise<readonly HostSync[] | null> {
  const states = await cell.admin((admin) => admin.operatorState(ownedUuids(will), hosts));
  if (states.kind === "unreachable") return null;
  const plan = planHostSync(will, states.value);
  if (dryRun) return plan;
  for (let from = 0; from < plan.length; from += BATCH_MAX) {
    const batch = plan.slice(from, from + BATCH_MAX);
    const written = await cell.admin(async (admin) => {
      await admin.mirrorAggregates(batch.map((sync) => sync.mirror).filter((change) => change !== null));
      await admin.setRatios(batch.map((sync) => sync.ratios).filter((change) => change !== null));
    });
    if (written.kind === "unreachable") return null;
  }
  return plan;
}
