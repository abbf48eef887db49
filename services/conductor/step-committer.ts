import type {
  ActiveOutcome,
  CommitOutcome,
  Hop,
  HopOutcome,
  TakenTask,
  TaskStore,
  UnreadableEnd,
  UnreadableOutcome,
} from "../../core/stores/cell/cell-store.ts";
import type { StepOutcome, StepStore } from "../../core/stores/cell/operation-store.ts";
import { StoreError } from "../../core/stores/store-error.ts";
import type { OperationStep } from "../../core/tasks/operation-step.ts";
import type { Fenced, Tenure } from "../../core/tasks/tenure.ts";
import type { Batcher } from "../../runtime/batcher.ts";
import type { Clock } from "../../runtime/clock.ts";
import { retry } from "../../runtime/retry.ts";
import type { ConductorEvents } from "./events.ts";
import { batcherOf, SharedStep } from "./shared-step.ts";

/** How often a step is tried that the database refuses as a programming error (code `bug`). */
const REFUSALS_MAX = 3;
/** The fault that the server's owner then reads. */
const UNWRITABLE = "the cell's database refused to record the outcome of the build";
const RETRY = { delayMs: 100, delayMsMax: 5_000 };

type ActiveCommit = Parameters<TaskStore["commitActive"]>[0][number];
type ErrorCommit = Parameters<TaskStore["commitError"]>[0][number];

/**
 * Writes the steps of many tasks in few transactions. A failed step is tried again alone, since it may be what made its batch fail, until
 * the database answers or `stop` is raised. It must be retried because no other conductor sweeps this conductor's open tasks while it
 * lives. A build step that is refused permanently ends the build in ERROR instead. Repeating is safe: steps are fenced by the task's epoch,
 * and one that was written is `committed` again.
 */
export class StepCommitter {
  readonly #clock: Clock;
  readonly #events: ConductorEvents;
  readonly #stop: AbortSignal;
  readonly #active: SharedStep<ActiveCommit, ActiveOutcome>;
  readonly #hop: SharedStep<Hop, HopOutcome>;
  readonly #error: SharedStep<ErrorCommit, CommitOutcome>;
  readonly #deleted: SharedStep<Tenure, CommitOutcome>;
  readonly #unreadable: SharedStep<UnreadableEnd, UnreadableOutcome>;
  readonly #operation: SharedStep<OperationStep, StepOutcome>;
  readonly #hold: SharedStep<string, boolean>;
  readonly #take: Batcher<string, TakenTask | null>;

  constructor(options: {
    readonly store: TaskStore & Pick<StepStore, "commitStep">;
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
    this.#unreadable = new SharedStep((items) => store.endUnreadable(items));
    this.#operation = new SharedStep((items) => store.commitStep(items));
    this.#hold = new SharedStep((taskIds) => store.holdTasks(conductorId, taskIds));
    this.#take = batcherOf(async (taskIds) => {
      const taken = new Map(
        (await store.takeTasks(conductorId, [...new Set(taskIds)])).map((task) => [task.task.id, task]),
      );
      return taskIds.map((taskId) => taken.get(taskId) ?? null);
    });
  }

  /**
   * Takes a task. Resolves with null when the task has ended or belongs to a live conductor. Rejects when the database does not answer,
   * without retrying.
   */
  take(taskId: string): Promise<TakenTask | null> {
    return this.#take.submit(taskId);
  }
  /**
   * Commits a step of a build. Rejects when the conductor stops, or when the database refuses both the step and the ERROR in its place.
   * When the ERROR was written in the step's place, the outcome is `fenced`, because there is nothing more to do for the build.
   */
  commitActive(commit: ActiveCommit): Promise<ActiveOutcome> {
    return this.#writtenOrError("commit-active", this.#active, commit, commit.selection);
  }
  hop(hop: Hop): Promise<HopOutcome> {
    return this.#writtenOrError("hop", this.#hop, hop, hop.from);
  }
  async commitError(commit: ErrorCommit): Promise<CommitOutcome> {
    // Its record is to name the conductor. Another one that has begun it, too, and holds it may have a host that can build it.
    if (commit.untakenBy !== undefined && !(await this.answered("hold", this.#hold, commit.taskId)))
      return { kind: "fenced" };
    return this.#writtenOrError("commit-error", this.#error, commit, commit.selection);
  }
  /** Commits a step of an operation. Rejects only when the conductor stops. */
  commitStep(step: OperationStep): Promise<StepOutcome> {
    return this.answered("operation-step", this.#operation, step);
  }
  /** Rejects only when the conductor stops. */
  endUnreadable(end: UnreadableEnd): Promise<UnreadableOutcome> {
    return this.answered("end-unreadable", this.#unreadable, end);
  }
  /** Rejects only when the conductor stops, because a delete has no other way to end. */
  commitDeleted(tenure: Tenure): Promise<CommitOutcome> {
    return this.answered("commit-deleted", this.#deleted, tenure);
  }

  /** Runs `work` until it succeeds. Rejects when the conductor stops. Meant for reads that a task needs in order to continue. */
  insist<Value>(what: string, work: (attempt: number) => Promise<Value>): Promise<Value> {
    return this.#tried(what, work, Number.POSITIVE_INFINITY);
  }

  /** Submits the item until it is answered. Every try after the first one runs alone. */
  answered<Item, Outcome>(what: string, step: SharedStep<Item, Outcome>, item: Item): Promise<Outcome> {
    return this.insist(what, (attempt) => step.submit(item, attempt > 1));
  }

  async #writtenOrError<Item extends Tenure, Outcome>(
    what: string,
    step: SharedStep<Item, Outcome>,
    item: Item,
    selection: number,
  ): Promise<Outcome | Fenced> {
    try {
      return await this.#tried(what, (attempt) => step.submit(item, attempt > 1), REFUSALS_MAX);
    } catch (error) {
      if (this.#stop.aborted || !isRefusal(error)) throw error;
      const { taskId, serverUuid, epoch } = item;
      this.#events.stepRefused(what, serverUuid, error);
      const plain = { taskId, serverUuid, epoch, selection, attemptReason: UNWRITABLE, reason: UNWRITABLE };
      await this.#tried("commit-error", () => this.#error.submit(plain, true), 1);
      return { kind: "fenced" };
    }
  }

  /** Tries until `work` succeeds, was refused `refusalsMax` times, or the conductor stops. */
  #tried<Value>(what: string, work: (attempt: number) => Promise<Value>, refusalsMax: number): Promise<Value> {
    let refusals = 0;
    const mayHelp = (error: unknown) => {
      this.#events.databaseFailed(what, error);
      if (isRefusal(error)) refusals += 1;
      return refusals < refusalsMax;
    };
    return retry(work, {
      ...RETRY,
      triesMax: Number.MAX_SAFE_INTEGER,
      isTransient: mayHelp,
      clock: this.#clock,
      signal: this.#stop,
    });
  }
}

/** The database answered, and no repetition would change its refusal. */
const isRefusal = (error: unknown): boolean => error instanceof StoreError && error.code === "bug";
