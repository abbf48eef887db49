import { type Attributes, type Span, SpanKind } from "@opentelemetry/api";
import { apiStreams, schedulerRequestsConsumer } from "../../adapters/nats/streams.ts";
import { carrierOf, contextOf } from "../../adapters/telemetry/propagation.ts";
import { failSpan, type Tracing } from "../../adapters/telemetry/tracing.ts";
import { type MoveRequest, ScheduleRequest } from "../../proto/gen/berth/scheduler.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { BusMessage, Subscription } from "../../runtime/bus.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { SchedulerEvents } from "./events.ts";
import type { MovePlacer } from "./place-move.ts";
import type { RequestPlacer } from "./place-request.ts";
import type { CompanyPlacer, Settled } from "./place-together.ts";
import type { Found, Placement } from "./placement.ts";
import type { SchedulerBus } from "./ports.ts";
import type { SchedulerSettings } from "./settings.ts";

const RETRY_MS_MIN = 200;
const RETRY_MS_MAX = 10_000;

/** What a message asks for: a place for a new server, or another for one that lives. */
type Work =
  | { readonly kind: "server"; readonly uuid: string; readonly spec: ServerSpec }
  | { readonly kind: "move"; readonly uuid: string; readonly move: MoveRequest };

interface Taken {
  readonly message: BusMessage;
  readonly work: Work;
}

/**
 * Takes accepted requests from the work queue and has them placed. A message is acknowledged once its request's end is
 * certain: dispatched and published (or the publish failed: the task's row is there), ended, or refused. Else it is asked for again.
 */
export class RequestIntake {
  readonly #bus: SchedulerBus;
  readonly #placer: RequestPlacer;
  readonly #companies: CompanyPlacer;
  readonly #mover: MovePlacer | null;
  readonly #clock: Clock;
  readonly #events: SchedulerEvents;
  readonly #tracing: Tracing;
  readonly #settings: SchedulerSettings;
  readonly #waiting: Taken[] = [];
  readonly #running = new Set<Promise<void>>();
  #turn = false;
  #subscription: Subscription | null = null;

  constructor(
    deps: {
      readonly bus: SchedulerBus;
      readonly placer: RequestPlacer;
      readonly companies: CompanyPlacer;
      /** Without it this scheduler knows of no moves. */
      readonly mover?: MovePlacer | null;
      readonly clock: Clock;
      readonly events: SchedulerEvents;
      readonly tracing: Tracing;
    },
    settings: SchedulerSettings,
  ) {
    this.#bus = deps.bus;
    this.#placer = deps.placer;
    this.#companies = deps.companies;
    this.#mover = deps.mover ?? null;
    this.#clock = deps.clock;
    this.#events = deps.events;
    this.#tracing = deps.tracing;
    this.#settings = settings;
  }

  /** Requests in the works. */
  get size(): number {
    return this.#waiting.length + this.#running.size;
  }

  /** As many as may be: there are probably more in the queue. */
  get full(): boolean {
    return this.size >= this.#settings.requestsInFlightMax;
  }

  /** Rejects when the bus cannot be reached. */
  async start(): Promise<void> {
    await this.#bus.ensureStreams(apiStreams);
    const maxInFlight = this.#settings.requestsInFlightMax;
    this.#subscription = await this.#bus.consume(schedulerRequestsConsumer, { maxInFlight }, (message) =>
      this.#take(message),
    );
  }

  /** Takes no more, gives back what was not begun, and resolves when what was begun has ended. */
  async stop(): Promise<void> {
    await this.#subscription?.stop();
    for (const { message } of this.#waiting.splice(0)) message.retry(0);
    await Promise.all(this.#running);
  }

  #take(message: BusMessage): void {
    const work = decodeWork(message.data);
    if (work instanceof Error) {
      this.#events.malformed(work);
      message.ack();
      return;
    }
    this.#events.taken(this.#clock.now() - message.storedAtMs);
    this.#waiting.push({ message, work });
    this.#nextTurn();
  }

  /** Choosing keeps the event loop busy: some requests a turn, so that answers come in between. */
  #nextTurn(): void {
    if (this.#turn || this.#waiting.length === 0) return;
    this.#turn = true;
    setImmediate(() => {
      this.#turn = false;
      for (const taken of this.#waiting.splice(0, this.#settings.requestsPerTurn)) this.#begin(taken);
      this.#nextTurn();
    });
  }

  #begin(taken: Taken): void {
    const running = this.#place(taken).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Never rejects. */
  async #place({ message, work }: Taken): Promise<void> {
    const span = this.#tracing.start("scheduler place", {
      parent: contextOf(message.headers),
      kind: SpanKind.CONSUMER,
      attributes: { "berth.server": work.uuid, "berth.deliveries": message.deliveries },
    });
    try {
      const isDone =
        work.kind === "move"
          ? await this.#move(work.move, span)
          : await this.#serve(work.spec, message.deliveries, span);
      if (isDone) message.ack();
      else message.retry(retryMs(message.deliveries));
    } catch (error) {
      failSpan(span, error);
      this.#events.placingFailed(work.uuid, error);
      message.retry(retryMs(message.deliveries));
    } finally {
      span.end();
    }
  }

  /** False: it is to be tried again. */
  async #serve(spec: ServerSpec, deliveries: number, span: Span): Promise<boolean> {
    const settled = await this.#settle(spec, deliveries);
    const done = await Promise.all(settled.map((one) => this.#finish(one.spec, one.placement, span)));
    return done.every((isDone) => isDone);
  }

  /** False: it is to be tried again. */
  async #move(move: MoveRequest, span: Span): Promise<boolean> {
    const placement = (await this.#mover?.place(move)) ?? { kind: "later", why: "this scheduler moves no servers" };
    switch (placement.kind) {
      case "begun":
        span.setAttributes({ "berth.cell": placement.link.name, "berth.host": placement.host });
        this.#events.moveBegun(move, placement.host);
        await this.#publish(placement, carrierOf(span));
        return true;
      case "ended":
        this.#events.foundEnded(move.serverUuid);
        return true;
      case "refused":
        failSpan(span, placement.fault);
        this.#events.moveRefused(move, placement.fault);
        return true;
      case "later":
        this.#events.putOff(move.serverUuid, placement.why);
        return false;
      default:
        return placement satisfies never;
    }
  }

  /** What became of it; with company: of all. */
  async #settle(spec: ServerSpec, deliveries: number): Promise<readonly Settled[]> {
    if (spec.reservationId !== "") return this.#companies.place(spec, deliveries);
    return [{ spec, placement: await this.#placer.place(spec, deliveries) }];
  }

  /** False: it is to be tried again. */
  async #finish(spec: ServerSpec, placement: Placement, span: Span): Promise<boolean> {
    switch (placement.kind) {
      case "dispatched":
        span.setAttributes({ "berth.cell": placement.link.name, "berth.host": placement.host });
        if (placement.found) span.setAttributes(attributesOf(placement.found));
        this.#events.dispatched(spec.uuid, placement.link.name, placement.host, this.#clock.now() - spec.createdAtMs);
        await this.#publish(placement, carrierOf(span));
        break;
      case "present":
        this.#events.foundPresent(spec.uuid, placement.cell);
        break;
      case "ended":
        this.#events.foundEnded(spec.uuid);
        break;
      case "unplaced":
      case "refused":
        if (placement.found) span.setAttributes(attributesOf(placement.found));
        failSpan(span, placement.fault);
        this.#events.refused(spec.uuid, placement.fault);
        break;
      case "later":
        this.#events.putOff(spec.uuid, placement.why);
        return false;
      default:
        placement satisfies never;
    }
    return true;
  }

  /** The task is stored: if the message is lost, the cell's conductors find the row. */
  async #publish(
    { link, task }: Pick<Placement & { readonly kind: "dispatched" }, "link" | "task">,
    headers: Readonly<Record<string, string>>,
  ): Promise<void> {
    try {
      await link.publish(task, headers);
    } catch (error) {
      this.#events.publishFailed(task.id, link.name, error);
    }
  }
}

/** How many hosts there were to choose from: all that fit, or those that each step left. */
function attributesOf({ feasible, left, tries, lostRaces }: Found): Attributes {
  const steps = Array.from(left, ([step, hosts]) => [`berth.hosts.left.${step}`, hosts] as const);
  return {
    "berth.hosts.feasible": feasible,
    "berth.tries": tries,
    "berth.races_lost": lostRaces,
    ...Object.fromEntries(steps),
  };
}

function decodeWork(data: Uint8Array): Work | Error {
  try {
    const { server: spec, move } = ScheduleRequest.decode(data);
    if (move !== undefined) return { kind: "move", uuid: move.serverUuid, move };
    if (spec !== undefined) return { kind: "server", uuid: spec.uuid, spec };
    return new Error("a schedule request without a server");
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function retryMs(deliveries: number): number {
  return Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(deliveries - 1, 10));
}
