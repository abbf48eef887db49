import { describeGivenUp, STORE_FAILED } from "./describe-placing.ts";
import { assignedTo } from "./learnt.ts";
import type {
  Learnt,
  PlacingDeed,
  PlacingEnd,
  PlacingEvent,
  PlacingPlan,
  PlacingQuestion,
  PlacingRefusal,
  PlacingState,
  PlacingStep,
  PlacingVerdict,
  ReservedClaim,
} from "./placing.ts";
import type { ApproachStep } from "./placing-routes.ts";

// The edges of the machine that several states share. `deeds` are actions that the previous state still requires.

/** The number of rounds after which a placing is put off. */
const ROUNDS_MAX = 30;
/** How often a server is read before its move is put off. */
const READS_MAX = 30;

export const NOTHING: readonly PlacingDeed[] = [];

/** → reading. */
export function read(plan: PlacingPlan, learnt: Learnt, deeds: readonly PlacingDeed[]): PlacingStep {
  if (learnt.reads >= READS_MAX)
    return putPlacingOff(plan, learnt, "the server changed each time that it was read", deeds);
  return askQuestion(
    { kind: "reading", learnt: { ...learnt, reads: learnt.reads + 1 } },
    { kind: "read-server" },
    deeds,
  );
}

/** → choosing, or directly to the refusal of a malformed request. */
export function nextRound(plan: PlacingPlan, known: Learnt, deeds: readonly PlacingDeed[]): PlacingStep {
  if (known.givenUp !== null) return putPlacingOff(plan, known, known.givenUp.why, deeds);
  if (known.rounds >= ROUNDS_MAX)
    return putPlacingOff(plan, known, `lost ${ROUNDS_MAX} claims to other requests`, deeds);
  const learnt = { ...known, rounds: known.rounds + 1 };
  if (plan.malformed !== null) return refuse(plan, learnt, { fault: plan.malformed, choice: null }, deeds);
  return askQuestion({ kind: "choosing", learnt }, { kind: "choose", learnt }, deeds);
}

/** → the next step of the approach that is needed, or claiming. */
export function approach(
  { route }: PlacingPlan,
  learnt: Learnt,
  claim: ReservedClaim,
  { after, deeds }: { readonly after: ApproachStep | null; readonly deeds: readonly PlacingDeed[] },
): PlacingStep {
  let next = after === null ? 0 : route.approach.indexOf(after) + 1;
  if (route.approach[next] === "leaving" && !mustLeave(learnt, claim.cell)) next += 1;
  const kind = route.approach[next];
  if (kind === undefined) return askQuestion({ kind: "claiming", learnt, claim }, claimQuestion(learnt, claim), deeds);
  return askQuestion({ kind, learnt, claim }, questionOf(kind, learnt, claim), deeds);
}

function claimQuestion({ assignment }: Learnt, claim: ReservedClaim): PlacingQuestion {
  return { kind: "claim", claim, assignment };
}

function assignQuestion(learnt: Learnt, to: string): PlacingQuestion {
  const { at: from, assignment } = learnt;
  return { kind: "assign", from, to, assignment, next: assignedTo(learnt, to).assignment };
}

function leaveQuestion({ at, assignment }: Learnt): PlacingQuestion {
  return { kind: "leave-cell", cell: at ?? "", assignment };
}

function questionOf(kind: ApproachStep, learnt: Learnt, claim: ReservedClaim): PlacingQuestion {
  switch (kind) {
    case "joining":
      return { kind: "join", claim, learnt };
    case "leaving":
      return leaveQuestion(learnt);
    case "pinning":
      return { kind: "pin-group", cell: claim.cell };
    case "assigning":
      return assignQuestion(learnt, claim.cell);
    case "marking":
      return { kind: "mark-asked", claim };
    default:
      return kind satisfies never;
  }
}

/** Whether the assigned cell must be closed to the server before the request goes to another one. */
function mustLeave({ at, isLeft }: Learnt, to: string | null): boolean {
  return at !== null && at !== to && !isLeft;
}

/** claiming → ended, or noting. */
export function arrive(
  { route }: PlacingPlan,
  learnt: Learnt,
  end: PlacingEnd,
  deeds: readonly PlacingDeed[],
): PlacingStep {
  if (route.arrivals === "found") return ended(learnt, end, deeds);
  return askQuestion({ kind: "noting", learnt, end }, { kind: "note-begun" }, deeds);
}

/** The server or the move is already in this cell. */
export function found(plan: PlacingPlan, learnt: Learnt, cell: string, deeds: readonly PlacingDeed[]): PlacingStep {
  const isNoted = plan.route.arrivals === "noted";
  return arrive(plan, learnt, isNoted ? { kind: "over" } : { kind: "present", cell }, deeds);
}

export function askCell(learnt: Learnt, verdict: PlacingVerdict): PlacingStep {
  return askQuestion({ kind: "asking-cell", learnt, verdict }, { kind: "ask-cell" }, NOTHING);
}

/** No host is suitable, as a cell or the server's own state shows. */
export function decline(
  plan: PlacingPlan,
  learnt: Learnt,
  { fault, mayHaveBegun }: Extract<PlacingEvent, { readonly kind: "unplaceable" }>,
  deeds: readonly PlacingDeed[],
): PlacingStep {
  const refusal = { fault, choice: null };
  if (!mayHaveBegun) return refuse(plan, learnt, refusal, deeds);
  const asked = askCell(learnt, { kind: "refuse", refusal });
  return { ...asked, effects: [...deeds, ...asked.effects] };
}

/** → withdrawing from the cell that it is assigned to, or refusing. */
export function refuse(
  plan: PlacingPlan,
  learnt: Learnt,
  refusal: PlacingRefusal,
  deeds: readonly PlacingDeed[],
): PlacingStep {
  if (plan.route.beforeRefusal === "withdrawing" && mustLeave(learnt, null))
    return askQuestion({ kind: "withdrawing", learnt, refusal }, leaveQuestion(learnt), deeds);
  return writeRefusal(plan, learnt, refusal, deeds);
}

/** → refusing; or ended, for a server of a multi-create, whose refusal is decided together with the others. */
export function writeRefusal(
  { route }: PlacingPlan,
  learnt: Learnt,
  refusal: PlacingRefusal,
  deeds: readonly PlacingDeed[],
): PlacingStep {
  const { at: cell, assignment } = learnt;
  if (route.refusals === "reported") return ended(learnt, { kind: "unplaced", cell, ...refusal }, deeds);
  return askQuestion(
    { kind: "refusing", learnt, refusal },
    { kind: "refuse", cell, assignment, fault: refusal.fault },
    deeds,
  );
}

/** → ended (later). An old request is given up instead, which is tried only once. */
export function putPlacingOff(
  plan: PlacingPlan,
  learnt: Learnt,
  why: string,
  deeds: readonly PlacingDeed[],
): PlacingStep {
  if (learnt.givenUp !== null) return ended(learnt, { kind: "later", why: learnt.givenUp.why }, deeds);
  if (!plan.isOld) return ended(learnt, { kind: "later", why }, deeds);
  return giveUp(plan, { ...learnt, givenUp: { why, cause: "put-off" } }, deeds);
}

/** (any) → ended (failed), after the claim is released. An old request that keeps failing is given up instead, once. */
export function fail(plan: PlacingPlan, state: PlacingState): PlacingStep {
  const { learnt } = state;
  const deeds = "claim" in state ? releaseOf(state) : NOTHING;
  if (!plan.isOld || learnt.givenUp?.cause === "failed") return ended(learnt, { kind: "failed" }, deeds);
  return giveUp(plan, { ...learnt, givenUp: { why: STORE_FAILED, cause: "failed" } }, deeds);
}

function giveUp(plan: PlacingPlan, learnt: Learnt, deeds: readonly PlacingDeed[]): PlacingStep {
  const fault = describeGivenUp(plan, learnt.givenUp?.why ?? "");
  const refusal = { fault, choice: null };
  if (plan.route.givesUpBy === "withdrawing") return refuse(plan, learnt, refusal, deeds);
  return askQuestion({ kind: "refusing-unasked", learnt, refusal }, { kind: "refuse-unasked", fault }, deeds);
}

export function ended(learnt: Learnt, end: PlacingEnd, deeds: readonly PlacingDeed[]): PlacingStep {
  const isGivenUp = learnt.givenUp?.cause === "failed" && end.kind !== "failed";
  const effects: readonly PlacingDeed[] = isGivenUp ? [...deeds, { kind: "tell-given-up" }] : deeds;
  return { state: { kind: "ended", learnt, end }, effects };
}

export function askQuestion(
  state: PlacingState,
  question: PlacingQuestion,
  deeds: readonly PlacingDeed[],
): PlacingStep {
  return { state, effects: deeds.length === 0 ? [question] : [...deeds, question] };
}

export function releaseOf({ claim }: { readonly claim: ReservedClaim }): readonly PlacingDeed[] {
  return [{ kind: "release", claim }];
}
