import type { Attributes, Span } from "@opentelemetry/api";
import { carrierOf, traceIdOf } from "../../../adapters/telemetry/propagation.ts";
import { failSpan } from "../../../adapters/telemetry/tracing.ts";
import { putOffDelayMs, putOffDelayOfOthersMs } from "../../../core/placing/put-off-delay.ts";
import type { MoveRecord } from "../../../core/stores/api/move-store.ts";
import type { SchedulerEvents } from "../events.ts";
import type { ReadRequest, RequestReader, ToldSpec } from "../request-reader.ts";
import type { MovePlacer } from "./move-placer.ts";
import type { MoveWrites } from "./move-writes.ts";
import type { MultiCreatePlacer, Settled } from "./multi-create-placer.ts";
import type { Found, Placement, PlacingRequest } from "./placement.ts";
import type { RequestPlacer } from "./request-placer.ts";
import type { RequestWrites } from "./request-writes.ts";

/** Work to be placed: a new server, or one that moves. Everything else is in its row. */
export interface Work {
  readonly kind: "server" | "move";
  /** The id of the server or of the move. */
  readonly id: string;
  /** Where its message carries the encoded spec of the server. */
  readonly told?: ToldSpec;
}

/** Access to the rows of moves, and the placer that finds hosts for them. */
interface MoveParts {
  readonly rows: MoveWrites;
  readonly placer: MovePlacer;
}

/** How the work was received. */
export interface Taken {
  readonly work: Work;
  /** How often its message was delivered; 1 for work that a sweep has found. */
  readonly deliveries: number;
  readonly isSwept: boolean;
}

/**
 * Advances one piece of work from its row to its next state: dispatched and announced to the cell (or not announced, since the task's row
 * is there), ended, or put off. Put-off work is recorded in the row, so the caller may forget it.
 */
export class WorkPlacer {
  readonly #reader: RequestReader;
  readonly #writes: RequestWrites;
  readonly #placer: RequestPlacer;
  readonly #multiCreates: MultiCreatePlacer;
  readonly #moves: MoveParts | null;
  readonly #events: SchedulerEvents;

  constructor(deps: {
    readonly reader: RequestReader;
    readonly writes: RequestWrites;
    readonly placer: RequestPlacer;
    readonly multiCreates: MultiCreatePlacer;
    /** Null when this scheduler does not place moves. */
    readonly moves: MoveParts | null;
    readonly events: SchedulerEvents;
  }) {
    this.#reader = deps.reader;
    this.#writes = deps.writes;
    this.#placer = deps.placer;
    this.#multiCreates = deps.multiCreates;
    this.#moves = deps.moves;
    this.#events = deps.events;
  }

  /** Rejects when its row could neither be read nor written. Then it must be handed over again. */
  async carryOn(taken: Taken, span: Span): Promise<void> {
    if (taken.work.kind === "move") await this.#carryMove(taken, span);
    else await this.#carryServer(taken, span);
  }

  async #carryServer({ work, deliveries, isSwept }: Taken, span: Span): Promise<void> {
    const told = isSwept || deliveries > 1 ? null : this.#reader.told(work);
    const row = told ?? (await this.#reader.read(work.id));
    span.addEvent(told === null ? "row read" : "spec told");
    if (row === null || (row.state !== "accepted" && row.state !== "dispatched")) {
      this.#events.foundEnded(work.id);
      return;
    }
    if (!isSwept && deliveries === 1 && row.putOffs === 0) this.#events.taken(row.ageMs);
    try {
      const settled = await this.#settle(row, row.putOffs + deliveries);
      span.addEvent("settled");
      await Promise.all(settled.map((one) => this.#finish(one, row, span)));
    } catch (error) {
      failSpan(span, error);
      this.#events.placingFailed(work.id, error);
      await this.#writes.putOff({ serverUuid: work.id, delayMs: putOffDelayMs(row.putOffs) });
    }
  }

  /** The results of the request or, for a multi-create, of all its servers. */
  async #settle(row: ReadRequest, tries: number): Promise<readonly Settled[]> {
    const { serverUuid, spec, specBytes, cell, assignment, agedMs } = row;
    if (spec === null) return [await this.#placer.refuseTooLarge({ serverUuid, specBytes })];
    const request: PlacingRequest = { spec, cell, assignment, tries, agedMs };
    if (spec.reservationId !== "") return this.#multiCreates.place(request);
    return [{ spec, placement: await this.#placer.place(request) }];
  }

  async #finish({ spec, placement }: Settled, row: ReadRequest, span: Span): Promise<void> {
    switch (placement.kind) {
      case "placed":
        span.setAttributes({ "berth.cell": placement.link.name, "berth.host": placement.host });
        if (placement.found) span.setAttributes(attributesOf(placement.found));
        this.#events.dispatched(spec.uuid, placement.link.name, placement.host, row.agedMs(), traceIdOf(span));
        if (row.putOffs > 0) this.#writes.arrived(placement.link.name, spec.uuid);
        await this.#publish(placement, span);
        return;
      case "present":
        // The server is known to be there, so no sweep has to search for it.
        this.#writes.arrived(placement.cell, spec.uuid);
        this.#events.foundPresent(spec.uuid, placement.cell);
        return;
      case "over":
        this.#events.foundEnded(spec.uuid);
        return;
      case "unplaced":
      case "refused":
        if (placement.found) span.setAttributes(attributesOf(placement.found));
        failSpan(span, placement.fault);
        this.#events.refused(spec.uuid, placement.fault);
        return;
      case "later": {
        this.#events.putOff(spec.uuid, placement.why);
        const delayMs = (spec.uuid === row.serverUuid ? putOffDelayMs : putOffDelayOfOthersMs)(row.putOffs);
        await this.#writes.putOff({ serverUuid: spec.uuid, delayMs });
        return;
      }
      default:
        placement satisfies never;
    }
  }

  async #carryMove({ work }: Taken, span: Span): Promise<void> {
    // The row stays as it is, and sweeps hand it to a scheduler that places moves.
    const moves = this.#moves;
    if (moves === null) return;
    const record = await moves.rows.read(work.id);
    if (record?.state !== "accepted") {
      this.#events.foundEnded(record?.request.serverUuid ?? work.id);
      return;
    }
    try {
      await this.#move(record, moves, span);
    } catch (error) {
      failSpan(span, error);
      this.#events.placingFailed(record.request.serverUuid, error);
      await moves.rows.putOff({ id: work.id, delayMs: putOffDelayMs(record.putOffs) });
    }
  }

  async #move(record: MoveRecord, { rows, placer }: MoveParts, span: Span): Promise<void> {
    const { request: move } = record;
    const placement = await placer.place(record);
    switch (placement.kind) {
      case "placed":
        span.setAttributes({ "berth.cell": placement.link.name, "berth.host": placement.host });
        this.#events.moveBegun(move, placement.host);
        await this.#publish(placement, span);
        return;
      case "over":
        this.#events.foundEnded(move.serverUuid);
        return;
      case "refused":
        failSpan(span, placement.fault);
        this.#events.moveRefused(move, placement.fault);
        return;
      case "later":
        this.#events.putOff(move.serverUuid, placement.why);
        await rows.putOff({ id: move.id, delayMs: putOffDelayMs(record.putOffs) });
        return;
      default:
        placement satisfies never;
    }
  }

  /** The task is stored. If the message is lost, the cell's conductors find the row. */
  async #publish(
    { link, task }: Pick<Placement & { readonly kind: "placed" }, "link" | "task">,
    span: Span,
  ): Promise<void> {
    try {
      await link.publish(task, carrierOf(span));
    } catch (error) {
      this.#events.publishFailed(task.id, link.name, error);
    }
  }
}

/** The number of hosts that could be chosen: all suitable ones, or those that each step left. */
function attributesOf({ feasible, left, tries, lostRaces }: Found): Attributes {
  const steps = Array.from(left, ([step, hosts]) => [`berth.hosts.left.${step}`, hosts] as const);
  return {
    "berth.hosts.feasible": feasible,
    "berth.tries": tries,
    "berth.races_lost": lostRaces,
    ...Object.fromEntries(steps),
  };
}
