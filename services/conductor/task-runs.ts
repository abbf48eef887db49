import type { Tracing } from "../../adapters/telemetry/tracing.ts";
import type { TakenTask } from "../../core/stores/cell/cell-store.ts";
import { parseAttemptId } from "../../core/tasks/attempt-id.ts";
import type { PastAttempt } from "../../core/tasks/failure-message.ts";
import { attemptIdOf } from "../../core/tasks/server.ts";
import { isTold } from "../../core/tasks/told-task.ts";
import {
  type AttemptReport,
  type DestroyReport,
  GuestState,
  type HandOffProgress,
  type OrderReport,
} from "../../proto/gen/berth/agent.ts";
import type { Task } from "../../proto/gen/berth/cell.ts";
import { BuildRun } from "./build-run.ts";
import { DeleteRun } from "./delete-run.ts";
import { OperationRun } from "./operation-run.ts";
import { TakeCounts } from "./take-counts.ts";
import type { RunPorts, TaskRun } from "./task-run.ts";
import { traceTask } from "./trace-task.ts";
import { UnknownStageRun } from "./unknown-stage-run.ts";
import { UnreadableRun } from "./unreadable-run.ts";

/** What is known of a task when it is begun; see `TaskRuns.begin`. */
interface BegunWith {
  readonly headers?: Readonly<Record<string, string>>;
  readonly arrivals: number;
  readonly isFirst?: boolean;
}

/** This conductor's tasks in progress, indexed by id, by the host they wait for, and by the server they delete. */
export class TaskRuns {
  readonly #ports: RunPorts;
  readonly #tracing: Tracing;
  readonly #byTask = new Map<string, TaskRun>();
  readonly #byHost = new Map<string, Set<TaskRun>>();
  readonly #untaken = new Set<string>();
  readonly #deletes = new Map<string, DeleteRun>();
  readonly #unreadable = new TakeCounts();
  readonly #ofUnknownStages = new TakeCounts();

  constructor(ports: Omit<RunPorts, "moved" | "ended">, tracing: Tracing) {
    this.#ports = { ...ports, moved: (run, from) => this.#moved(run, from), ended: (run) => this.#drop(run) };
    this.#tracing = tracing;
  }

  get size(): number {
    return this.#byTask.size;
  }

  /** How many connections of agents were accepted so far. */
  get arrivals(): number {
    return this.#ports.arrivals();
  }

  has(taskId: string): boolean {
    return this.#byTask.has(taskId);
  }

  /**
   * Continues a task under the epoch with which it was taken. A run under an older epoch is abandoned. `arrivals` is the number of connections of
   * agents when the database was asked for the task. A task that its message told may have been begun by another conductor that has not taken it,
   * unless `isFirst`.
   */
  begin(taken: TakenTask, { headers = {}, arrivals, isFirst = false }: BegunWith): void {
    const { id, server, work } = taken.task;
    const before = this.#byTask.get(id);
    if (before !== undefined && before.tenure.epoch >= taken.epoch) return;
    if (before !== undefined) {
      this.#drop(before);
      before.abandon();
    }
    if (server === undefined || work === undefined) {
      this.#beginUnreadable(taken, "its payload is damaged, or of a version that this conductor does not know");
      return;
    }
    try {
      this.#beginRun(taken, { work, server, headers, arrivals, isFirst });
    } catch (error) {
      // One task that this version does not understand must not delay the others of its batch.
      this.#beginUnreadable(taken, (error as Error).message);
    }
  }

  /**
   * Begins a build under epoch 0, before any conductor has taken it. Whoever takes it meanwhile fences this run. Returns false if it has to be taken first.
   */
  beginUntaken(task: Task, headers: Readonly<Record<string, string>>): boolean {
    const host = task.work?.$case === "build" ? task.work.value.selections[0]?.host : undefined;
    if (host === undefined || !isTold(task) || this.#ports.streamOf(host) === null || this.#byTask.has(task.id))
      return false;
    const taken = { task, epoch: 0, selection: 0, host, attemptId: attemptIdOf(task.id, 0) };
    this.begin(taken, { headers, arrivals: this.#ports.arrivals(), isFirst: true });
    if (this.#byTask.has(task.id)) this.#untaken.add(task.id);
    return true;
  }

  /**
   * The tasks in progress that were begun untaken, and are not known to be held. A sweep takes them when they are old enough, so they must be held before that.
   */
  untaken(): readonly string[] {
    return [...this.#untaken];
  }

  /**
   * Told which of these tasks this conductor owns now. The others have ended or belong to another conductor. A run of theirs that still waits for its host is
   * abandoned, since it has not ended the task itself: it would leave a host that only this conductor has lost.
   */
  heldOrOver(taskIds: readonly string[], held: readonly boolean[]): void {
    taskIds.forEach((id, at) => {
      this.#untaken.delete(id);
      const run = this.#byTask.get(id);
      if (held[at] || run === undefined || run.host === null || run.tenure.epoch > 0) return;
      this.#drop(run);
      run.abandon();
    });
  }

  #beginUnreadable({ task: { id }, epoch }: TakenTask, reason: string): void {
    const takes = this.#unreadable.count(id);
    this.#ports.events.taskMalformed(id, reason);
    const run = new UnreadableRun({ taskId: id, epoch }, reason, {
      ...this.#ports,
      retake: (taskId) => this.#retake(taskId),
    });
    this.#byTask.set(id, run);
    run.begin(takes);
  }

  async #retake(taskId: string): Promise<void> {
    const arrivals = this.#ports.arrivals();
    const taken = await this.#ports.commits.insist("take", () => this.#ports.commits.take(taskId));
    if (taken !== null) this.begin(taken, { arrivals });
  }

  #beginRun(
    taken: TakenTask,
    {
      work,
      server,
      headers,
      arrivals,
      isFirst,
    }: Required<BegunWith> & {
      readonly work: NonNullable<TakenTask["task"]["work"]>;
      readonly server: NonNullable<TakenTask["task"]["server"]>;
    },
  ): void {
    const { id } = taken.task;
    const span = traceTask(this.#tracing, taken.task, headers);
    if (work.$case === "delete") {
      const run = new DeleteRun(taken, server.uuid, span, this.#ports);
      this.#byTask.set(id, run);
      this.#deletes.set(server.uuid, run);
      this.#ports.homeOf(server.uuid).then(
        (home) => run.begin(home),
        () => run.abandon(),
      );
    } else if (work.$case === "operate") {
      const run = new OperationRun(taken, span, this.#ports, arrivals);
      this.#byTask.set(id, run);
      this.#beginOperation(run, taken, server.uuid);
    } else {
      const run = new BuildRun(taken, work.value, server, span, this.#ports);
      this.#byTask.set(id, run);
      const isFresh = taken.epoch === 0 || (taken.epoch === 1 && (isFirst || !isTold(taken.task)));
      if (isFresh && taken.selection === 0) run.begin();
      else this.#resumeBuild(run, taken, server.uuid);
    }
  }

  hostConnected(host: string): void {
    for (const run of [...(this.#byHost.get(host) ?? [])]) run.hostConnected();
  }

  hostLost(host: string): void {
    for (const run of [...(this.#byHost.get(host) ?? [])]) run.hostLost();
  }

  /** Passes an agent's report to the task of the attempt. If no task here owns the attempt, a prepared guest is settled by the database. */
  attemptReported(report: AttemptReport): void {
    const attempt = parseAttemptId(report.attemptId);
    const run = attempt === null ? undefined : this.#byTask.get(attempt.taskId);
    if ((run instanceof BuildRun || run instanceof OperationRun) && attempt !== null) {
      run.reported(report, attempt.selection);
    } else if (report.state === GuestState.GUEST_STATE_PREPARED) {
      const { host, serverUuid, attemptId } = report;
      this.#ports.settleGuest({ host, serverUuid, attemptId, state: "prepared" });
    }
  }

  /**
   * Handles the answer to a destroy. A report on a whole server belongs to its delete. A report on one attempt may belong to an operation.
   */
  destroyReported(report: DestroyReport): void {
    if (report.attemptId === "") this.#deletes.get(report.serverUuid)?.reported(report);
    else for (const run of [...(this.#byHost.get(report.host) ?? [])]) run.destroyed?.(report);
  }

  /** Passes the answer to an order to the task that the order's id names. */
  orderReported(report: OrderReport): void {
    const order = parseAttemptId(report.orderId);
    if (order !== null) this.#byTask.get(order.taskId)?.ordered?.(report);
  }

  progressReported(report: HandOffProgress): void {
    const order = parseAttemptId(report.orderId);
    if (order !== null) this.#byTask.get(order.taskId)?.progressed?.(report);
  }

  abandonAll(): void {
    const runs = [...this.#byTask.values()];
    for (const run of runs) {
      this.#drop(run);
      run.abandon();
    }
  }

  #resumeBuild(run: BuildRun, taken: TakenTask, serverUuid: string): void {
    this.#ports.events.resumed(taken.task.id, serverUuid, taken.epoch);
    this.#pastOf(taken, serverUuid).then(
      (past) => run.resume(taken.selection, past),
      () => run.abandon(),
    );
  }

  #beginOperation(run: OperationRun, taken: TakenTask, serverUuid: string): void {
    const { commits, store, events } = this.#ports;
    if (taken.epoch > 1) events.resumed(taken.task.id, serverUuid, taken.epoch);
    const position = commits.insist("positions", () => store.positions([taken.task.id]));
    const past = taken.epoch > 1 ? this.#pastOf(taken, serverUuid) : Promise.resolve([]);
    Promise.all([position, past]).then(
      ([[at], before]) => {
        if (at === undefined) return;
        if (run.knows(at.stage)) run.begin(at, before);
        else this.#beginUnknownStage(run, at.stage);
      },
      () => run.abandon(),
    );
  }

  #beginUnknownStage(operation: OperationRun, stage: string): void {
    const { tenure, kind } = operation;
    // The operation was abandoned while its position was being read.
    if (this.#byTask.get(tenure.taskId) !== operation) return;
    this.#drop(operation);
    operation.abandon();
    const takes = this.#ofUnknownStages.count(tenure.taskId);
    if (takes === 1) this.#ports.events.stageUnknown(tenure, kind, stage);
    const run = new UnknownStageRun(tenure, { ...this.#ports, retake: (taskId) => this.#retake(taskId) });
    this.#byTask.set(tenure.taskId, run);
    run.begin(takes).catch(() => run.abandon());
  }

  /** Reads the outcomes of the earlier selections, which a crash, a hop or a takeover left in the database. */
  async #pastOf(taken: TakenTask, serverUuid: string): Promise<readonly PastAttempt[]> {
    const attempts = await this.#ports.commits.insist("attempts", () => this.#ports.store.attempts(serverUuid));
    return attempts.flatMap(({ taskId, selection, host, result, reason }) => {
      if (taskId !== taken.task.id || selection >= taken.selection) return [];
      if (result !== "failed" && result !== "skipped") return [];
      return [{ selection, host, result, reason: reason ?? "" }];
    });
  }

  #moved(run: TaskRun, from: string | null): void {
    if (this.#byTask.get(run.tenure.taskId) !== run) return;
    if (from !== null) this.#leaveHost(run, from);
    if (run.host === null) return;
    const ofHost = this.#byHost.get(run.host);
    if (ofHost === undefined) this.#byHost.set(run.host, new Set([run]));
    else ofHost.add(run);
  }

  #drop(run: TaskRun): void {
    const { taskId, serverUuid } = run.tenure;
    if (run.host !== null) this.#leaveHost(run, run.host);
    if (this.#byTask.get(taskId) === run) {
      this.#byTask.delete(taskId);
      this.#untaken.delete(taskId);
    }
    if (this.#deletes.get(serverUuid) === run) this.#deletes.delete(serverUuid);
  }

  #leaveHost(run: TaskRun, host: string): void {
    const ofHost = this.#byHost.get(host);
    ofHost?.delete(run);
    if (ofHost?.size === 0) this.#byHost.delete(host);
  }
}
