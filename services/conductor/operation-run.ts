import type { AgentStream } from "../../core/agent/link.ts";
import type { TakenTask } from "../../core/stores/cell/cell-store.ts";
import { GUEST_IN_QUARANTINE } from "../../core/stores/cell/quarantine.ts";
import { keptReason, type PastAttempt } from "../../core/tasks/failure-message.ts";
import { destinationOf, factsOf } from "../../core/tasks/operation-facts.ts";
import { OPERATIONS } from "../../core/tasks/operation-kinds.ts";
import {
  beginOperation,
  type MachineStep,
  type OperationEffect,
  type OperationEvent,
  type OperationState,
  type OperationWorld,
  stepOperation,
} from "../../core/tasks/operation-machine.ts";
import { edgesOf } from "../../core/tasks/operation-stages.ts";
import type { OperationPosition, StepWrite } from "../../core/tasks/operation-step.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import {
  type AttemptReport,
  type ConductorMessage,
  type DestroyReport,
  FailureKind,
  GuestState,
  type HandOffProgress,
  type OrderReport,
} from "../../proto/gen/berth/agent.ts";
import { DestinationNetwork } from "./destination-network.ts";
import { EvacuatedSource } from "./evacuated-source.ts";
import { HeldTask, type Permission } from "./held-task.ts";
import {
  type AskedGuest,
  attemptLimit,
  isAskedOfCinder,
  isGivenUp,
  ORDER_WAITS,
  orderIdOf,
  orderOf,
  placeAsked,
  releasesMax,
  retryDelayMs,
  triesMax,
} from "./operation-orders.ts";
import { OrderBinding } from "./order-binding.ts";
import type { TaskSpan } from "./ports.ts";
import { PreparedDestinations } from "./prepared-destinations.ts";
import { GUEST_EXISTS, guestOf, IN_QUARANTINE, LEFT_ON_WORD, type RefusalFindings } from "./read-refusal.ts";
import { RefusalReader } from "./refusal-reader.ts";
import { RunTimers } from "./run-timers.ts";
import type { RunPorts, TaskRun } from "./task-run.ts";
import { tellOperation } from "./tell-operation.ts";

/**
 * Carries out one operation, following `stepOperation`. It has two timers: one for a host that is not connected or must be asked again, and a deadline for the host's work. Only harmless
 * orders (prepare, hand over at rest) are given up at the deadline. A host that was told to start or destroy a guest, or to hand one over that runs, is asked until it answers, or until the route can do without it.
 */
export class OperationRun implements TaskRun {
  readonly tenure: Tenure;
  readonly #ports: RunPorts;
  readonly #span: TaskSpan;
  readonly #world: OperationWorld;
  #state: OperationState | null = null;
  #abandoned = false;
  #asked: AskedGuest | null = null;
  readonly #destinations: PreparedDestinations;
  readonly #binding: OrderBinding;
  readonly #held: HeldTask;
  readonly #evacuated: EvacuatedSource;
  readonly #refusals: RefusalReader;
  readonly #timers: RunTimers;
  readonly #network: DestinationNetwork;

  constructor(taken: TakenTask, span: TaskSpan, ports: RunPorts, arrivals: number) {
    const facts = factsOf(taken.task);
    this.tenure = { taskId: taken.task.id, serverUuid: facts.after.uuid, epoch: taken.epoch };
    this.#ports = ports;
    this.#timers = new RunTimers(ports.clock);
    this.#span = span;
    this.#destinations = new PreparedDestinations(facts, this.tenure, ports);
    this.#binding = new OrderBinding(ports.needs, facts, this.tenure, (at) => this.#destinations.devicesOf(at));
    this.#held = new HeldTask(facts, this.tenure, arrivals, ports);
    this.#network = new DestinationNetwork(facts, this.tenure, ports, () => this.#binding.preparedPorts);
    this.#refusals = new RefusalReader(facts, this.tenure, ports, {
      isAt: (step) => this.#isAt(step),
      isEmpty: () => this.#timers.restartDeadline(),
      released: () => this.#release(),
      answered: (asked, failed) => this.#answered(asked, failed),
      askAgain: (asked, tell, failed) => this.#askAgainLater(asked, tell, failed),
      step: (event) => this.#step(event),
      abandon: () => this.abandon(),
    });
    this.#evacuated = new EvacuatedSource(facts.source, ports);
    this.#world = { facts, unseenMs: ports.settings.unseenMs };
  }

  get host(): string | null {
    return this.#asked?.place.host ?? null;
  }

  get kind(): string {
    return this.#world.facts.kind;
  }

  /** Whether this version's route of the operation has the stage. */
  knows(stage: string): boolean {
    return edgesOf(this.#world.facts.kind, stage) !== null;
  }

  /** Continues from the position that the database has. */
  begin(position: OperationPosition, past: readonly PastAttempt[]): void {
    if (!this.#abandoned) this.#apply(beginOperation(this.#world, position, past));
  }

  abandon(): void {
    if (this.#abandoned) return;
    this.#abandoned = true;
    this.#timers.stop();
    this.#span.end(this.#state?.kind === "ended" ? null : "another conductor continues");
  }

  hostConnected(): void {
    if (this.#asked !== null) this.#step({ kind: "host-connected" });
  }

  hostLost(): void {
    if (this.#asked !== null && !isAskedOfCinder(this.#asked.ask)) this.#awaitHost(this.#asked);
  }

  /** Handles an agent's report on a guest that it prepares. The guest of an abandoned attempt is settled by the database. */
  reported(report: AttemptReport, selection: number): void {
    const asked = this.#asked;
    const expected = destinationOf(this.#world.facts, selection)?.host;
    if (report.host !== expected || report.serverUuid !== this.tenure.serverUuid) {
      this.#ports.events.reportDropped(null, report.host, "attempt");
      return;
    }
    const answersQuestion = this.#destinations.told(report, selection);
    const isAt = asked?.selection === selection;
    if (isAt && (asked.ask === "hand-over" || (asked.ask === "start-destination" && answersQuestion))) {
      if (answersQuestion) this.#send();
    } else if (asked?.ask !== "prepare" || asked.selection !== selection) {
      if (report.state === GuestState.GUEST_STATE_PREPARED) this.#clear(selection);
    } else if (GUEST_EXISTS.includes(report.state)) {
      const end = (event: OperationEvent | null) => (event === null ? this.#release() : this.#step(event));
      if (this.#network.reported(asked, report.state, () => this.#isAt(asked.step), end)) this.#timers.stopDeadline();
      else this.#step({ kind: "done", step: asked.step });
    } else if (report.state === GuestState.GUEST_STATE_FAILED) this.#leaveFailed(asked, report);
  }

  #isAt(step: number): boolean {
    return this.#asked?.step === step && !this.#abandoned;
  }

  /**
   * A restored database may have forgotten that this very guest was started. Then it is put into quarantine before the operation goes on, so that no
   * other guest is started beside it.
   */
  #leaveFailed({ step, place }: AskedGuest, { failure, reason: told }: AttemptReport): void {
    const final = failure === FailureKind.FAILURE_KIND_ABORT;
    const goOn = () => this.#step({ kind: "failed", step, reason: keptReason(told), final });
    // The promise rejects only when the conductor stops.
    this.#ports.guests.mayDestroy(guestOf(this.#world.facts, place)).then(goOn, () => this.abandon());
  }

  ordered(report: OrderReport): void {
    if (this.#evacuated.ordered(report)) return;
    const asked = this.#asked;
    if (asked === null || report.orderId !== orderIdOf(this.tenure.taskId, asked)) return;
    if (report.host !== asked.place.host) this.#ports.events.reportDropped(null, report.host, "ordered");
    else if (report.failed === "") this.#binding.afterOrder(asked, report, (why) => this.#answered(asked, why));
    else this.#refused(asked, report.failed, report);
  }

  progressed(report: HandOffProgress): void {
    const asked = this.#asked;
    if (asked?.place.host === report.host && report.orderId === orderIdOf(this.tenure.taskId, asked))
      this.#ports.noteTransfer(this.#world.facts.migrationUuid, report);
  }

  #refused(asked: AskedGuest, failed: string, found: RefusalFindings = {}): void {
    this.#refusals.act(asked, failed, found);
  }

  destroyed(report: DestroyReport): void {
    const asked = this.#asked;
    if (asked?.ask.startsWith("destroy") !== true || report.attemptId !== asked.place.attemptId) return;
    if (report.host === asked.place.host) this.#answered(asked, report.failed);
  }

  #answered(asked: AskedGuest, failed: string): void {
    if (failed === "") return void this.#step({ kind: "done", step: asked.step });
    // A stage that waits for success uses this retry. Any other stage cancels it when the step changes.
    this.#askAgainLater(asked, asked.ask.startsWith("destroy") ? "leftBehind" : null, failed);
    if (asked.tries >= triesMax(asked.ask))
      this.#step({ kind: "failed", step: asked.step, reason: keptReason(failed), final: false });
  }

  /** Operators are told once, when the tries are over after which a failure counts as the host's answer. */
  #askAgainLater(asked: AskedGuest, tell: "leftBehind" | "startInDoubt" | null, failed: string): void {
    if (tell !== null && asked.tries === triesMax(asked.ask))
      this.#ports.events[tell](this.tenure.serverUuid, asked.place.host, failed);
    this.#asked = { ...asked, tries: asked.tries + 1 };
    this.#timers.wait(retryDelayMs(asked.tries), () => this.#send());
  }

  #step(event: OperationEvent): void {
    if (!this.#abandoned && this.#state !== null) this.#apply(stepOperation(this.#world, this.#state, event));
  }

  #apply(step: MachineStep): void {
    const before = this.host;
    const { state } = step;
    const isRepeat = this.#state?.kind === "asking" && state.kind === "asking" && this.#state.step === state.step;
    this.#state = state;
    if (!isRepeat) this.#timers.stop();
    const asks = step.effects.find((effect) => effect.kind === "ask");
    const place = asks === undefined ? null : placeAsked(this.#world.facts, asks.ask, asks.selection);
    if (asks !== undefined && place !== null)
      this.#asked = { ...asks, place, tries: isRepeat ? (this.#asked?.tries ?? 1) : 1 };
    else if (state.kind !== "asking") this.#asked = null;
    if (this.host !== before) this.#ports.moved(this, before);
    for (const effect of step.effects) this.#carryOut(effect);
    if (state.kind !== "ended") return;
    this.#ports.ended(this);
    this.#ports.events.operationEnded(this.tenure.serverUuid, this.#world.facts.kind, state.as);
    this.#span.end(state.as === "succeeded" ? null : state.as);
  }

  #carryOut(effect: OperationEffect): void {
    switch (effect.kind) {
      case "ask":
        if (this.#asked !== null) this.#ask(this.#asked);
        else this.#step({ kind: "failed", step: effect.step, reason: "no such guest", final: true });
        break;
      case "commit":
        if (effect.delayMs === 0) this.#commit(effect.step, effect.write);
        else this.#timers.wait(effect.delayMs, () => this.#commit(effect.step, effect.write));
        break;
      case "clear":
        this.#clear(effect.selection);
        break;
      case "tell-wait":
      case "tell-attempt-failed":
      case "tell-end":
        tellOperation(this.#world.facts, effect, this.#ports);
        break;
      default:
        effect satisfies never;
    }
  }

  /** Called each time the stage is entered and each time its host comes back. */
  #ask(asked: AskedGuest): void {
    if (isGivenUp(asked.ask)) {
      const { ms, event } = attemptLimit(this.#world.facts.kind, asked, this.#ports.settings);
      this.#timers.setDeadline(ms, () => this.#step(this.#refusals.meaningOfEnd(asked, event)));
    }
    if (asked.ask === "start-destination" && OPERATIONS[this.#world.facts.kind].source === "fenced") {
      // The promise rejects only when the conductor stops.
      this.#startEvacuated(asked).catch(() => this.abandon());
    } else this.#send();
  }

  /** A destination may start only after the guest at the source of an evacuation stands still. */
  async #startEvacuated(asked: AskedGuest): Promise<void> {
    const stop = await this.#evacuated.stop(this.tenure, orderIdOf(this.tenure.taskId, asked), asked.revision);
    if (stop.kind === "released") this.#release();
    else if (stop.kind === "runs")
      this.#step({ kind: "failed", step: asked.step, reason: keptReason(stop.reason), final: true });
    else if (stop.kind === "stands" && this.#isAt(asked.step)) this.#send();
  }

  #send(): void {
    const asked = this.#asked;
    if (asked === null || this.#abandoned) return;
    const stream = this.#ports.streamOf(asked.place.host);
    if (stream === null && !isAskedOfCinder(asked.ask)) this.#awaitHost(asked);
    else if (this.#held.holdsUp(asked, (permission) => this.#permitted(permission, asked.step)))
      this.#timers.stopWaiting();
    else this.#sendOver(stream, asked);
  }

  #sendOver(stream: AgentStream | null, asked: AskedGuest): void {
    // The source of an evacuation is asked once more, because it may have come back while the ports were being bound. So is Cinder by a stage that waits for it.
    const bound = (failed: string, isUnknown: boolean) => {
      if (isUnknown) this.#askAgainLater(this.#asked ?? asked, null, failed);
      if (isUnknown) this.#step({ kind: "gone", step: asked.step, reason: keptReason(failed) });
      else if (failed === "") this.#ask(this.#asked ?? asked);
      // A destination is left only on its source's word, and Cinder's or Neutron's is none. So the guests are looked at.
      else if (LEFT_ON_WORD.includes(asked.stage)) this.#refused(this.#asked ?? asked, failed);
      else this.#answered(this.#asked ?? asked, failed);
    };
    const unfit = this.#destinations.whyNotTo(asked);
    if (this.#destinations.lacks(asked)) this.#askDestination(asked);
    else if (unfit !== null) this.#step({ kind: "failed", step: asked.step, reason: unfit, final: false });
    else if (this.#binding.holdsUp(asked, () => this.#isAt(asked.step), bound)) return;
    else if (stream === null || isAskedOfCinder(asked.ask)) this.#answered(asked, "");
    else if (asked.stage === "recalling" && !asked.isRecalled) this.#refusals.beforeRecall(asked);
    else if (asked.ask.startsWith("destroy")) this.#destroyJudged(asked, stream).catch(() => this.abandon());
    else {
      this.#network.ordered(asked.step);
      stream.send(this.#orderFor(asked));
      if (isGivenUp(asked.ask)) this.#timers.stopWaiting();
      else this.#timers.wait(ORDER_WAITS.answerMs, () => this.#send());
    }
  }

  #permitted(permission: Permission, step: number): void {
    if (permission === "lost") this.#release();
    else if (this.#asked === null || this.#abandoned) return;
    else if (permission === "given" || this.#asked.step !== step) this.#ask(this.#asked);
    else {
      this.#timers.wait(ORDER_WAITS.retryMsMax, () => this.#send());
      this.#step({ kind: "held-up", step, reason: GUEST_IN_QUARANTINE });
    }
  }

  #orderFor(asked: AskedGuest): ConductorMessage {
    const { traceparent } = this.#span;
    const timeoutMs = this.#ports.settings.attemptTimeoutMs;
    const at = { place: asked.place, needs: this.#binding.needsFor(asked.step), timeoutMs, traceparent };
    return orderOf(this.#world.facts, asked, { ...at, listensAt: this.#destinations.addressOf(asked.selection) });
  }

  #askDestination(asked: AskedGuest): void {
    const waitMs = this.#destinations.ask(asked, this.#span.traceparent);
    const goOn = (end: "again" | "released" | "unknown") => {
      if (end === "released") this.#release();
      else if (this.#asked?.step === asked.step) this.#send();
    };
    const giveUp = () => void this.#destinations.doWithout(asked.selection).then(goOn, () => this.abandon());
    this.#timers.wait(waitMs, giveUp);
  }

  async #destroyJudged(asked: AskedGuest, stream: AgentStream): Promise<void> {
    this.#timers.wait(ORDER_WAITS.answerMs, () => this.#send());
    const verdict = await this.#ports.guests.mayDestroy(guestOf(this.#world.facts, asked.place));
    if (this.#asked?.step !== asked.step || this.#abandoned) return;
    if (verdict === "kept") this.#answered(asked, IN_QUARANTINE);
    else if (verdict === "may") stream.send(this.#orderFor(asked));
    // If the host was lost in the meantime, the run is already waiting for it.
    else if (this.#ports.streamOf(asked.place.host) !== null)
      this.#timers.wait(ORDER_WAITS.retryMsMax, () => this.#send());
  }

  #awaitHost(asked: AskedGuest): void {
    this.#timers.wait(this.#ports.settings.hostGraceMs, () => void this.#leaveHost(asked).catch(() => this.abandon()));
  }

  /**
   * Acts when the grace period is over: releases the task to a conductor that has the host connected. Otherwise a host that is down counts as
   * gone, or as fenced when an operator has forced it down.
   */
  async #leaveHost(asked: AskedGuest): Promise<void> {
    const wait = this.#timers.waiting;
    const unreached = await this.#ports.releaser.tryRelease(this.tenure, asked.place.host, releasesMax(asked.ask));
    if (unreached === "released") this.#release();
    else if (this.#timers.waiting !== wait || this.#asked?.step !== asked.step) return;
    else if (unreached === "fenced") this.#step(this.#refusals.meaningOfFence(asked));
    else {
      // A stage that waits for its host uses this retry. Any other stage cancels it when the step changes.
      this.#timers.wait(ORDER_WAITS.lookAgainMs, () => this.#leaveHostOrAsk());
      const gone = { kind: "gone", step: asked.step, reason: `${asked.place.host} is not connected` } as const;
      if (unreached === "down" || asked.ask === "prepare") this.#step(this.#refusals.meaningOfEnd(asked, gone));
    }
  }

  #leaveHostOrAsk(): void {
    const asked = this.#asked;
    if (asked !== null && this.#ports.streamOf(asked.place.host) === null)
      this.#leaveHost(asked).catch(() => this.abandon());
    else this.#send();
  }

  #commit(step: number, write: StepWrite): void {
    const arrivals = this.#ports.arrivals();
    this.#ports.commits.commitStep({ ...this.tenure, ...write, step }).then(
      (outcome) => {
        if (outcome.kind === "committed")
          this.#held.confirmed(arrivals, write.startsAttempt === undefined ? null : step + 1);
        if (outcome.kind === "refused" && write.stage === "preparing")
          this.#ports.events.alternateSkipped(this.tenure.serverUuid, write.migration?.destHost ?? "", outcome.why);
        this.#step(outcome.kind === "fenced" ? outcome : { ...outcome, step });
      },
      () => this.#release(),
    );
  }

  #clear(selection: number): void {
    const place = destinationOf(this.#world.facts, selection);
    if (place !== null) this.#ports.guests.clear(guestOf(this.#world.facts, place)).catch(() => {});
  }

  /** Leaves the task as it is in the database. The next conductor to take it, possibly this one, continues from there. */
  #release(): void {
    if (this.#abandoned) return;
    this.#ports.ended(this);
    this.abandon();
  }
}
