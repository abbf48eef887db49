import type { GroupCall, GroupOthers } from "../../../core/placing/multi-create.ts";
import type { RequestRecord } from "../../../core/stores/api/api-store.ts";
import { isHardGroup } from "../../../core/tasks/group-rule.ts";
import type { CellLink } from "../cells/cell-link.ts";
import type { SchedulerReservations, SchedulerStore } from "../ports.ts";

/** Finds the servers of a group that are being built, moved or deleted, and the undecided multi-create calls that they belong to. */
export class GroupInFlight {
  readonly #store: Pick<SchedulerStore, "requests">;
  readonly #reservations: Pick<SchedulerReservations, "reservation">;
  readonly #links: { all(): CellLink[] };

  constructor(deps: {
    readonly store: Pick<SchedulerStore, "requests">;
    readonly reservations: Pick<SchedulerReservations, "reservation">;
    readonly links: { all(): CellLink[] };
  }) {
    this.#store = deps.store;
    this.#reservations = deps.reservations;
    this.#links = deps.links;
  }

  /**
   * The other servers of the group to which these servers of one call belong, as this scheduler's views show them. Rejects as the API
   * database does.
   */
  async besides(call: readonly RequestRecord[]): Promise<GroupOthers> {
    const group = call[0]?.spec.group;
    if (!isHardGroup(group)) return { inFlight: false, calls: [] };
    const own = new Set(call.map(({ serverUuid }) => serverUuid));
    const unsettled = this.#links.all().flatMap(({ facts }) => facts?.unsettledOf(group.uuid) ?? []);
    const others = [...new Set(unsettled)].filter((uuid) => !own.has(uuid));
    const records = others.length > 0 ? await this.#store.requests(others) : [];
    return { inFlight: others.length > 0, calls: await this.#undecided(records) };
  }

  /** All servers of a call were accepted in one transaction, so any of them tells the age of the call. */
  async #undecided(records: readonly RequestRecord[]): Promise<readonly GroupCall[]> {
    const calls = new Map<string, GroupCall>();
    for (const { spec, createdAtMs } of records) {
      if (spec.reservationId !== "") calls.set(spec.reservationId, { id: spec.reservationId, createdAtMs });
    }
    const reservations = await Promise.all([...calls.keys()].map((id) => this.#reservations.reservation(id)));
    return [...calls.values()].filter((_, at) => reservations[at]?.decision === null);
  }
}
