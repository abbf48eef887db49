import type { ShownCaller, ShownClaim, ShownLife, ShownTask } from "./life-answer.ts";

/** One line of a time line. */
export interface LifeEvent {
  /** Time of the event in ISO format. */
  readonly at: string;
  /** The action: `create`, `schedule`, `build`, the kind of an operation, or `delete`. */
  readonly what: string;
  readonly text: string;
}

/** All known events of a server, the earliest first. */
export function eventsOf(life: ShownLife): readonly LifeEvent[] {
  const events = [
    ...requestEvents(life),
    ...decisionEvents(life),
    ...life.tasks.flatMap(taskEvents),
    ...life.requested_moves.flatMap(moveEvents),
  ];
  // Events of the same moment stay in the order in which they were made.
  return events.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

function requestEvents({ request, deletion, state, tasks }: ShownLife): LifeEvent[] {
  const events: LifeEvent[] = [];
  if (request !== null) {
    const { at, asked_by, fault, updated_at } = request;
    events.push({ at, what: "create", text: `asked for by ${callerText(asked_by)}` });
    if (request.state === "failed") events.push({ at: updated_at, what: "create", text: `ended in ERROR: ${fault}` });
  }
  // If the delete has a task, the task says who asked for it and when it ended.
  if (!tasks.some(({ kind }) => kind === "delete")) {
    if (deletion !== null)
      events.push({ at: deletion.at, what: "delete", text: `asked for by request ${deletion.request_id}` });
    if (state?.deleted_at) events.push({ at: state.deleted_at, what: "delete", text: "the server is deleted" });
    else if (deletion !== null && request?.state === "deleted")
      events.push({ at: request.updated_at, what: "delete", text: "the server is known to be deleted" });
  }
  return events;
}

function decisionEvents(life: ShownLife): LifeEvent[] {
  return life.decisions.toReversed().map((one) => {
    const { scheduler, decision } = one;
    const at = decidedAt(life, one);
    const by = `by scheduler ${scheduler}`;
    if (decision.outcome === "refused") return { at, what: "schedule", text: `no valid host, ${by}` };
    const { host, cell, feasible, alternates } = decision;
    const others = alternates.length === 0 ? "no alternates" : `alternates ${alternates.join(", ")}`;
    const text = `${host} of cell ${cell} chosen from ${feasible} hosts that fit, ${others}, ${by}`;
    return { at, what: "schedule", text };
  });
}

/**
 * A decision is stamped when it is written down, after its claim, with which the first attempt begins. It is shown at the time of the claim if
 * that is earlier, so that the cause comes before the effect.
 */
function decidedAt(
  { request, tasks }: ShownLife,
  { at, request_id, decision }: ShownLife["decisions"][number],
): string {
  if (decision.outcome === "refused") return at;
  const isFor = ({ kind, asked_by }: ShownTask) =>
    (kind === "build" ? (asked_by ?? request?.asked_by) : asked_by)?.request_id === request_id;
  const first = tasks.find(isFor)?.attempts[0]?.at;
  return first !== undefined && Date.parse(first) < Date.parse(at) ? first : at;
}

function taskEvents(task: ShownTask): LifeEvent[] {
  const { kind: what, at, asked_by, move, outcome, ended_at, reason } = task;
  const path = move === null || (move.from === null && move.to === null) ? "" : ` ${pathText(move)}`;
  const who = asked_by === null ? "begun by the cell itself" : `asked for by ${callerText(asked_by)}`;
  const events: LifeEvent[] = [
    // A build is asked for by the request, which has its own event.
    ...(what === "build" ? [] : [{ at, what, text: `begins${path}, ${who}` }]),
    ...task.conductors.map((conductor) => ({
      ...{ at: conductor.at, what },
      text: `taken by conductor ${conductor.name === "" ? conductor.id : conductor.name}`,
    })),
    ...task.stages.map(({ at: reached, stage, host }) => ({
      ...{ at: reached, what },
      text: `reaches the stage ${stage}${host === null ? "" : ` (${host})`}`,
    })),
    ...task.attempts.flatMap((attempt) => [
      ...task.hops.filter(({ at: hopped, to }) => hopped === attempt.at && to === attempt.host).map(hopEvent(what)),
      ...attemptEvents(what, attempt),
    ]),
  ];
  // Events of the same moment stay in this order: the end of an attempt, then the hop, then the next attempt.
  const sorted = events.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));
  if (outcome === null || ended_at === null) return sorted;
  const status = move?.status ? `, the move is ${move.status}` : "";
  const why = reason === "" ? "" : `: ${reason}`;
  return [...sorted, { at: ended_at, what, text: `ends: ${outcome}${status}${why}` }];
}

const hopEvent =
  (what: string) =>
  ({ at, from, to, gave_back, claimed }: ShownTask["hops"][number]): LifeEvent => ({
    ...{ at, what },
    text: `hops from ${from} to ${to}: gives back ${claimText(gave_back)}, claims ${claimText(claimed)}`,
  });

function attemptEvents(what: string, attempt: ShownTask["attempts"][number]): LifeEvent[] {
  const { host, at, ended_at, result, reason, conductors } = attempt;
  const by = conductors.length === 0 ? "" : `, carried by ${conductors.join(", then ")}`;
  const why = reason === null ? "" : `: ${reason}`;
  if (result === "skipped") return [{ at: ended_at ?? at, what, text: `${host} is skipped${why}` }];
  const began = { at, what, text: `tries ${host}` };
  if (result === null || ended_at === null) return [began];
  return [began, { at: ended_at, what, text: `${RESULTS[result] ?? result} on ${host}${by}${why}` }];
}

const RESULTS: Readonly<Record<string, string>> = { success: "succeeds", failed: "fails", cancelled: "is cancelled" };

function moveEvents({ kind: what, at, updated_at, state, fault, asked_by }: ShownLife["requested_moves"][number]) {
  const asked = { at, what, text: `asked for by ${callerText(asked_by)}` };
  if (state === "accepted") return [asked];
  const text = state === "refused" ? `refused${fault === null ? "" : `: ${fault}`}` : "begun in the cell";
  return [asked, { at: updated_at, what, text }];
}

function pathText({ from, to }: NonNullable<ShownTask["move"]>): string {
  return [from === null ? "" : `from ${from}`, to === null ? "" : `to ${to}`].filter((one) => one !== "").join(" ");
}

function callerText({ request_id, user_id, project_id }: ShownCaller): string {
  return `user ${user_id} of project ${project_id}, request ${request_id}`;
}

/** Amounts by class, summed over providers. */
function claimText(claim: ShownClaim): string {
  const sums = new Map<string, number>();
  for (const item of claim) sums.set(item.class, (sums.get(item.class) ?? 0) + item.amount);
  return sums.size === 0 ? "nothing" : [...sums].map(([name, amount]) => `${amount} ${name}`).join(" + ");
}
