import { describe, expect, test } from "vitest";
import { madeUpHistory } from "../../test/rigs/made-up-history.ts";
import type { HistoryLine, SettledRound } from "../history-line.ts";
import { acceptedCreatesEnd } from "./accepted-creates-end.ts";
import { allOrNothing } from "./all-or-nothing.ts";
import { type Checker, checkHistory, failuresOf } from "./checker.ts";
import { deletedStaysDeleted } from "./deleted-stays-deleted.ts";
import { lawsHold } from "./laws-hold.ts";
import { noServerTwice } from "./no-server-twice.ts";
import { nothingLost } from "./nothing-lost.ts";
import { standardCheckers } from "./standard-checkers.ts";
import { timeWithoutService } from "./time-without-service.ts";

const who = "client-1";
type Op = "create" | "delete" | "list" | "show";
const invoke = (atMs: number, id: number, op: Op = "create", server?: string): HistoryLine => ({
  ...{ atMs, who, what: "invoke", op, id },
  ...(server && { server }),
});
const answer = (
  atMs: number,
  id: number,
  what: "ok" | "refused" | "unknown",
  op: Op = "create",
  server?: string,
): HistoryLine => ({ ...{ atMs, who, what, op, id, ms: 5 }, ...(server && { server }) });
const seen = (atMs: number, server: string, state: "ACTIVE" | "ERROR" | "DELETED"): HistoryLine => ({
  ...{ atMs, who, what: "state", server, state, ms: 100 },
});
const notFound = (atMs: number, id: number, server: string): HistoryLine => ({
  ...{ atMs, who, what: "refused", op: "show", id, server, ms: 5, status: 404 },
});
const shown = (atMs: number, server: string): readonly HistoryLine[] => [
  invoke(atMs, 9, "show", server),
  { atMs: atMs + 5, who, what: "ok", op: "show", id: 9, server, ms: 5, status: 200 },
];
const found = (atMs: number, id: number, server: string): HistoryLine => ({
  ...{ atMs, who: "runner", what: "found", id, server },
});
const settled: SettledRound = { atMs: 60_000, who: "runner", what: "settled", open: 0, ms: 10 };

/** The history of a server `a` that was accepted at `ok` and whose delete was accepted at `deleted`, if that is given. */
function lifeOf({ ok = 5, deleted }: { readonly ok?: number; readonly deleted?: number }): readonly HistoryLine[] {
  const created = [invoke(0, 1), answer(ok, 1, "ok", "create", "a")];
  if (deleted === undefined) return created;
  return [...created, invoke(deleted - 5, 2, "delete", "a"), answer(deleted, 2, "ok", "delete", "a")];
}

function findings(checker: Checker, history: readonly HistoryLine[]): readonly string[] {
  return failuresOf(checkHistory(history, [checker]));
}

const WRONG: readonly (readonly [string, Checker, readonly HistoryLine[], string])[] = [
  ["an accepted create that never ends", acceptedCreatesEnd, [...lifeOf({}), settled], "never seen ACTIVE"],
  [
    "an accepted delete whose server stays",
    acceptedCreatesEnd,
    [...lifeOf({ deleted: 900 }), seen(500, "a", "ACTIVE"), settled],
    "still ACTIVE though its delete",
  ],
  [
    "a deleted server that comes back",
    deletedStaysDeleted(),
    [...lifeOf({ deleted: 900 }), seen(950, "a", "DELETED"), seen(1_000, "a", "ACTIVE")],
    "is ACTIVE after it was deleted",
  ],
  [
    "a deleted server that is shown again",
    deletedStaysDeleted(),
    [...lifeOf({ deleted: 900 }), seen(950, "a", "DELETED"), ...shown(1_000, "a")],
    "exists again after it was deleted",
  ],
  [
    "what had not ended when the run waited no longer, though it was swept away later",
    acceptedCreatesEnd,
    [...lifeOf({ deleted: 70_000 }), { ...settled, what: "not-settled", open: 1 }, seen(71_000, "a", "DELETED")],
    "1 servers had not ended",
  ],
  [
    "a server left unfinished by a create without an answer, as the runner finds it",
    allOrNothing,
    [invoke(0, 1), answer(5_000, 1, "unknown"), found(6_000, 1, "a"), settled],
    "unfinished",
  ],
  [
    "a server of a refused create, as the runner finds it",
    allOrNothing,
    [invoke(0, 1), answer(5, 1, "refused"), found(6_000, 1, "a"), settled],
    "its create was refused",
  ],
  [
    "a server that becomes ACTIVE long after its delete was accepted",
    deletedStaysDeleted({ lookMs: 1_000 }),
    [...lifeOf({ deleted: 900 }), seen(2_500, "a", "ACTIVE")],
    "is ACTIVE after it was deleted",
  ],
  [
    "one server for two creates",
    noServerTwice,
    [...lifeOf({}), invoke(10, 7), answer(15, 7, "ok", "create", "a")],
    "requests 1 and 7",
  ],
  [
    "an accepted server that is not there",
    nothingLost,
    [...lifeOf({}), { ...invoke(10, 2, "show", "a") }, notFound(20, 2, "a")],
    "the API does not know it",
  ],
  [
    "a list that names a server twice",
    noServerTwice,
    [invoke(0, 3, "list"), { atMs: 5, who, what: "ok", op: "list", id: 3, ms: 5, twice: ["a"] }],
    "list 3 names server a",
  ],
  [
    "a server left unfinished by a create without an answer",
    allOrNothing,
    [invoke(0, 1), answer(5_000, 1, "unknown", "create", "a"), settled],
    "unfinished",
  ],
  [
    "a server of a refused create",
    allOrNothing,
    [invoke(0, 1), answer(5, 1, "refused", "create", "a"), seen(100, "a", "ACTIVE")],
    "its create was refused",
  ],
  [
    "a server that goes by a refused delete",
    allOrNothing,
    [...lifeOf({}), invoke(10, 2, "delete", "a"), answer(15, 2, "refused", "delete", "a"), seen(90, "a", "DELETED")],
    "its delete was refused",
  ],
  ["a server that goes by itself", allOrNothing, [...lifeOf({}), seen(90, "a", "DELETED")], "no request deleted it"],
  [
    "a broken law",
    lawsHold,
    [{ atMs: 9, who: "auditor", what: "verdict", law: 4, holds: false, violations: ["a runs twice"] }],
    "law 4 is broken: a runs twice",
  ],
  [
    "a long time without service",
    timeWithoutService({ maxMs: 1_000 }),
    [...lifeOf({}), invoke(20, 2), invoke(3_000, 3), answer(4_000, 3, "ok")],
    "no success for 3980 ms",
  ],
];

const RIGHT: readonly (readonly [string, Checker, readonly HistoryLine[]])[] = [
  [
    "a delete without an answer of a server that lives on",
    allOrNothing,
    [
      ...lifeOf({}),
      seen(50, "a", "ACTIVE"),
      invoke(90, 2, "delete", "a"),
      answer(5_000, 2, "unknown", "delete", "a"),
      settled,
    ],
  ],
  [
    "a delete without an answer of a server that is gone",
    allOrNothing,
    [
      ...lifeOf({}),
      invoke(90, 2, "delete", "a"),
      answer(5_000, 2, "unknown", "delete", "a"),
      seen(6_000, "a", "DELETED"),
      settled,
    ],
  ],
  [
    "a look that began before the server was seen gone",
    deletedStaysDeleted(),
    [...lifeOf({ deleted: 900 }), ...shown(940, "a"), seen(943, "a", "DELETED")],
  ],
  [
    "a look under way when the delete was answered",
    deletedStaysDeleted(),
    [...lifeOf({ deleted: 900 }), seen(1_200, "a", "ACTIVE"), seen(1_300, "a", "DELETED")],
  ],
  [
    "a look at a server that is being deleted",
    nothingLost,
    [...[...lifeOf({ deleted: 900 }), invoke(890, 3, "show", "a"), notFound(950, 3, "a")]],
  ],
  ["a create refused, and nothing of it", allOrNothing, [invoke(0, 1), answer(5, 1, "refused"), settled]],
  [
    "a time in which nobody asked for anything",
    timeWithoutService({ maxMs: 100 }),
    [...lifeOf({}), invoke(50_000, 2), answer(50_005, 2, "ok")],
  ],
];

describe("checkers", () => {
  test("every checker passes a run without faults and a run with many", () => {
    const faults = [{ fault: "kill", target: "conductor", from: 10, to: 20 } as const];
    expect(failuresOf(checkHistory(madeUpHistory(), standardCheckers))).toEqual([]);
    expect(failuresOf(checkHistory(madeUpHistory({ faults, creates: 2_000 }), standardCheckers))).toEqual([]);
  });

  test.each(WRONG)("find %s", (_, checker, history, expected) => {
    const found = findings(checker, history);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(expected);
  });

  test.each(RIGHT)("find nothing wrong with %s", (_, checker, history) => {
    expect(findings(checker, history)).toEqual([]);
  });

  test("an unknown outcome is not a success", () => {
    expect(findings(acceptedCreatesEnd, lifeOf({}))).toEqual([expect.stringContaining("did not wait for its end")]);
    expect(findings(lawsHold, [])).toEqual([expect.stringContaining("no audit")]);
    expect(findings(timeWithoutService({ maxMs: 1, ops: ["delete"] }), lifeOf({}))).toHaveLength(1);
  });
});
