import { noValidHost } from "./describe-no-host.ts";
import { GROUP_IN_FLIGHT } from "./describe-placing.ts";
import {
  assignedElsewhere,
  assignedTo,
  cellFoundClosed,
  cellLeft,
  groupLearnt,
  hostLost,
  nothingLearnt,
  serverRead,
  viewsSeen,
  writeRefused,
} from "./learnt.ts";
import {
  AWAITED,
  type EventFor,
  type Learnt,
  type PlacingDeed,
  type PlacingEvent,
  type PlacingPlan,
  type PlacingRefusal,
  type PlacingState,
  type PlacingStep,
  type PlacingVerdict,
  type StateOf,
} from "./placing.ts";
import {
  approach,
  arrive,
  askCell,
  askQuestion,
  decline,
  ended,
  fail,
  found,
  NOTHING,
  nextRound,
  putPlacingOff,
  read,
  refuse,
  releaseOf,
  writeRefusal,
} from "./placing-edges.ts";

/*
 * How data flows. A row (an accepted request, or an accepted move) and the scheduler's settings become a plan, which never changes.
 * `beginPlacing` makes the first state of it. From then on each step is a question and its answer: the machine asks for a host, for
 * the claim there, for a look at fresh views, for a refusal; a service carries the question out and hands the answer back as an event. What
 * the answers say of cells and hosts gathers in `Learnt`, which goes from state to state and into the next question. When the machine has
 * ended, its end goes to the caller, who publishes the task, counts, or puts the row off. Nothing else is remembered: whatever must
 * outlive the process is in the rows, so a second delivery, or another scheduler after a crash, begins again at `beginPlacing`.
 *
 *   choose → (leave, pin, assign | mark) → claim → placed
 *     │ no host                              │ no room
 *     ▼                                      └──▶ choose again, without that host
 *   look at fresh views → choose again; still no host → refuse, or put off
 *
 * Several schedulers may place one request at once. Its server stays in one cell all the same: a cell is assigned by compare-and-set before
 * anything is claimed there; within the cell the server's row decides; and a cell is left only after it was shut for the server. A request
 * may come back to such a cell, since each assignment has a number, and a cell is shut only under the number that the request had.
 */

/**
 * The first step, also after a crash or for a second delivery. `cell` is the one in the row, or null when there is none yet, and
 * `assignment` is its number.
 */
export function beginPlacing(plan: PlacingPlan, cell: string | null, assignment = 0): PlacingStep {
  const learnt = nothingLearnt(cell, assignment);
  return plan.route.begins === "reading" ? read(plan, learnt, NOTHING) : nextRound(plan, learnt, NOTHING);
}

/** One step. Events for which the state does not wait change nothing. */
export function stepPlacing(plan: PlacingPlan, state: PlacingState, event: PlacingEvent): PlacingStep {
  if (state.kind === "ended") return { state, effects: [] };
  if (event.kind === "failed") return fail(plan, state);
  const awaited: readonly string[] = AWAITED[state.kind];
  if (!awaited.includes(event.kind)) return { state, effects: [] };
  const step = STEPS[state.kind] as (plan: PlacingPlan, state: PlacingState, event: PlacingEvent) => PlacingStep;
  return step(plan, state, event);
}

/** For each state the step that follows each answer. */
const STEPS: {
  readonly [Kind in Exclude<PlacingState["kind"], "ended">]: (
    plan: PlacingPlan,
    state: StateOf<Kind>,
    event: EventFor<Kind>,
  ) => PlacingStep;
} = {
  reading: stepReading,
  choosing: stepChoosing,
  pausing: (plan, { learnt }) => nextRound(plan, learnt, NOTHING),
  "looking-again": stepLookingAgain,
  joining: (plan, { learnt, claim }) => approach(plan, learnt, claim, { after: "joining", deeds: NOTHING }),
  leaving: stepLeaving,
  pinning: stepPinning,
  assigning: stepAssigning,
  marking: stepMarking,
  claiming: stepClaiming,
  noting: (_, { learnt, end }) => ended(learnt, end, NOTHING),
  withdrawing: stepWithdrawing,
  "asking-cell": stepAskingCell,
  "refusing-unasked": (_, { learnt, refusal }, event) =>
    event.kind === "refused"
      ? ended(learnt, { kind: "refused", ...refusal }, NOTHING)
      : askCell(learnt, { kind: "refuse", refusal }),
  refusing: stepRefusing,
};

/** reading → choosing. */
function stepReading(plan: PlacingPlan, { learnt }: StateOf<"reading">, event: EventFor<"reading">): PlacingStep {
  switch (event.kind) {
    case "server-read":
      return nextRound(plan, serverRead(learnt, event.leftOut), NOTHING);
    case "unplaceable":
      return decline(plan, learnt, event, NOTHING);
    case "cannot-yet":
      return putPlacingOff(plan, learnt, event.why, NOTHING);
    default:
      return event satisfies never;
  }
}

/** choosing → the approach to the claim, looking-again, or a refusal. The claim is reserved from here on. */
function stepChoosing(plan: PlacingPlan, { learnt }: StateOf<"choosing">, event: EventFor<"choosing">): PlacingStep {
  switch (event.kind) {
    case "chosen": {
      const { claim } = event;
      const deeds: PlacingDeed[] = [{ kind: "reserve", claim }];
      return approach(plan, { ...learnt, tries: learnt.tries + 1 }, claim, { after: null, deeds });
    }
    case "none":
      return learnt.fresh || learnt.looks >= plan.route.looksMax
        ? judge(plan, learnt, event)
        : askQuestion(
            { kind: "looking-again", learnt: { ...learnt, looks: learnt.looks + 1 } },
            { kind: "look-again", shut: learnt.shut },
            [{ kind: "tell-looked-again" }],
          );
    case "paused":
      return askQuestion({ kind: "pausing", learnt }, { kind: "pause" }, NOTHING);
    case "cannot-yet":
      return putPlacingOff(plan, learnt, event.why, NOTHING);
    default:
      return event satisfies never;
  }
}

/**
 * No host was found although the views are fresh. The request is refused, unless unseen cells or servers of the group may soon change that.
 */
function judge(plan: PlacingPlan, learnt: Learnt, none: EventFor<"choosing"> & { kind: "none" }): PlacingStep {
  const { route, explainedUnder } = plan;
  const unseen = [...new Set([...learnt.unseen, ...none.leftOut])];
  if (unseen.length > 0 && none.ageMs < plan.placeWithinMs) {
    const why = `no host in the other cells, and no answer from ${unseen.join(", ")}`;
    return putPlacingOff(plan, learnt, why, NOTHING);
  }
  const awaitsGroup = learnt.groupInFlight || none.awaitsGroup;
  const refusal: PlacingRefusal = {
    fault: noValidHost(none.choice, { unseen, closed: [...learnt.shut], keptFor: explainedUnder }),
    choice: none.choice,
    awaitsGroup: awaitsGroup && !plan.isOld,
  };
  const waits = awaitsGroup && route.groupInFlight === "waited-for";
  const verdict: PlacingVerdict = waits ? { kind: "put-off", why: GROUP_IN_FLIGHT } : { kind: "refuse", refusal };
  if (route.beforeRefusal === "asking-cell") return askCell(learnt, verdict);
  if (verdict.kind === "put-off") return putPlacingOff(plan, learnt, verdict.why, NOTHING);
  return refuse(plan, learnt, refusal, [{ kind: "explain-refusal", choice: none.choice, unseen, learnt }]);
}

/** looking-again → choosing. */
function stepLookingAgain(
  plan: PlacingPlan,
  { learnt }: StateOf<"looking-again">,
  event: EventFor<"looking-again">,
): PlacingStep {
  if (event.kind === "cannot-yet") return putPlacingOff(plan, learnt, event.why, NOTHING);
  return nextRound(plan, viewsSeen(plan.route, learnt, event.unseen), NOTHING);
}

/** leaving → the rest of the approach, unless the server, or a guest of it, turns out to be in the cell that it should leave. */
function stepLeaving(plan: PlacingPlan, state: StateOf<"leaving">, event: EventFor<"leaving">): PlacingStep {
  const { learnt, claim } = state;
  switch (event.kind) {
    case "cell-left": {
      const cell = learnt.at ?? "";
      return approach(plan, cellLeft(learnt), claim, { after: "leaving", deeds: [{ kind: "tell-left", cell }] });
    }
    case "found":
      return found(plan, learnt, event.cell, releaseOf(state));
    case "unplaceable":
      return writeRefusal(plan, cellLeft(learnt), { fault: event.fault, choice: null }, releaseOf(state));
    case "cannot-yet":
      return putPlacingOff(plan, learnt, event.why, releaseOf(state));
    default:
      return event satisfies never;
  }
}

/** pinning → assigning, or choosing in the cell that the group is pinned to. */
function stepPinning(plan: PlacingPlan, state: StateOf<"pinning">, event: EventFor<"pinning">): PlacingStep {
  const { learnt, claim } = state;
  if (event.kind === "pinned") return approach(plan, learnt, claim, { after: "pinning", deeds: NOTHING });
  return nextRound(plan, { ...learnt, pinned: { cell: event.cell, hosts: [] }, fresh: false }, releaseOf(state));
}

/** assigning → claiming, or choosing again, starting with the cell to which another scheduler has assigned it. */
function stepAssigning(plan: PlacingPlan, state: StateOf<"assigning">, event: EventFor<"assigning">): PlacingStep {
  const { learnt, claim } = state;
  switch (event.kind) {
    case "assigned":
      return approach(plan, assignedTo(learnt, claim.cell), claim, { after: "assigning", deeds: NOTHING });
    case "assigned-elsewhere":
      return nextRound(plan, assignedElsewhere(learnt, event), releaseOf(state));
    case "over":
      return ended(learnt, { kind: "over" }, releaseOf(state));
    default:
      return event satisfies never;
  }
}

/** marking → claiming, unless the server's state does not allow the move. */
function stepMarking(plan: PlacingPlan, state: StateOf<"marking">, event: EventFor<"marking">): PlacingStep {
  const { learnt, claim } = state;
  switch (event.kind) {
    case "marked":
      return approach(plan, learnt, claim, { after: "marking", deeds: NOTHING });
    case "unplaceable":
      return decline(plan, learnt, event, releaseOf(state));
    case "over":
      return ended(learnt, { kind: "over" }, releaseOf(state));
    default:
      return event satisfies never;
  }
}

/** claiming → placed, or choosing again with the facts of the refusal. */
function stepClaiming(plan: PlacingPlan, state: StateOf<"claiming">, event: EventFor<"claiming">): PlacingStep {
  const { learnt, claim } = state;
  const released = releaseOf(state);
  switch (event.kind) {
    case "claimed":
      return arrive(plan, learnt, { kind: "placed", claim }, [{ kind: "keep", claim, xid: event.xid }]);
    case "found":
      return found(plan, learnt, event.cell, released);
    case "closed":
      return nextRound(plan, cellFoundClosed(learnt, claim.cell), released);
    case "server-changed":
      return read(plan, learnt, released);
    case "lost": {
      // The claim is released first, because the view would otherwise count it twice.
      const learns = { kind: "learn-shortfalls", cell: claim.cell, shortfalls: event.shortfalls } as const;
      const tells = { kind: "tell-lost", claim, why: event.why } as const;
      return nextRound(plan, hostLost(learnt, claim, event), [...released, learns, tells]);
    }
    case "write-refused":
      return nextRound(plan, writeRefused(learnt), released);
    case "group-conflict": {
      const tells = { kind: "tell-lost", claim, why: event.kind } as const;
      return nextRound(plan, groupLearnt(learnt, claim, event), [...released, tells]);
    }
    case "unplaceable":
      return decline(plan, learnt, event, released);
    default:
      return event satisfies never;
  }
}

/** withdrawing → refusing, unless the server turns out to be in the cell. */
function stepWithdrawing(
  plan: PlacingPlan,
  { learnt, refusal }: StateOf<"withdrawing">,
  event: EventFor<"withdrawing">,
): PlacingStep {
  switch (event.kind) {
    case "cell-left": {
      const cell = learnt.at ?? "";
      return writeRefusal(plan, cellLeft(learnt), refusal, [{ kind: "tell-left", cell }]);
    }
    case "found":
      return found(plan, learnt, event.cell, NOTHING);
    case "unplaceable":
      return writeRefusal(plan, cellLeft(learnt), { fault: event.fault, choice: null }, NOTHING);
    case "cannot-yet":
      return putPlacingOff(plan, learnt, event.why, NOTHING);
    default:
      return event satisfies never;
  }
}

/** asking-cell → refusing, unless the cell has begun this very move. */
function stepAskingCell(
  plan: PlacingPlan,
  { learnt, verdict }: StateOf<"asking-cell">,
  event: EventFor<"asking-cell">,
): PlacingStep {
  switch (event.kind) {
    case "found":
      return found(plan, learnt, event.cell, NOTHING);
    case "cannot-yet":
      return putPlacingOff(plan, learnt, event.why, NOTHING);
    case "not-begun":
      if (verdict.kind === "put-off") return putPlacingOff(plan, learnt, verdict.why, NOTHING);
      return writeRefusal(plan, learnt, verdict.refusal, NOTHING);
    default:
      return event satisfies never;
  }
}

/** refusing → ended; or choosing again, because this scheduler continues the request if the other one dies. */
function stepRefusing(
  plan: PlacingPlan,
  { learnt, refusal }: StateOf<"refusing">,
  event: EventFor<"refusing">,
): PlacingStep {
  switch (event.kind) {
    case "refused":
      return ended(learnt, { kind: "refused", ...refusal }, NOTHING);
    case "taken-over":
      return nextRound(plan, { ...assignedElsewhere(learnt, event), fresh: false }, NOTHING);
    case "over":
      return ended(learnt, { kind: "over" }, NOTHING);
    default:
      return event satisfies never;
  }
}
