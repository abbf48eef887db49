import type { PinOutcome, ServerGroupStore } from "../../core/cell/server-group-store.ts";
import type { CellLink } from "./cell-link.ts";
import type { SchedulerGroups } from "./ports.ts";

/**
 * Pins affinity groups to cells. The API database only knows which cell a server went to, not what became of it there: one that ended in
 * ERROR without a home is none that others must join, and is let go of here. Cost: one write; where another cell is in the way, a
 * question to it.
 */
export class GroupPinner implements SchedulerGroups {
  readonly #store: Pick<ServerGroupStore, "pinCell" | "unpinServers">;
  readonly #links: { get(name: string): CellLink | undefined };

  constructor(deps: {
    readonly store: Pick<ServerGroupStore, "pinCell" | "unpinServers">;
    readonly links: { get(name: string): CellLink | undefined };
  }) {
    this.#store = deps.store;
    this.#links = deps.links;
  }

  /** Rejects when a store could not be asked. */
  async pinCell(pin: Parameters<ServerGroupStore["pinCell"]>[0]): Promise<PinOutcome> {
    const outcome = await this.#store.pinCell(pin);
    if (outcome.kind === "pinned") return outcome;
    const asked = this.#links.get(outcome.cell)?.cell.store.homes(outcome.servers);
    // A cell that does not answer keeps its group.
    const homes = (await asked?.catch(() => [])) ?? [];
    // Nothing begins anything more for such a server but its delete.
    const ended = homes.filter(({ status, host }) => status === "ERROR" && host === null);
    if (ended.length === 0) return outcome;
    const uuids = ended.map(({ serverUuid }) => serverUuid);
    await this.#store.unpinServers(pin.groupUuid, uuids, outcome.cell);
    return this.#store.pinCell(pin);
  }
}
