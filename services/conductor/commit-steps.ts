import type { CommitOutcome, Hop, HopOutcome, TakenTask, TaskClaim, TaskStore } from "../../core/cell/cell-store.ts";
import type { Batcher } from "../../runtime/batcher.ts";
import type { Clock } from "../../runtime/clock.ts";
import { retry } from "../../runtime/retry.ts";
import type { ConductorEvents } from "./events.ts";
import { batcherOf, SharedStep } from "./shared-step.ts";

const RETRY = { delayMs: 100, delayMsMax: 5_000 };

type ActiveCommit = Parameters<TaskStore["commitActive"]>[0][number];
type ErrorCommit = Parameters<TaskStore["commitError"]>[0][number];

/**
 * Writes the steps of many tasks in few transactions. A step that could not be written is tried again, alone (it may be
 * what its batch failed of), until it is answered or `stop` is raised: a task that is ours and not ended is swept by nobody
 * else while we live. Repeating is safe: steps are fenced by the task's epoch, and one that was written is `committed` again.
 */
export class StepCommitter {
  readonly #clock: Clock;
  readonly #events: ConductorEvents;
  readonly #stop: AbortSignal;
  readonly #active: SharedStep<ActiveCommit, CommitOutcome>;
  readonly #hop: SharedStep<Hop, HopOutcome>;
  readonly #error: SharedStep<ErrorCommit, CommitOutcome>;
  readonly #deleted: SharedStep<TaskClaim, CommitOutcome>;
  readonly #take: Batcher<string, TakenTask | null>;

  constructor(options: {
    readonly store: TaskStore;
    readonly conductorId: string;
    readonly clock: Clock;
    readonly events: ConductorEvents;
    readonly stop: AbortSignal;
  }) {
    const { store, conductorId } = options;
    this.#clock = options.clock;
    this.#events = options.events;
    this.#stop = options.stop;
    this.#active = new SharedStep((items) => store.commitActive(items));
    this.#hop = new SharedStep((items) => store.hop(items));
    this.#error = new SharedStep((items) => store.commitError(items));
    this.#deleted = new SharedStep((items) => store.commitDeleted(items));
    this.#take = batcherOf(async (taskIds) => {
      const taken = new Map(
        (await store.takeTasks(conductorId, [...new Set(taskIds)])).map((task) => [task.task.id, task]),
      );
      return taskIds.map((taskId) => taken.get(taskId) ?? null);
    });
  }

  /** Null: it has ended, or a living conductor has it. Rejects when the database does not answer; not repeated here. */
  take(taskId: string): Promise<TakenTask | null> {
    return this.#take.submit(taskId);
  }
  /** These reject only when the conductor stops. */
  commitActive(commit: ActiveCommit): Promise<CommitOutcome> {
    return this.answered("commit-active", this.#active, commit);
  }
  hop(hop: Hop): Promise<HopOutcome> {
    return this.answered("hop", this.#hop, hop);
  }
  commitError(commit: ErrorCommit): Promise<CommitOutcome> {
    return this.answered("commit-error", this.#error, commit);
  }
  commitDeleted(claim: TaskClaim): Promise<CommitOutcome> {
    return this.answered("commit-deleted", this.#deleted, claim);
  }

  /** Runs `work` until it succeeds or the conductor stops; then it rejects. For reads that a task cannot go on without. */
  insist<Value>(what: string, work: (attempt: number) => Promise<Value>): Promise<Value> {
    const tell = (error: unknown) => {
      this.#events.databaseFailed(what, error);
      return true;
    };
    return retry(work, {
      ...RETRY,
      triesMax: Number.MAX_SAFE_INTEGER,
      isTransient: tell,
      clock: this.#clock,
      signal: this.#stop,
    });
  }

  /** Submits until it is answered, after the first time alone. */
  answered<Item, Outcome>(what: string, step: SharedStep<Item, Outcome>, item: Item): Promise<Outcome> {
    return this.insist(what, (attempt) => step.submit(item, attempt > 1));
  }
}
