import type { AgentStream } from "../../core/agent/link.ts";
import type { TakenTask } from "../../core/stores/cell/cell-store.ts";
import { GUEST_IN_QUARANTINE } from "../../core/stores/cell/quarantine.ts";
import {
  type AttemptFailure,
  type BuildEffect,
  type BuildEvent,
  type BuildHosts,
  type BuildState,
  type BuildStep,
  beginBuild,
  stepBuild,
} from "../../core/tasks/build-task.ts";
import { keptReason, type PastAttempt } from "../../core/tasks/failure-message.ts";
import { hopChange } from "../../core/tasks/hop-change.ts";
import { attemptIdOf } from "../../core/tasks/server.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import { type AttemptReport, FailureKind, GuestState, type PortDevice } from "../../proto/gen/berth/agent.ts";
import { type BuildPlan, EventKind } from "../../proto/gen/berth/cell.ts";
import type { Selection, ServerSpec } from "../../proto/gen/berth/shared.ts";
import { type MetNeeds, type NeedsOutcome, NO_NEEDS, withNeeds } from "./neighbour-needs.ts";
import { NetworkWait, type NetworkWaitEnd } from "./network-wait.ts";
import type { TaskSpan } from "./ports.ts";
import { RunTimers } from "./run-timers.ts";
import type { RunPorts, TaskRun } from "./task-run.ts";

/**
 * Carries out one build, following `stepBuild`. Its pause is the grace period for a host that is not connected. Its deadline limits the whole attempt
 * (waiting for a slot on the host, then building), in case the agent never answers.
 */
export class BuildRun implements TaskRun {
  readonly tenure: Tenure;
  readonly #ports: RunPorts;
  readonly #span: TaskSpan;
  readonly #server: ServerSpec;
  readonly #selections: readonly Selection[];
  readonly #hosts: BuildHosts;
  readonly #startedAtMs: number;
  #state: BuildState | null = null;
  #abandoned = false;
  readonly #timers: RunTimers;
  /** The selection whose deadline has been set, though it may have been stopped since. */
  #called = -1;
  /** The latest selection whose host was called, or may have been called by the task's previous conductor. */
  #maybeCalled = -1;
  readonly #network: NetworkWait;
  /** The stream to the host when the commit began that made the server ACTIVE there. */
  #startsOn: AgentStream | null = null;
  /** The latest selection whose host itself has reported that the attempt failed, so that nothing is left of it there. */
  #failedByWord = -1;

  constructor(taken: TakenTask, plan: BuildPlan, server: ServerSpec, span: TaskSpan, ports: RunPorts) {
    const untakenBy = taken.epoch === 0 ? ports.settings.conductorId : undefined;
    this.tenure = { taskId: taken.task.id, serverUuid: server.uuid, epoch: taken.epoch, untakenBy };
    this.#ports = ports;
    this.#span = span;
    this.#server = server;
    this.#selections = plan.selections;
    this.#hosts = { hosts: plan.selections.map(({ host }) => host), attemptsMax: plan.attemptsMax };
    this.#startedAtMs = ports.clock.monotonic();
    this.#timers = new RunTimers(ports.clock);
    this.#network = new NetworkWait(ports, (at, need) => ports.needs.connected(server, at, at.devices, need));
  }

  get host(): string | null {
    return this.#state?.kind === "preparing" ? this.#hostOf(this.#state.selection) : null;
  }

  /** Begins with the first selection, whose host nobody has called. */
  begin(): void {
    if (!this.#abandoned) this.#apply(beginBuild(0, []));
  }

  /** Continues from the selection that the database names, whose host may have been called. `past` holds the outcomes of the selections before it. */
  resume(selection: number, past: readonly PastAttempt[]): void {
    this.#maybeCalled = selection;
    if (!this.#abandoned) this.#apply(beginBuild(selection, past));
  }

  abandon(): void {
    if (this.#abandoned) return;
    this.#abandoned = true;
    this.#stopTimers();
    this.#span.end(this.#state?.kind === "ended" ? null : "another conductor continues");
  }

  hostConnected(): void {
    if (this.#state?.kind === "preparing") this.#step({ kind: "host-connected", selection: this.#state.selection });
  }

  hostLost(): void {
    if (this.#state?.kind === "preparing") this.#awaitHost(this.#state.selection);
  }

  /** Handles an agent's report on one of this task's attempts. The guest of an abandoned attempt is settled by the database. */
  reported(report: AttemptReport, selection: number): void {
    if (report.host !== this.#hostOf(selection) || report.serverUuid !== this.#server.uuid) {
      this.#ports.events.reportDropped(null, report.host, "attempt");
      return;
    }
    const current =
      this.#state?.kind === "preparing" || this.#state?.kind === "settling" ? this.#state.selection : null;
    switch (report.state) {
      case GuestState.GUEST_STATE_PREPARED:
      case GuestState.GUEST_STATE_RUNNING:
      // A stopped or paused guest was built and has run, but the database has lost those commits.
      case GuestState.GUEST_STATE_STOPPED:
      case GuestState.GUEST_STATE_PAUSED:
      case GuestState.GUEST_STATE_SUSPENDED:
      case GuestState.GUEST_STATE_RESCUED:
        if (selection === current) this.#prepared(selection, report.devices?.devices ?? []);
        else this.#clear(selection);
        break;
      case GuestState.GUEST_STATE_FAILED:
        if (selection === current) this.#failed(report, selection);
        break;
      default:
        break;
    }
  }

  /**
   * A restored database may have forgotten that this very guest was started, and the host may still have it. Then it is put into quarantine before the
   * build goes on, so that no other guest is started beside it. A host that says with its report that it has no guest of the attempt is not asked.
   */
  #failed(report: AttemptReport, selection: number): void {
    const event = { kind: "failed", selection, failure: failureOf(report), reason: keptReason(report.reason) } as const;
    if (report.nothingLeft === true) {
      this.#failedByWord = selection;
      this.#step(event);
      return;
    }
    const { host, serverUuid, attemptId } = report;
    this.#ports.guests.mayDestroy({ host, serverUuid, attemptId }).then(
      (verdict) => {
        // A guest that nobody could judge is asked about again when the build has gone on. Nothing is destroyed on silence.
        if (verdict === "may") this.#failedByWord = selection;
        this.#step(event);
      },
      () => this.#release(),
    );
  }

  /** The guest exists, and waits for its network before it may run. That wait has a deadline of its own. */
  #prepared(selection: number, devices: readonly PortDevice[]): void {
    const attemptId = attemptIdOf(this.tenure.taskId, selection);
    const at = { selection, host: this.#hostOf(selection), attemptId, devices };
    const need = { isWanted: () => this.#isAt(selection), tenure: this.tenure };
    if (this.#network.reported(at, need, (end) => this.#networkEnded(selection, end))) this.#timers.stopDeadline();
    else this.#step({ kind: "prepared", selection });
  }

  #networkEnded(selection: number, end: NetworkWaitEnd): void {
    if (end.kind === "ready") this.#step({ kind: "prepared", selection });
    else if (end.kind === "failed") this.#giveUp(selection, keptReason(end.reason));
    else if (end.kind === "broken") this.#release();
    else if (this.#isAt(selection)) {
      // The host must report the guest again within a new deadline. While it is away, the grace period ends the attempt.
      this.#called = -1;
      if (this.#ports.streamOf(this.#hostOf(selection)) !== null) this.#callHost(selection);
    }
  }

  #step(event: BuildEvent): void {
    if (this.#abandoned || this.#state === null) return;
    this.#apply(stepBuild(this.#hosts, this.#state, event));
  }

  #apply(step: BuildStep): void {
    const before = this.host;
    this.#state = step.state;
    if (step.state.kind !== "preparing") this.#stopTimers();
    if (this.host !== before) this.#ports.moved(this, before);
    for (const effect of step.effects) this.#carryOut(effect);
    if (step.state.kind !== "ended") return;
    this.#ports.ended(this);
    const tookMs = this.#ports.clock.monotonic() - this.#startedAtMs;
    this.#ports.events.buildEnded(this.#server.uuid, step.state.as, tookMs, this.#span.traceId);
    this.#span.end(step.state.as === "active" ? null : step.state.as);
  }

  #carryOut(effect: BuildEffect): void {
    const { events } = this.#ports;
    const server = this.#server.uuid;
    switch (effect.kind) {
      case "call-host":
        this.#callHost(effect.selection);
        break;
      case "commit-active":
        this.#activate(effect.selection);
        break;
      case "hop":
        this.#hop(effect);
        break;
      case "commit-error":
        this.#fail(effect);
        break;
      case "start-guest":
        this.#start(effect.selection);
        break;
      case "destroy-guest":
        if (this.#failedByWord === effect.selection) this.#send(effect.selection, "destroy");
        else this.#clear(effect.selection);
        break;
      case "settle-guest":
        this.#clear(effect.selection);
        break;
      case "tell-active":
        this.#tell(EventKind.EVENT_KIND_SERVER_ACTIVE, effect.selection, "");
        break;
      case "tell-attempt-failed":
        events.attemptFailed(server, this.#hostOf(effect.selection), effect.reason);
        this.#tell(EventKind.EVENT_KIND_ATTEMPT_FAILED, effect.selection, effect.reason);
        break;
      case "tell-error":
        events.buildFailed(server, effect.message);
        this.#tell(EventKind.EVENT_KIND_SERVER_ERROR, effect.selection, effect.message);
        break;
      default:
        effect satisfies never;
    }
  }

  #callHost(selection: number): void {
    const chosen = this.#selections[selection];
    if (chosen === undefined) {
      this.#step({ kind: "failed", selection, failure: "abort", reason: "the task does not name this host" });
      return;
    }
    this.#setDeadline(selection);
    if (this.#ports.streamOf(chosen.host) === null) {
      this.#awaitHost(selection);
      return;
    }
    this.#timers.stopWaiting();
    const isWanted = () => this.#isAt(selection);
    const place = { host: chosen.host, attemptId: attemptIdOf(this.tenure.taskId, selection) };
    const meeting = this.#ports.needs.meet(this.#server, place, { isWanted, tenure: this.tenure });
    if (meeting === null) this.#order(selection, chosen, NO_NEEDS);
    else
      meeting.then(
        (outcome) => this.#met(selection, chosen, outcome),
        () => this.#release(),
      );
  }

  /** Whether the host of the selection is still to prepare the guest. */
  #isAt(selection: number): boolean {
    return !this.#abandoned && this.#state?.kind === "preparing" && this.#state.selection === selection;
  }

  #met(selection: number, chosen: Selection, outcome: NeedsOutcome): void {
    if (!this.#isAt(selection)) return;
    if (outcome.kind === "met") this.#order(selection, chosen, outcome);
    else if (outcome.kind === "failed") {
      const reason = keptReason(outcome.reason);
      this.#step({ kind: "failed", selection, failure: outcome.final ? "abort" : "reschedule", reason });
    }
  }

  #order(selection: number, chosen: Selection, needs: MetNeeds): void {
    const stream = this.#ports.streamOf(chosen.host);
    // It was lost while the ports were being bound and the volumes connected.
    if (stream === null) {
      this.#awaitHost(selection);
      return;
    }
    this.#maybeCalled = selection;
    const build = {
      host: chosen.host,
      attemptId: attemptIdOf(this.tenure.taskId, selection),
      server: withNeeds(this.#server, needs),
      allocation: chosen.allocation,
      timeoutMs: this.#ports.settings.attemptTimeoutMs,
      traceparent: this.#span.traceparent,
      ...NEW_SERVER,
    };
    stream.send({ body: { $case: "build", value: build } });
  }

  /** Sets the deadline of the selection's attempt once. */
  #setDeadline(selection: number): void {
    if (this.#called === selection) return;
    const { attemptTimeoutMs, hostGraceMs } = this.#ports.settings;
    this.#called = selection;
    const reason = `no outcome within ${Math.round((2 * attemptTimeoutMs) / 1_000)} s`;
    this.#timers.stopDeadline();
    this.#timers.setDeadline(2 * attemptTimeoutMs + hostGraceMs, () => this.#giveUp(selection, reason));
  }

  #awaitHost(selection: number): void {
    if (this.#timers.waiting !== null) return;
    // The promise rejects only when the conductor stops.
    const leave = () => void this.#leaveHost(selection).catch(() => this.abandon());
    this.#timers.wait(this.#ports.settings.hostGraceMs, leave);
  }

  /** Acts when the grace period is over: releases the task to a conductor that has the host connected, or goes on to the next host. */
  async #leaveHost(selection: number): Promise<void> {
    const grace = this.#timers.waiting;
    const unreached = await this.#ports.releaser.tryRelease(this.tenure, this.#hostOf(selection), RELEASES_MAX);
    if (unreached === "released") this.#release();
    // The host has connected in the meantime.
    if (this.#timers.waiting !== grace) return;
    const reason = "the host is not connected";
    if (this.#maybeCalled === selection) this.#giveUp(selection, reason);
    else this.#step({ kind: "uncalled", selection, reason });
  }

  #giveUp(selection: number, reason: string): void {
    this.#step({ kind: "failed", selection, failure: "reschedule", reason });
  }

  #hop({ from, to, reason, result }: Extract<BuildEffect, { kind: "hop" }>): void {
    const alternate = this.#selections[to] as Selection;
    const change = hopChange(this.#server, alternate);
    const hop = { ...this.tenure, from, reason, result, to, toHost: alternate.host, change, group: this.#server.group };
    this.#ports.commits.hop(hop).then(
      (outcome) => {
        if (outcome.kind === "skipped")
          this.#ports.events.alternateSkipped(this.#server.uuid, alternate.host, outcome.why);
        if (outcome.kind === "committed") this.#step({ kind: "hop-committed" });
        else this.#step(outcome.kind === "skipped" ? { kind: "hop-skipped", why: outcome.why } : { kind: "fenced" });
      },
      () => this.#release(),
    );
  }

  #activate(selection: number): void {
    this.#startsOn = this.#ports.streamOf(this.#hostOf(selection));
    this.#ports.commits.commitActive({ ...this.tenure, selection }).then(
      ({ kind }) => {
        if (kind === "quarantined") this.#step({ kind: "active-refused", reason: GUEST_IN_QUARANTINE });
        else this.#step({ kind: kind === "committed" ? "active-committed" : "fenced" });
      },
      () => this.#release(),
    );
  }

  #fail({ selection, attemptReason, message }: Extract<BuildEffect, { kind: "commit-error" }>): void {
    this.#ports.commits.commitError({ ...this.tenure, selection, attemptReason, reason: message }).then(
      ({ kind }) => this.#step({ kind: kind === "committed" ? "error-committed" : "fenced" }),
      () => this.#release(),
    );
  }

  /** Leaves the task as it is in the database. The next conductor to take it, possibly this one, continues from there. */
  #release(): void {
    if (this.#abandoned) return;
    this.#ports.ended(this);
    this.abandon();
  }

  /** If the host was lost since the commit began, its server may have left it, so the row is read again before the guest is started. */
  #start(selection: number): void {
    if (this.#ports.streamOf(this.#hostOf(selection)) === this.#startsOn) this.#send(selection, "start");
    else this.#clear(selection);
  }

  /** Sends nothing to a host that is not connected. Its guests are compared with the database when it comes back. */
  #send(selection: number, what: "start" | "destroy"): void {
    const host = this.#hostOf(selection);
    const value = { host, serverUuid: this.#server.uuid, attemptId: attemptIdOf(this.tenure.taskId, selection) };
    const stream = this.#ports.streamOf(host);
    if (what === "destroy") stream?.send({ body: { $case: "destroy", value } });
    else stream?.send({ body: { $case: "start", value: { ...value, revision: 0, interfaces: undefined, files: [] } } });
  }

  #clear(selection: number): void {
    const name = { host: this.#hostOf(selection), serverUuid: this.#server.uuid };
    // The promise rejects only when the conductor stops.
    this.#ports.guests.clear({ ...name, attemptId: attemptIdOf(this.tenure.taskId, selection) }).catch(() => {});
  }

  #tell(kind: EventKind, selection: number, reason: string): void {
    this.#ports.tell({ kind, serverUuid: this.#server.uuid, host: this.#hostOf(selection), reason });
  }

  #hostOf(selection: number): string {
    return this.#selections[selection]?.host ?? "";
  }

  #stopTimers(): void {
    this.#timers.stop();
    this.#called = -1;
  }
}

/** A new server does not come from another host, so these fields are empty. */
const NEW_SERVER = { movedFromHost: "", movedFromAttemptId: "", movedBy: "" };

/** A build leaves a host after this many releases, since no other conductor reaches it either. */
const RELEASES_MAX = 3;

function failureOf(report: AttemptReport): AttemptFailure {
  return report.failure === FailureKind.FAILURE_KIND_ABORT ? "abort" : "reschedule";
}
