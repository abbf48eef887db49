import { GROUP_IN_FLIGHT } from "../../../core/placing/describe-placing.ts";
import {
  type GroupOthers,
  isOpenRequest,
  isPlacedByOthers,
  judgeMultiCreate,
  type MultiCreateVerdict,
  mayAwaitGroup,
} from "../../../core/placing/multi-create.ts";
import type { RequestRecord } from "../../../core/stores/api/api-store.ts";
import type { ReservationRecord } from "../../../core/stores/api/reservation-store.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { CellLink } from "../cells/cell-link.ts";
import { deleteInCell } from "../cells/delete-in-cell.ts";
import type { SchedulerEvents } from "../events.ts";
import type { SchedulerReservations, SchedulerStore } from "../ports.ts";
import type { GroupInFlight } from "./group-in-flight.ts";
import type { ChosenTogether, Placement, PlacingRequest } from "./placement.ts";
import type { RequestPlacer } from "./request-placer.ts";
import type { RequestWrites } from "./request-writes.ts";

/** The result of one server. */
export interface Settled {
  readonly spec: ServerSpec;
  readonly placement: Placement;
}

/** How often a server's claim is released while other schedulers assign it elsewhere. */
const GIVE_BACKS_MAX = 10;

/** Places the servers of one call together: at least `min_count` of them, or none. core/placing/multi-create.ts explains how. */
export class MultiCreatePlacer {
  readonly #store: Pick<SchedulerStore, "requests">;
  readonly #reservations: SchedulerReservations;
  readonly #links: { get(name: string): CellLink | undefined };
  readonly #placer: RequestPlacer;
  readonly #writes: RequestWrites;
  readonly #inFlight: GroupInFlight;
  readonly #events: SchedulerEvents;
  readonly #newId: () => string;
  /**
   * Calls that are being placed. Sweeps may hand over each server of a call separately, and those of one call are processed one after the
   * other.
   */
  readonly #running = new Map<string, Promise<unknown>>();

  constructor(deps: {
    readonly store: Pick<SchedulerStore, "requests">;
    readonly reservations: SchedulerReservations;
    readonly links: { get(name: string): CellLink | undefined };
    readonly placer: RequestPlacer;
    readonly writes: RequestWrites;
    readonly inFlight: GroupInFlight;
    readonly events: SchedulerEvents;
    readonly newId: () => string;
  }) {
    this.#store = deps.store;
    this.#reservations = deps.reservations;
    this.#links = deps.links;
    this.#placer = deps.placer;
    this.#writes = deps.writes;
    this.#inFlight = deps.inFlight;
    this.#events = deps.events;
    this.#newId = deps.newId;
  }

  /**
   * The results of all servers of the call to which this one belongs. Those that are `later` must be tried again. Rejects as the stores do.
   */
  place(request: PlacingRequest): Promise<readonly Settled[]> {
    const id = request.spec.reservationId;
    const before = this.#running.get(id) ?? Promise.resolve();
    const placing = before.then(() => this.#place(request));
    const ended = placing
      .catch(() => undefined)
      .then(() => {
        if (this.#running.get(id) === ended) this.#running.delete(id);
      });
    this.#running.set(id, ended);
    return placing;
  }

  async #place(request: PlacingRequest): Promise<readonly Settled[]> {
    const { spec } = request;
    const reservation = await this.#reservations.reservation(spec.reservationId);
    if (reservation === null) return [{ spec, placement: await this.#placer.place(request) }];
    const records = await this.#store.requests(reservation.serverUuids);
    switch (reservation.decision) {
      case null:
        return this.#placeAll(reservation, records, request);
      case "placed":
        return settleEach(leftOver(records, spec), (one) => this.#placer.place(requestOf(request, one)));
      case "refused":
        return this.#refuseAll(records, reservation.fault ?? "");
      default:
        return reservation.decision satisfies never;
    }
  }

  /** The placings begin in one turn of the event loop, so each chooses its host before any of them continues. */
  async #placeAll(
    reservation: ReservationRecord,
    records: readonly RequestRecord[],
    request: PlacingRequest,
  ): Promise<readonly Settled[]> {
    const together = new ChosenHosts();
    const settled = await settleEach(openOnes(records), (one) => this.#placer.place(requestOf(request, one), together));
    const verdict = judgeMultiCreate({
      minCount: reservation.minCount,
      servers: records.length,
      ends: settled.map(({ spec, placement }) => ({ serverUuid: spec.uuid, end: placement })),
    });
    const { found, wanted } = verdict;
    const why = await this.#whyLater(verdict, records);
    if (why !== null) return settled.map(({ spec }) => ({ spec, placement: { kind: "later", why } }));
    const fault = verdict.kind === "short" ? verdict.fault : null;
    const decided = await this.#reservations.decide(reservation.id, fault === null ? "placed" : "refused", fault);
    if (decided?.decision === "refused") {
      this.#events.multiCreateRefused(reservation.id, found, wanted);
      return this.#refuseAll(await this.#store.requests(reservation.serverUuids), decided.fault ?? "");
    }
    const mayWait = settled.some(({ placement }) => placement.kind === "unplaced" && placement.awaitsGroup);
    const others = mayWait ? await this.#inFlight.besides(records) : NOBODY;
    return settleEach(settled, async ({ spec, placement }) => {
      if (placement.kind !== "unplaced") return placement;
      // The call is decided, so this server no longer keeps others of its call waiting.
      if (placement.awaitsGroup && others.inFlight) return { kind: "later", why: GROUP_IN_FLIGHT };
      return this.#placer.refuse(spec, placement.fault);
    });
  }

  /** Why it is too early to decide, or null when it is not. */
  async #whyLater(verdict: MultiCreateVerdict, records: readonly RequestRecord[]): Promise<string | null> {
    if (verdict.kind === "enough") return null;
    if (verdict.kind === "wait") return verdict.why;
    const now = await this.#store.requests([...verdict.at.keys()]);
    if (isPlacedByOthers(now, verdict.at)) return "another scheduler is placing them too";
    const [first] = records;
    if (!verdict.awaitsGroup || first === undefined) return null;
    const call = { id: first.spec.reservationId, createdAtMs: first.createdAtMs, found: verdict.found };
    return mayAwaitGroup(call, await this.#inFlight.besides(records)) ? GROUP_IN_FLIGHT : null;
  }

  #refuseAll(records: readonly RequestRecord[], fault: string): Promise<readonly Settled[]> {
    return settleEach(openOnes(records), (record) => this.#giveBack(record, fault));
  }

  /** Deletes the server in its cell, where it can never exist afterwards, and then fails the request. */
  async #giveBack(record: RequestRecord, fault: string): Promise<Placement> {
    let known: RequestRecord | null = record;
    for (let turns = 0; turns < GIVE_BACKS_MAX; turns += 1) {
      if (known === null || !isOpenRequest(known)) {
        return known?.state === "failed" ? { kind: "refused", fault } : { kind: "over" };
      }
      if (known.cell !== null) {
        const link = this.#links.get(known.cell);
        if (!link) return { kind: "later", why: `its assigned cell ${known.cell} is not known to this scheduler` };
        await deleteInCell(link, known.serverUuid, { newId: this.#newId, events: this.#events });
      }
      const { serverUuid, cell, assignment } = known;
      known = await this.#writes.fail({ serverUuid, cell, assignment, fault });
    }
    return { kind: "later", why: "other schedulers keep assigning it to cells" };
  }
}

const NOBODY: GroupOthers = { inFlight: false, calls: [] };

class ChosenHosts implements ChosenTogether {
  readonly hosts = new Map<string, Set<string>>();

  async choose(cell: string, host: string): Promise<void> {
    this.hosts.set(cell, (this.hosts.get(cell) ?? new Set()).add(host));
    // The others of this turn choose before this promise resolves.
    await Promise.resolve();
  }
}

/** Another server of the call. It was accepted in the same transaction, so it is as old. */
function requestOf({ tries, agedMs }: PlacingRequest, { spec, cell, assignment }: RequestRecord): PlacingRequest {
  return { spec, cell, assignment, tries, agedMs };
}

function openOnes(records: readonly RequestRecord[]): readonly RequestRecord[] {
  return records.filter(isOpenRequest);
}

/** After the decision on a call: the servers that no scheduler has sent to a cell, and the one that the message is about. */
function leftOver(records: readonly RequestRecord[], { uuid }: ServerSpec): readonly RequestRecord[] {
  return openOnes(records).filter((record) => record.state === "accepted" || record.serverUuid === uuid);
}

/** Runs all of them at once and to their ends, and then rejects if one of them did. */
async function settleEach<One extends { readonly spec: ServerSpec }>(
  all: readonly One[],
  settle: (one: One) => Promise<Placement>,
): Promise<readonly Settled[]> {
  const results = await Promise.allSettled(all.map(settle));
  return results.map((result, at) => {
    if (result.status === "rejected") throw result.reason;
    return { spec: all[at]!.spec, placement: result.value };
  });
}
