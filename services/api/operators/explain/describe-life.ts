import type { TaskLife } from "../../../../core/scheduling/explain/task-life.ts";
import type { KnownLife } from "./known-life.ts";

/** Returns sentences that say what the server currently waits for. Empty when it does not wait. */
export function describeWaits({ request, moves, cellName, inCell }: KnownLife): readonly string[] {
  const waits: string[] = [];
  if (request?.state === "accepted" && cellName === null) waits.push("No scheduler has placed the server yet.");
  for (const { request: move, state } of moves)
    if (state === "accepted") waits.push(`The ${move.kind} waits for a scheduler to find a host.`);
  if (inCell === null) return waits;
  if (request?.state === "dispatched" && inCell.server === null)
    waits.push(
      `The server was sent to cell ${cellName}, which does not have it. A dispatched server arrives within seconds. Otherwise the cell's database has lost it, ` +
        "for example because a backup was restored: when the cell's hosts have been compared with it, an operator should run berth audit --heal, " +
        "after which the server is built again unless its guest still exists. A server that is no longer needed can be deleted.",
    );
  const open = inCell.tasks.filter(({ outcome }) => outcome === null);
  for (const task of open) waits.push(...waitsOf(task));
  for (const { move } of inCell.tasks) if (move !== null && move.note !== "") waits.push(move.note);
  const { server } = inCell;
  if (server?.status === "VERIFY_RESIZE" && server.taskState === null)
    waits.push("The server waits for the resize or migration to be confirmed or reverted.");
  for (const { name, up, forcedDown, seenAtMs } of inCell.hosts) {
    if (up) continue;
    const heard = seenAtMs === null ? "" : `; it was last heard at ${new Date(seenAtMs).toISOString()}`;
    const waiting = open.map(({ kind }) => kind).join(", ");
    const then = waiting === "" ? "the server's guest there is left alone" : `the ${waiting} waits for it`;
    waits.push(forcedDown ? `${name} was forced down by an operator${heard}.` : `${name} is silent${heard}: ${then}.`);
  }
  return waits;
}

function waitsOf({ kind, conductors, stage }: TaskLife): readonly string[] {
  if (conductors.length === 0) return [`The ${kind} waits for a conductor to take it.`];
  return stage === null ? [] : [`The ${kind} is at the stage ${stage}.`];
}

/** Returns sentences that say which information is missing, and why. Empty when nothing is known to be missing. */
export function describeMissing(known: KnownLife): readonly string[] {
  const { request, decisions, cellName, inCell, unreachable } = known;
  const missing = unreachable.map((cell) =>
    cell === cellName
      ? `Cell ${cell}, where the server lives or lived, does not answer: its state, attempts, hops and moves are not known now. Ask again later.`
      : `Cell ${cell} does not answer, so it is not known whether the server lived there.`,
  );
  if (request === null)
    missing.push("The server's request is not in the API database: it was archived (berth db archive).");
  if (decisions.length === 0) missing.push(withoutDecision(inCell));
  if (inCell === null) return missing;
  if (inCell.server === null)
    missing.push(
      request?.state === "deleted"
        ? `Cell ${cellName} has no records of the server: they were archived (berth db archive), or the server was deleted before it came there.`
        : `Cell ${cellName} does not have the server: it has not come there yet, or was deleted before it did.`,
    );
  else if (inCell.tasks.length === 0) missing.push(`Cell ${cellName} has the server, but none of its tasks.`);
  const unnamed = inCell.tasks.filter(({ conductors, outcome }) => conductors.length === 0 && outcome !== null);
  if (unnamed.length > 0)
    missing.push(
      `The conductors of these tasks were not recorded: ${unnamed.map(({ kind, id }) => `${kind} ${id}`).join(", ")} (cancelled before a conductor had taken or held them, or carried out by a version that did not record it).`,
    );
  return missing;
}

/** Says that no decision is kept, why that may be, and what the cell knows of it all the same. */
function withoutDecision(inCell: KnownLife["inCell"]): string {
  const notYet = inCell?.server ? "" : "it was not made yet, or ";
  const gap =
    "No decision of a scheduler about the server is kept, so the other hosts that fitted and the weights are not known: " +
    `${notYet}it was made long ago (berth scheduler --keep-decisions), at a busy time, when schedulers keep only a part of their placements, or by a scheduler ` +
    "that was killed right after it.";
  const build = inCell?.tasks.find(({ kind }) => kind === "build");
  const [chosen, ...alternates] = build?.planned ?? [];
  if (build === undefined || chosen === undefined) return gap;
  const others = alternates.length === 0 ? "no alternates" : `the alternates ${alternates.join(", ")}`;
  const tried = build.attempts.filter(({ result }) => result !== "skipped");
  // A host may have been tried more than once, in different ways to fit.
  const called = new Set(tried.map(({ host }) => host)).size;
  return `${gap} The task of the build is known: ${chosen} was chosen, with ${others}, and ${called} of these hosts ${called === 1 ? "was" : "were"} called so far.`;
}
