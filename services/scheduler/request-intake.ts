import { SpanKind } from "@opentelemetry/api";
import { apiStreams, schedulerRequestsConsumer } from "../../adapters/nats/streams.ts";
import { contextOf } from "../../adapters/telemetry/propagation.ts";
import { failSpan, type Tracing } from "../../adapters/telemetry/tracing.ts";
import { ScheduleRequest } from "../../proto/gen/berth/scheduler.ts";
import type { BusMessage, Subscription } from "../../runtime/bus.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { SchedulerEvents } from "./events.ts";
import type { Work, WorkPlacer } from "./placing/work-placer.ts";
import type { SchedulerBus } from "./ports.ts";
import type { SchedulerSettings } from "./settings.ts";
import { SharedMessage } from "./shared-message.ts";

interface Waiting {
  readonly work: Work;
  /** Null when the work was found by a sweep. */
  readonly message: SharedMessage | null;
}

/**
 * Takes work from the queue and from sweeps, and hands it to the placer. A message is acknowledged as soon as its work has ended or was put
 * off in its row. Only when a row cannot be reached is the message's redelivery requested, so the queue holds no work that waits.
 *
 * The bus limits how many messages are out, and a message may stand for several requests. So work may have to wait here until other work has
 * ended. What waits for longer than the bus does is left to the next delivery of its message.
 */
export class RequestIntake {
  readonly #bus: SchedulerBus;
  readonly #placer: WorkPlacer;
  readonly #events: SchedulerEvents;
  readonly #tracing: Tracing;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #settings: Pick<SchedulerSettings, "requestsInFlightMax" | "requestsPerTurn">;
  readonly #waiting: Waiting[] = [];
  readonly #running = new Set<Promise<void>>();
  #turn = false;
  #stopped = false;
  #subscription: Subscription | null = null;

  constructor(
    deps: {
      readonly bus: SchedulerBus;
      readonly placer: WorkPlacer;
      readonly events: SchedulerEvents;
      readonly tracing: Tracing;
      readonly clock: Pick<Clock, "monotonic">;
    },
    settings: Pick<SchedulerSettings, "requestsInFlightMax" | "requestsPerTurn">,
  ) {
    this.#bus = deps.bus;
    this.#placer = deps.placer;
    this.#events = deps.events;
    this.#tracing = deps.tracing;
    this.#clock = deps.clock;
    this.#settings = settings;
  }

  /** Amount of work that was taken and is not finished. */
  get size(): number {
    return this.#waiting.length + this.#running.size;
  }

  /** How much more work may be taken. When this is 0, there is probably more in the queue. */
  get room(): number {
    return Math.max(0, this.#settings.requestsInFlightMax - this.size);
  }

  /** Whether messages are taken from the queue. */
  get listening(): boolean {
    return this.#subscription !== null;
  }

  /** Subscribes to the queue. Rejects when the bus cannot be reached, and may then be called again. */
  async start(): Promise<void> {
    await this.#bus.ensureStreams(apiStreams);
    const maxInFlight = this.#settings.requestsInFlightMax;
    const subscription = await this.#bus.consume(schedulerRequestsConsumer, { maxInFlight }, (message) =>
      this.#take(message),
    );
    if (this.#stopped) await subscription.stop();
    else this.#subscription = subscription;
  }

  /**
   * Takes no more work, and resolves when all begun work has ended. Messages whose work was not begun return to the queue, except those that the bus
   * delivers again without an answer.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#subscription?.stop();
    const nowMs = this.#clock.monotonic();
    for (const { message } of this.#waiting.splice(0)) if (!message?.leaveIfExpired(nowMs)) message?.left();
    await Promise.all(this.#running);
  }

  /** Takes work that a sweep has found. The sweep put the work off in its row, so a later sweep finds it if this process ends early. */
  offer(works: readonly Work[]): void {
    if (this.#stopped) return;
    for (const work of works) this.#waiting.push({ work, message: null });
    this.#nextTurn();
  }

  #take(message: BusMessage): void {
    if (this.#stopped) {
      message.retry(0);
      return;
    }
    const works = decodeWorks(message);
    if (works instanceof Error) {
      this.#events.malformed(works);
      message.ack();
      return;
    }
    const shared = new SharedMessage(message, works.length, this.#clock.monotonic());
    for (const work of works) this.#waiting.push({ message: shared, work });
    this.#nextTurn();
  }

  /**
   * Begins a few requests in each turn of the event loop, because choosing hosts blocks the loop and answers must be handled in between.
   */
  #nextTurn(): void {
    if (this.#turn || this.#waiting.length === 0 || this.#unused === 0) return;
    this.#turn = true;
    setImmediate(() => {
      this.#turn = false;
      const begun = Math.min(this.#unused, this.#settings.requestsPerTurn);
      for (const waiting of this.#waiting.splice(0, begun)) this.#begin(waiting);
      this.#nextTurn();
    });
  }

  /** How many more requests may be placed at the same time. */
  get #unused(): number {
    return Math.max(0, this.#settings.requestsInFlightMax - this.#running.size);
  }

  #begin(waiting: Waiting): void {
    if (waiting.message?.leaveIfExpired(this.#clock.monotonic())) return;
    const running = this.#carryOn(waiting).finally(() => {
      this.#running.delete(running);
      this.#nextTurn();
    });
    this.#running.add(running);
  }

  /** Never rejects. */
  async #carryOn({ message, work }: Waiting): Promise<void> {
    const deliveries = message?.deliveries ?? 1;
    const span = this.#tracing.start("scheduler place", {
      ...(message && { parent: contextOf(message.headers) }),
      kind: SpanKind.CONSUMER,
      attributes: { [`berth.${work.kind}`]: work.id, "berth.deliveries": deliveries },
    });
    try {
      await this.#placer.carryOn({ work, deliveries, isSwept: message === null }, span);
      message?.done();
    } catch (error) {
      failSpan(span, error);
      this.#events.placingFailed(work.id, error);
      message?.failed();
    } finally {
      span.end();
    }
  }
}

/** The work of a message, without repetitions; never none. */
function decodeWorks({ data, storedAtMs }: Pick<BusMessage, "data" | "storedAtMs">): readonly Work[] | Error {
  try {
    const { server, move, serverUuid, moveId, more, spec } = ScheduleRequest.decode(data);
    const moving = moveId || move?.id;
    if (moving) return [{ kind: "move", id: moving }];
    const placed = [serverUuid || (server?.uuid ?? ""), ...more].filter((uuid) => uuid !== "");
    if (placed.length === 0) return new Error("a schedule request without a server");
    const told = spec.length === 0 ? {} : { told: { bytes: spec, storedAtMs } };
    return [...new Set(placed)].map((id) => ({ kind: "server", id, ...told }));
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
