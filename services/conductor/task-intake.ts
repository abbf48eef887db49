import { cellTasksConsumer, taskSignalHeader } from "../../adapters/nats/streams.ts";
import { Task, TaskNotice } from "../../proto/gen/berth/cell.ts";
import { BusError, type BusMessage, busErrorIsTransient, type Subscription } from "../../runtime/bus.ts";
import type { Clock } from "../../runtime/clock.ts";
import { decodeKept } from "../../runtime/encode-once.ts";
import { retry } from "../../runtime/retry.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { ConductorEvents } from "./events.ts";
import { MessageClock } from "./message-clock.ts";
import type { ConductorBus, ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";
import type { StepCommitter } from "./step-committer.ts";
import type { TaskReleaser } from "./task-releaser.ts";
import type { TaskRuns } from "./task-runs.ts";

const SWEEP_MAX = 500;
/** After this many sweeps, the conductor searches for tasks that it owns without knowing it, because the answer to a take was lost. */
const OWNED_EVERY = 10;
const RETRY_MS = 1_000;
/**
 * A message that has waited longer than this share of the time after which sweeps take a task is too late for a begin without taking it. If the clock of NATS is
 * ahead of this one by more than that, nobody knows how long the message has waited.
 */
const FRESH_SHARE = 0.25;
const SUBSCRIBE_RETRY = { delayMs: 200, delayMsMax: 2_000 };

export interface TaskIntakeOptions {
  readonly bus: ConductorBus;
  readonly store: Pick<ConductorStore, "sweepTasks" | "ownedTasks" | "holdTasks">;
  readonly commits: StepCommitter;
  readonly runs: TaskRuns;
  readonly releaser: TaskReleaser;
  readonly clock: Clock;
  readonly events: ConductorEvents;
  readonly settings: Pick<
    ConductorSettings,
    "conductorId" | "untakenMs" | "sweepMs" | "messagesInFlightMax" | "tasksMax"
  >;
}

/** What a message says of its tasks beside their names. No other conductor has had a message that is delivered for the first time. */
interface Delivery {
  readonly headers?: Readonly<Record<string, string>>;
  readonly isFirst?: boolean;
}

/**
 * Receives the conductor's tasks: from messages, and from a sweep that finds tasks whose message was lost or whose conductor died. A
 * message is acknowledged when its task is taken or begun, or belongs to another conductor, because the rows hold the truth. The message of a signal
 * is also meant for the conductor that already carries the operation. It takes the task again, and so reads the signal.
 *
 * A task that its message carries is begun without being taken, if the message is delivered for the first time and soon: then hardly ever has another conductor
 * begun it, and none sweeps it so early. That saves a short build a transaction. Each sweep begins with making the conductor the owner of those that are still in progress. If
 * another one has taken such a task all the same, everything that is written for it here is fenced, as when a lease was lost.
 */
export class TaskIntake {
  readonly #options: TaskIntakeOptions;
  readonly #sweeper: Ticker;
  readonly #messageClock: MessageClock;
  /** Tasks that are being taken. Each promise resolves when the take is answered or has failed. */
  readonly #taking = new Map<string, Promise<boolean>>();
  #subscription: Subscription | null = null;
  #sweeps = 0;
  #stopped = false;
  readonly #stop = new AbortController();

  constructor(options: TaskIntakeOptions) {
    this.#options = options;
    const { clock, events, settings } = options;
    this.#messageClock = new MessageClock(clock, events, FRESH_SHARE * settings.untakenMs);
    this.#sweeper = new Ticker({
      clock,
      pauseMs: settings.sweepMs,
      work: () => this.#sweep(),
      onError: (error) => events.databaseFailed("sweep", error),
    });
  }

  /** True while messages come in. Without messages the sweep still finds every task, only later. */
  get subscribed(): boolean {
    return this.#subscription !== null;
  }

  /**
   * Resolves when tasks are being swept. Messages follow as soon as the bus has the stream. Rejects when the bus can never deliver them.
   */
  async start(): Promise<void> {
    try {
      await this.#subscribe();
    } catch (error) {
      if (!isTransient(error)) throw error;
      this.#subscribeLater(error);
    }
    this.#sweeper.start();
  }

  /** Tries again until messages come in or the conductor stops. */
  #subscribeLater(first: unknown): void {
    const { clock, events } = this.#options;
    const sinceMs = clock.monotonic();
    const failed = (error: unknown) => {
      if (!this.#stopped) events.messagesUnread(error, clock.monotonic() - sinceMs);
      throw error;
    };
    events.messagesUnread(first, 0);
    const options = { ...SUBSCRIBE_RETRY, triesMax: Number.MAX_SAFE_INTEGER, clock, signal: this.#stop.signal };
    retry(() => this.#subscribe().catch(failed), options).then(
      () => {
        if (this.subscribed) events.messagesRead();
      },
      // The promise rejects only when the conductor stops.
      () => {},
    );
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#stop.abort();
    await Promise.all([this.#subscription?.stop(), this.#sweeper.stop()]);
  }

  async #subscribe(): Promise<void> {
    const { bus, settings } = this.#options;
    const limits = { maxInFlight: settings.messagesInFlightMax };
    const subscription = await bus.consume(cellTasksConsumer, limits, (message) => this.#onMessage(message));
    if (this.#stopped) await subscription.stop();
    else this.#subscription = subscription;
  }

  #onMessage(message: BusMessage): void {
    const { runs, events } = this.#options;
    const { ids, told } = noticeOf(message.data);
    if (ids.length === 0) events.taskMalformed("(unreadable)", "a message without a task's id");
    const isSignal = message.headers[taskSignalHeader] !== undefined;
    const isFirst = !isSignal && message.deliveries === 1;
    const mayBegin = isFirst && told.length > 0 && this.#messageClock.isFresh(message.storedAtMs);
    const begun = mayBegin ? this.#beginUntaken(told, message.headers) : null;
    const others = ids.filter((id) => isSignal || !(begun?.has(id) || runs.has(id) || this.#taking.has(id)));
    void this.#takeAll(others, { headers: message.headers, isFirst }).then((answered) =>
      answered ? message.ack() : message.retry(RETRY_MS),
    );
  }

  #beginUntaken(told: readonly Task[], headers: Readonly<Record<string, string>>): ReadonlySet<string> {
    const { runs, settings } = this.#options;
    const begun = new Set<string>();
    for (const task of told) {
      if (this.#stopped || runs.size + this.#taking.size >= settings.tasksMax) break;
      if (!this.#taking.has(task.id) && runs.beginUntaken(task, headers)) begun.add(task.id);
    }
    return begun;
  }

  /** Makes this conductor the owner of the tasks that it has begun untaken and not ended yet. */
  async #holdUntaken(): Promise<void> {
    const { store, runs, settings } = this.#options;
    const untaken = runs.untaken();
    for (let at = 0; at < untaken.length; at += SWEEP_MAX) {
      const some = untaken.slice(at, at + SWEEP_MAX);
      runs.heldOrOver(some, await store.holdTasks(settings.conductorId, some));
    }
  }

  /**
   * Takes as many tasks as there is room for, and repeats that while there is still room, because some of the tasks may have ended.
   * Resolves with false when a task is left, which this conductor or another takes when the message is delivered again.
   */
  async #takeAll(taskIds: readonly string[], how: Delivery): Promise<boolean> {
    const { runs, settings } = this.#options;
    for (let at = 0; at < taskIds.length; ) {
      const room = settings.tasksMax - runs.size - this.#taking.size;
      if (this.#stopped || room <= 0) return false;
      const answered = await Promise.all(taskIds.slice(at, at + room).map((id) => this.#take(id, how)));
      if (!answered.every(Boolean)) return false;
      at += answered.length;
    }
    return true;
  }

  /**
   * Takes the task after any take that is in flight, since that one may have missed a newer signal. Resolves with false when the database
   * did not answer.
   */
  #take(taskId: string, how: Delivery): Promise<boolean> {
    const before = this.#taking.get(taskId) ?? Promise.resolve(true);
    const taking = before.then(() => this.#takeNow(taskId, how));
    this.#taking.set(taskId, taking);
    return taking.finally(() => {
      if (this.#taking.get(taskId) === taking) this.#taking.delete(taskId);
    });
  }

  async #takeNow(taskId: string, how: Delivery): Promise<boolean> {
    const { commits, runs, events } = this.#options;
    try {
      const { arrivals } = runs;
      const taken = await commits.take(taskId);
      if (taken !== null && !this.#stopped) runs.begin(taken, { ...how, arrivals });
      return true;
    } catch (error) {
      events.databaseFailed("take", error);
      return false;
    }
  }

  async #sweep(): Promise<void> {
    const { store, runs, releaser, events, settings } = this.#options;
    for (let full = true; full && !this.#stopped; ) {
      // Others sweep what is not held in time, and a sweep of many tasks takes long.
      await this.#holdUntaken();
      const limit = Math.min(SWEEP_MAX, settings.tasksMax - runs.size);
      if (limit <= 0) return;
      const { arrivals } = runs;
      const swept = await store.sweepTasks(settings.conductorId, settings.untakenMs, limit, releaser.resting());
      if (swept.length > 0) events.swept(swept.length);
      if (this.#stopped) return;
      for (const taken of swept) runs.begin(taken, { arrivals });
      full = swept.length === limit;
    }
    this.#sweeps += 1;
    if (this.#sweeps % OWNED_EVERY !== 0) return;
    const owned = await store.ownedTasks(settings.conductorId);
    const unknown = owned.filter((taskId) => !runs.has(taskId) && !this.#taking.has(taskId));
    await Promise.all(unknown.map((taskId) => this.#take(taskId, {})));
  }
}

function isTransient(error: unknown): boolean {
  return error instanceof BusError && busErrorIsTransient[error.code];
}

/**
 * The tasks that a message names, and those of them that it carries. A message of an older version is one whole task, which counts as named. None when the message
 * cannot be decoded.
 */
export function noticeOf(data: Uint8Array): { readonly ids: readonly string[]; readonly told: readonly Task[] } {
  try {
    const { id, more, told } = TaskNotice.decode(data);
    const ids = new Set([id, ...more].filter((one) => one !== ""));
    return {
      ids: [...ids],
      told: told
        .map(taskIn)
        .filter((task) => task !== null)
        .filter((task) => ids.has(task.id)),
    };
  } catch {
    return { ids: [], told: [] };
  }
}

/** One that cannot be decoded is taken from its row. */
function taskIn(bytes: Uint8Array): Task | null {
  try {
    return decodeKept(Task, bytes);
  } catch {
    return null;
  }
}
