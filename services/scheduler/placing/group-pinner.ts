import type { PinOutcome, ServerGroupStore } from "../../../core/stores/api/server-group-store.ts";
import type { CellLink } from "../cells/cell-link.ts";
import type { SchedulerGroups } from "../ports.ts";

/**
 * Pins affinity groups to cells. The API database only knows which cell a server went to, not what happened to it there. A server that
 * ended in ERROR without a home does not bind its group to the cell, so such servers are unpinned here.
 *
 * Cost: one write, and one question to the other cell where the group is pinned to another one.
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

  /** Pins a group to a cell, or returns the cell to which it is pinned. Rejects when the API database could not be asked. */
  async pinCell(pin: Parameters<ServerGroupStore["pinCell"]>[0]): Promise<PinOutcome> {
    const outcome = await this.#store.pinCell(pin);
    if (outcome.kind === "pinned") return outcome;
    const asked = this.#links.get(outcome.cell)?.cell.store.homes(outcome.servers);
    // If the cell does not answer, the group stays pinned to it.
    const homes = (await asked?.catch(() => [])) ?? [];
    // Such a server can only be deleted.
    const ended = homes.filter(({ status, host }) => status === "ERROR" && host === null);
    if (ended.length === 0) return outcome;
    const uuids = ended.map(({ serverUuid }) => serverUuid);
    await this.#store.unpinServers(pin.groupUuid, uuids, outcome.cell);
    return this.#store.pinCell(pin);
  }
}
