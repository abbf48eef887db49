import {
  describeHeldUp,
  describeRefusedReturn,
  describeRefusedStart,
  describeWait,
  reasonAfter,
} from "./describe-wait.ts";
import { exhaustedMoveMessage, type PastAttempt } from "./failure-message.ts";
import { destinationOf, type OperationFacts } from "./operation-facts.ts";
import { OPERATIONS } from "./operation-kinds.ts";
import { ABORTED_ON_REQUEST, isAborted, isEmptied, isRecalled, MARKS, reasonAt } from "./operation-marks.ts";
import { type Ask, isSuccess, isWayBack, type Stage, type Target } from "./operation-routes.ts";
import { abortedTo, edgesOf, stageOnRoute } from "./operation-stages.ts";
import type { OperationPosition, OperationSignal, StepWrite } from "./operation-step.ts";
import { noteOf, type Transition, writeOf } from "./operation-writes.ts";

/** The position of an operation according to the cell's database. `step` counts the committed transitions. */
interface Position {
  readonly stage: Stage;
  readonly selection: number;
  readonly step: number;
  readonly revision: number;
  readonly reason: string;
  readonly past: readonly PastAttempt[];
  /** The wait whose note is in the database, where people see it, since this stage was entered. */
  readonly shownWait: Wait | null;
}

/**
 * For an answer of the asked host, for the decision about another guest in quarantine, or for a guest that may be the last copy. The last wait is noted
 * again when its cause changes, but not for ever: `times` counts its notes.
 */
type Wait =
  | { readonly kind: "host" | "quarantine" }
  | { readonly kind: "kept"; readonly cause: string; readonly times: number };

/** A host whose reasons change all the time does not have each of them written. */
const KEPT_NOTES_MAX = 20;

export type OperationState =
  /** The stage's question was sent to a host. `signal` is `force` when a force was requested as the stage was entered. */
  | ({ readonly kind: "asking"; readonly signal: OperationSignal | null } & Position)
  /** The transition to the next stage is being written. */
  | { readonly kind: "writing"; readonly at: Position; readonly transition: Transition; readonly refusals: number }
  /**
   * A note about the wait is being written. `next` is a transition that was refused and will be tried again afterwards. If it is null,
   * the host is asked again.
   */
  | { readonly kind: "noting"; readonly at: Position; readonly next: Transition | null }
  /** `refused`: this version does not know the stage. The next conductor that takes the task tries again. */
  | {
      readonly kind: "ended";
      readonly as: "succeeded" | "given-up" | "lost" | "fenced" | "refused";
    };

export type OperationEvent =
  /** An answer carries the `step` of the position that asked. */
  | { readonly kind: "done"; readonly step: number }
  /** `final`: no other destination could succeed. */
  | { readonly kind: "failed"; readonly step: number; readonly reason: string; readonly final: boolean }
  /** The asked host was down for longer than the grace, and it is unknown what it did. */
  | { readonly kind: "gone"; readonly step: number; readonly reason: string }
  /** An operator has forced down the asked host, so nothing runs there. */
  | { readonly kind: "host-fenced"; readonly step: number; readonly reason: string }
  /**
   * The source that was to hand over has no guest, and the destination's guest runs: the source has handed over in commits that the database
   * has lost. Or the destination's guest is the only one, and starts if it has received everything. The same for a source that was to go on after an abort.
   */
  | { readonly kind: "arrived"; readonly step: number }
  /** The order was not given, because another guest of the server is in quarantine, and may run. */
  | { readonly kind: "held-up"; readonly step: number; readonly reason: string }
  /** Guests have obeyed orders whose commits the database has lost, and it is unknown where the server is now. */
  | { readonly kind: "forgotten"; readonly step: number; readonly reason: string }
  /** The destination cannot start the guest, or is silent, and its guest is kept, since it may be the last copy. The host is asked again. `cause` is the same as long as `reason` need not be shown again. */
  | { readonly kind: "kept"; readonly step: number; readonly reason: string; readonly cause: string }
  /** The source is about to be told to go on after an abort. The database has to know that first: from then on its guest may have run. */
  | { readonly kind: "recalls"; readonly step: number }
  /** The source of a move at rest has said that it has no guest, while the destination is silent. The database has to know that, since the silence of both would lead back to the source. */
  | { readonly kind: "empties"; readonly step: number }
  /** The source has lost its guest, and the destination's one may not be whole. It is kept, since it may be the last copy. */
  | { readonly kind: "stranded"; readonly step: number; readonly reason: string }
  /** The asked host has connected, perhaps again, and has not received the question over this connection. */
  | { readonly kind: "host-connected" }
  /** The answer to the commit of this step. */
  | { readonly kind: "committed"; readonly step: number; readonly revision: number }
  | { readonly kind: "refused"; readonly step: number; readonly why: string }
  | { readonly kind: "fenced" };

/** Each may be carried out twice: hosts recognise attempts and order ids, and steps are counted and fenced. */
export type OperationEffect =
  | {
      readonly kind: "ask";
      readonly ask: Ask;
      readonly stage: Stage;
      readonly selection: number;
      readonly step: number;
      readonly revision: number;
      /** Only for a live migration: complete it now. */
      readonly force: boolean;
      /** The source may have been told before to go on after an abort, perhaps by another conductor. */
      readonly isRecalled: boolean;
      /** The source of a move at rest has said before, perhaps to another conductor, that it has no guest to hand over. */
      readonly isEmptied: boolean;
    }
  | { readonly kind: "commit"; readonly step: number; readonly write: StepWrite; readonly delayMs: number }
  /** Publishes the reason for the wait. */
  | { readonly kind: "tell-wait"; readonly note: string }
  /** The guest no longer belongs to the move, and is destroyed if the database permits it. */
  | { readonly kind: "clear"; readonly selection: number }
  | { readonly kind: "tell-attempt-failed"; readonly selection: number; readonly reason: string }
  | { readonly kind: "tell-end"; readonly as: "succeeded" | "given-up" | "lost"; readonly reason: string };

export interface MachineStep {
  readonly state: OperationState;
  readonly effects: readonly OperationEffect[];
}

/** The constant input of a machine. */
export interface OperationWorld {
  readonly facts: OperationFacts;
  readonly unseenMs: number;
}

/** The database should never refuse such a step. It is tried this often before the refusal is shown to people. */
const REFUSALS_MAX = 5;
const REFUSED_AGAIN_MS = 1_000;
const REFUSED_AGAIN_MS_MAX = 30_000;

type Answer = Extract<OperationEvent, { kind: "done" | "failed" | "gone" | "host-fenced" }>;

/** (taken) → asking, at the stage that the database has; or, if the operation was aborted in time, on the way back. */
export function beginOperation(
  world: OperationWorld,
  position: OperationPosition,
  past: readonly PastAttempt[],
): MachineStep {
  const { stage, selection, step, revision, reason, signal } = position;
  if (edgesOf(world.facts.kind, stage) === null) return { state: { kind: "ended", as: "refused" }, effects: [] };
  const at: Position = {
    stage: stageOnRoute(world.facts.kind, position),
    selection,
    step,
    revision,
    reason,
    past,
    shownWait: null,
  };
  // A move whose destination may have the only guest is not taken back.
  const back = signal === "abort" && !isEmptied(at) ? abortedTo(world.facts.kind, at.stage) : null;
  if (back !== null) return write(world, at, { to: back, selection, reason: ABORTED_ON_REQUEST, noted: [] });
  return enter(world, at, signal);
}

/** One step. Events for which the state does not wait, and answers to another step, change nothing. */
export function stepOperation(world: OperationWorld, state: OperationState, event: OperationEvent): MachineStep {
  const unchanged: MachineStep = { state, effects: [] };
  if (state.kind === "ended") return unchanged;
  if (event.kind === "fenced") return { state: { kind: "ended", as: "fenced" }, effects: [] };
  if (state.kind === "writing") {
    if (!("step" in event) || event.step !== state.at.step) return unchanged;
    if (event.kind === "committed") return committed(world, state.at, state.transition, event.revision);
    return event.kind === "refused" ? refused(world, state, event.why) : unchanged;
  }
  if (state.kind === "noting") {
    if (event.kind !== "committed" || event.step !== state.at.step) return unchanged;
    return shown(world, state.at, state.next, event.revision);
  }
  switch (event.kind) {
    case "host-connected":
      return { state, effects: [askOf(world, state, state.signal)] };
    case "done":
    case "failed":
    case "gone":
    case "host-fenced":
      if (
        event.step !== state.step ||
        (state.shownWait?.kind === "host" && targetOf(world, state, event) === state.stage)
      )
        return unchanged;
      return answered(world, state, event);
    case "arrived":
      if (event.step !== state.step || !["handing-over", "recalling"].includes(state.stage)) return unchanged;
      return write(world, state, { to: "starting", selection: state.selection, reason: state.reason, noted: [] });
    case "held-up":
      return event.step === state.step ? heldUp(world, state, event.reason) : unchanged;
    case "kept":
      return event.step === state.step ? kept(world, state, event) : unchanged;
    case "recalls":
    case "empties": {
      const { stage: to, reason } = MARKS[event.kind];
      if (event.step !== state.step || state.stage !== to || state.reason === reason) return unchanged;
      return write(world, state, { to, selection: state.selection, reason, noted: [] });
    }
    case "forgotten":
    case "stranded":
      if (event.step !== state.step) return unchanged;
      return write(world, state, {
        ...{ to: "lost", selection: state.selection, reason: event.reason, noted: [] },
        isForgotten: event.kind === "forgotten",
      });
    default:
      return unchanged;
  }
}

/** The question of the stage. No host is asked to start a server that should neither run nor be paused. */
export function asksOf({ facts }: OperationWorld, stage: Stage): Ask {
  const ask = edgesOf(facts.kind, stage)?.ask ?? "nothing";
  return (ask === "start-destination" || ask === "start-source") && !facts.runs && !facts.pauses ? "nothing" : ask;
}

function askOf(world: OperationWorld, at: Position, signal: OperationSignal | null): OperationEffect {
  const { stage, selection, step, revision } = at;
  const order = { ask: asksOf(world, stage), stage, selection, step, revision, force: signal === "force" };
  return { kind: "ask", ...order, isRecalled: isRecalled(at), isEmptied: isEmptied(at) };
}

/** (transition committed) → asking or, when the stage asks no host, the next transition. */
function enter(world: OperationWorld, at: Position, signal: OperationSignal | null): MachineStep {
  if (asksOf(world, at.stage) === "nothing") return answered(world, at, { kind: "done", step: at.step });
  return { state: { ...at, kind: "asking", signal }, effects: [askOf(world, at, signal)] };
}

/** The target of the answer, or null when this version does not know the stage. */
function targetOf({ facts }: OperationWorld, { stage }: Position, { kind }: Answer): Target | null {
  const edges = edgesOf(facts.kind, stage);
  return edges === null ? null : edges[kind === "host-fenced" ? "fenced" : kind];
}

/** asking → writing the transition of the answer; → noting the wait, when the answer leads to the same stage. */
function answered(world: OperationWorld, at: Position, event: Answer): MachineStep {
  const target = targetOf(world, at, event);
  if (target === null) return { state: { kind: "ended", as: "refused" }, effects: [] };
  const reason = reasonAfter(world.facts, isEmptied(at) ? { ...at, reason: "" } : at, event);
  if (target === at.stage && event.kind !== "done")
    return note(
      world,
      { ...at, reason: event.kind === "failed" ? reason : at.reason, shownWait: { kind: "host" } },
      null,
      {
        text: describeWait(world.facts, { ...at, isRecalled: isRecalled(at) }, event),
        // A server that another note has put into ERROR stays there until the operation goes on, with the present reason.
        isError: at.shownWait?.kind === "quarantine" || at.shownWait?.kind === "kept",
      },
    );
  if (target === "another") {
    const failed = pastOf(world, at.selection, "failed", reason);
    const isFinal = (event.kind === "failed" && event.final) || isAborted(at);
    if (!isFinal) return another(world, at, at.selection + 1, [failed]);
    const back = { to: "restoring", selection: at.selection, reason, noted: [failed] } as const;
    return write(world, at, { ...back, isNobodysFault: true });
  }
  // A source that is fenced lets a live move go on, so there is nothing to go back for. An aborted one goes back if the destination cannot start.
  const isForward = target === "cleaning" || (target === "starting" && !isAborted(at));
  return write(world, at, { to: target, selection: at.selection, reason: isForward ? "" : reason, noted: [] });
}

/**
 * → writing the hop to the next selection, from `first` onwards, of a host that has not failed (another way to fit does not help there) or,
 * when there is none, the way back.
 */
function another(world: OperationWorld, at: Position, first: number, noted: readonly PastAttempt[]): MachineStep {
  const { selections } = world.facts;
  const past = [...at.past, ...noted];
  const failed = new Set(past.filter(({ result }) => result === "failed").map(({ host }) => host));
  const to = selections.findIndex(({ host }, index) => index >= first && !failed.has(host));
  if (to !== -1) return write(world, at, { to: "preparing", selection: to, reason: "", noted });
  const reason = exhaustedMoveMessage(past);
  return write(world, at, { to: "restoring", selection: at.selection, reason, noted });
}

function write(world: OperationWorld, at: Position, to: Omit<Transition, "from" | "unseenMs">): MachineStep {
  const transition: Transition = {
    ...to,
    to: wayOf(world.facts, to.to),
    reason: reasonAt({ from: at.stage, to: to.to }, to.reason),
    from: { stage: at.stage, selection: at.selection },
    unseenMs: world.unseenMs,
  };
  return writeAfter(world, { at, transition, refusals: 0 }, 0);
}

/** A server that was in ERROR may be so since Cinder did not fill its boot volume, or has not yet. Where that is possible, its former guest is not started again. */
const wayOf = ({ kind, statusBefore }: OperationFacts, to: Transition["to"]): Transition["to"] =>
  to === "restoring" && statusBefore === "ERROR" && edgesOf(kind, "forsaking") !== null ? "forsaking" : to;

function writeAfter(
  world: OperationWorld,
  { at, transition, refusals }: { readonly at: Position; readonly transition: Transition; readonly refusals: number },
  delayMs: number,
): MachineStep {
  const effect: OperationEffect = { kind: "commit", step: at.step, write: writeOf(world.facts, transition), delayMs };
  return { state: { kind: "writing", at, transition, refusals }, effects: [effect] };
}

/** asking → given up, if nothing is lost by that; → noting that the operation waits for an operator, who decides about the other guest. */
function heldUp(world: OperationWorld, state: Extract<OperationState, { kind: "asking" }>, why: string): MachineStep {
  const { step, shownWait } = state;
  if (edgesOf(world.facts.kind, state.stage)?.failed === "give-up")
    return answered(world, state, { kind: "failed", step, reason: why, final: true });
  if (shownWait?.kind === "quarantine") return { state, effects: [] };
  return note(world, { ...state, shownWait: { kind: "quarantine" } }, null, {
    text: describeHeldUp(world.facts, why),
    isError: true,
  });
}

/** asking → noting why the destination's guest is kept, if this is not what the database says already. */
function kept(
  world: OperationWorld,
  state: Extract<OperationState, { kind: "asking" }>,
  { reason, cause }: Extract<OperationEvent, { kind: "kept" }>,
): MachineStep {
  const shown = state.shownWait?.kind === "kept" ? state.shownWait : null;
  if (shown?.cause === cause || shown?.times === KEPT_NOTES_MAX) return { state, effects: [] };
  const shownWait = { kind: "kept", cause, times: (shown?.times ?? 0) + 1 } as const;
  return note(world, { ...state, shownWait }, null, { text: reason, isError: true });
}

/** → noting: the operation stays at its stage, and says why. */
function note(
  world: OperationWorld,
  at: Position,
  next: Transition | null,
  { text, isError }: { readonly text: string; readonly isError: boolean },
): MachineStep {
  const effects: OperationEffect[] = [
    { kind: "commit", step: at.step, write: noteOf(world.facts, at, text, isError), delayMs: 0 },
    { kind: "tell-wait", note: text },
  ];
  return { state: { kind: "noting", at, next }, effects };
}

/** noting → asking again, or writing the transition that was refused before. */
function shown(world: OperationWorld, before: Position, next: Transition | null, revision: number): MachineStep {
  const at: Position = { ...before, step: before.step + 1, revision };
  if (next === null) return enter(world, at, null);
  return writeAfter(world, { at, transition: next, refusals: REFUSALS_MAX }, REFUSED_AGAIN_MS_MAX);
}

/** writing → asking at the new stage, or ended. */
function committed(world: OperationWorld, at: Position, transition: Transition, revision: number): MachineStep {
  const { to, selection, reason, noted, isNobodysFault = false } = transition;
  const blamed = (isNobodysFault ? [] : noted)
    .filter((one) => one.result === "failed")
    .map((one): OperationEffect => ({ kind: "tell-attempt-failed", selection: one.selection, reason: one.reason }));
  const leaves = (to === "preparing" || isWayBack(to)) && world.facts.isMove;
  const clear: OperationEffect[] = leaves ? [{ kind: "clear", selection: at.selection }] : [];
  if (isSuccess(to) || to === "give-up" || to === "lost") {
    const as = to === "give-up" ? "given-up" : to === "lost" ? "lost" : "succeeded";
    return { state: { kind: "ended", as }, effects: [...blamed, { kind: "tell-end", as, reason }] };
  }
  const past = [...at.past, ...noted];
  const entered = { stage: to as Stage, selection, step: at.step + 1, revision, reason, past, shownWait: null };
  const next = enter(world, entered, null);
  return { state: next.state, effects: [...clear, ...blamed, ...next.effects] };
}

/**
 * writing → writing something else: an alternate without room is skipped, and a host that came back keeps its server. A guest that was handed
 * over waits where it is until no other guest of its server is in quarantine. Any other step must fit, unless another client has changed the
 * allocations. It is tried again and again, and after a few refusals the server is shown in ERROR, with the reason, until it succeeds. No guest is
 * destroyed because of a refusal.
 */
function refused(
  world: OperationWorld,
  { at, transition, refusals }: Extract<OperationState, { kind: "writing" }>,
  why: string,
): MachineStep {
  if (transition.to === "preparing") {
    const skipped = pastOf(world, transition.selection, "skipped", why);
    return another(world, at, transition.selection + 1, [...transition.noted, skipped]);
  }
  // A source that was asked has stopped the guest. To start it again is refused for the same reason: another guest may run.
  const isHandedOver = OPERATIONS[world.facts.kind].source === "asked";
  if (transition.to === "starting" && !isHandedOver)
    return write(world, at, { to: "restoring", selection: at.selection, reason: why, noted: [] });
  // There was no allocation to keep.
  if (transition.to === "succeed-keeping")
    return write(world, at, { to: "succeed", selection: at.selection, reason: at.reason, noted: transition.noted });
  const again = { at, transition, refusals: refusals + 1 };
  if (again.refusals !== REFUSALS_MAX)
    return writeAfter(world, again, Math.min(REFUSED_AGAIN_MS * 2 ** refusals, REFUSED_AGAIN_MS_MAX));
  const text = transition.to === "starting" ? describeRefusedStart(why) : describeRefusedReturn(world.facts, why);
  return note(world, at, transition, { text, isError: true });
}

function pastOf(
  { facts }: OperationWorld,
  selection: number,
  result: PastAttempt["result"],
  reason: string,
): PastAttempt {
  return { selection, host: destinationOf(facts, selection)?.host ?? "", result, reason };
}
