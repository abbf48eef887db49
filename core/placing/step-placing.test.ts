import { describe, expect, test } from "vitest";
import { noHost, placingPlan, reservedClaim } from "../../test/rigs/placing-fixtures.ts";
import { GROUP_IN_FLIGHT } from "./describe-placing.ts";
import type { PlacingEvent, PlacingPlan, PlacingStep } from "./placing.ts";
import { BOOT, BOOT_OF_AFFINITY_GROUP, MOVE, routeInMultiCreate } from "./placing-routes.ts";
import { beginPlacing, stepPlacing } from "./step-placing.ts";

const chosen = (cell: string, id = "c1"): PlacingEvent => ({ kind: "chosen", claim: reservedClaim(id, cell) });
const lost: PlacingEvent = { kind: "lost", why: "no-capacity", inFlight: false, shortfalls: [] };
const looked: PlacingEvent = { kind: "looked", unseen: [] };
const read: PlacingEvent = { kind: "server-read", leftOut: new Map([["one", new Set(["source"])]]) };

/** All steps of a placing whose row contains this cell. */
function run(plan: PlacingPlan, cell: string | null, events: readonly PlacingEvent[]): readonly PlacingStep[] {
  const steps = [beginPlacing(plan, cell)];
  for (const event of events) steps.push(stepPlacing(plan, steps.at(-1)!.state, event));
  return steps;
}
const lastOf = (plan: PlacingPlan, cell: string | null, events: readonly PlacingEvent[]) =>
  run(plan, cell, events).at(-1)!;
const endOf = (plan: PlacingPlan, cell: string | null, events: readonly PlacingEvent[]) => {
  const { state } = lastOf(plan, cell, events);
  return state.kind === "ended" ? state.end : state.kind;
};
const kindsOf = (steps: readonly PlacingStep[]) =>
  steps.map(({ effects }) => effects.map(({ kind }) => kind).join(" "));

describe("a new server", () => {
  const plan = placingPlan();

  test("gets a host, is assigned to its cell, and is claimed there", () => {
    const steps = run(plan, null, [chosen("one"), { kind: "assigned" }, { kind: "claimed", xid: 7 }]);
    expect(kindsOf(steps)).toEqual(["choose", "reserve assign", "claim", "keep"]);
    expect(steps.at(-1)!.state).toMatchObject({
      kind: "ended",
      end: { kind: "placed", claim: reservedClaim("c1", "one") },
    });
  });

  test("that goes to another cell first leaves its assigned one, and only once", () => {
    const steps = run(plan, "one", [chosen("two"), { kind: "cell-left" }, { kind: "assigned" }, lost, chosen("three")]);
    expect(kindsOf(steps)).toEqual([
      "choose",
      "reserve leave-cell",
      "tell-left assign",
      "claim",
      "release learn-shortfalls tell-lost choose",
      "reserve leave-cell",
    ]);
    expect(steps[1]!.effects.at(-1)).toEqual({ kind: "leave-cell", cell: "one", assignment: 0 });
    expect(steps[2]!.effects.at(-1)).toEqual({ kind: "assign", from: "one", to: "two", assignment: 0, next: 1 });
    expect(steps[3]!.effects.at(-1)).toMatchObject({ kind: "claim", assignment: 1 });
    expect(steps[5]!.effects.at(-1)).toEqual({ kind: "leave-cell", cell: "two", assignment: 1 });
  });

  test("is found in the cell that it was about to leave, and its claim elsewhere is released", () => {
    const last = lastOf(plan, "one", [chosen("two"), { kind: "found", cell: "one" }]);
    expect(last.effects.map(({ kind }) => kind)).toEqual(["release"]);
    expect(last.state).toMatchObject({ end: { kind: "present", cell: "one" } });
  });

  test("that another scheduler assigned elsewhere gets a host again, from there", () => {
    const last = lastOf(plan, null, [chosen("one"), { kind: "assigned-elsewhere", cell: "two", assignment: 0 }]);
    expect(last.effects.map(({ kind }) => kind)).toEqual(["release", "choose"]);
    expect(last.state.learnt.at).toBe("two");
  });

  test("of an affinity group goes to the cell that the group is pinned to", () => {
    const pinned = placingPlan({ route: BOOT_OF_AFFINITY_GROUP });
    const last = lastOf(pinned, null, [chosen("one"), { kind: "pinned-elsewhere", cell: "two" }]);
    expect(last.effects.map(({ kind }) => kind)).toEqual(["release", "choose"]);
    expect(last.state.learnt.pinned).toEqual({ cell: "two", hosts: [] });
  });

  test.each([
    ["anti-affinity", ["a", "b"], ["a", "b"], null],
    ["affinity", ["a"], [], { cell: "one", hosts: ["a"] }],
    ["affinity", ["a", "b"], ["host of one"], { cell: "one", hosts: ["a", "b"] }],
  ] as const)("whose %s group is on %j leaves out %j", (policy, hosts, tried, pinned) => {
    const conflict: PlacingEvent = { kind: "group-conflict", policy, hosts, inFlight: true };
    const { learnt } = lastOf(plan, null, [chosen("one"), { kind: "assigned" }, conflict]).state;
    expect([...(learnt.tried.get("one") ?? [])]).toEqual(tried);
    expect([learnt.pinned, learnt.groupInFlight]).toEqual([pinned, true]);
  });

  test("is refused only after a search of fresh views, which forgets earlier lost claims", () => {
    const steps = run(plan, null, [chosen("one"), { kind: "assigned" }, lost, noHost(), looked]);
    expect(kindsOf(steps).slice(3)).toEqual([
      "release learn-shortfalls tell-lost choose",
      "tell-looked-again look-again",
      "choose",
    ]);
    expect(steps[3]!.state.learnt.tried.get("one")).toEqual(new Set(["host of one"]));
    expect(steps[5]!.state.learnt.tried.size).toBe(0);
    const more = [noHost(), { kind: "cell-left" }, { kind: "refused" }] as const;
    const refused = run(plan, "one", [noHost(), looked, ...more]);
    expect(kindsOf(refused).slice(3)).toEqual(["explain-refusal leave-cell", "tell-left refuse", ""]);
    expect(refused.at(-1)!.state).toMatchObject({
      end: { kind: "refused", fault: "No valid host was found. There are no hosts." },
    });
  });

  test.each([
    ["should leave", [chosen("two")]],
    ["is refused in", [noHost(), looked, noHost()]],
  ])("is refused because of a guest in quarantine in the cell that it %s", (_, events) => {
    const quarantined: PlacingEvent = { kind: "unplaceable", fault: "A guest of it is here.", mayHaveBegun: false };
    const steps = run(plan, "one", [...events, quarantined, { kind: "refused" }]);
    expect(steps.at(-2)!.effects.at(-1)).toMatchObject({
      kind: "refuse",
      cell: "one",
      fault: "A guest of it is here.",
    });
    expect(steps.at(-1)!.state).toMatchObject({ end: { kind: "refused", fault: "A guest of it is here." } });
  });

  test("is searched for at most five times while its claims keep failing", () => {
    const again = [noHost(), looked, chosen("one"), { kind: "assigned" } as const, lost];
    const events = Array.from({ length: 5 }, () => again).flat();
    expect(lastOf(plan, null, [...events, noHost()]).state.kind).toBe("withdrawing");
  });

  test("waits for cells that do not answer, and is refused without them once it is old enough", () => {
    const waits = noHost({ leftOut: ["two"], ageMs: 59_999 });
    const why = "no host in the other cells, and no answer from three, two";
    const unseen: PlacingEvent = { kind: "looked", unseen: ["three"] };
    expect(endOf(plan, null, [noHost(), unseen, waits])).toEqual({ kind: "later", why });
    expect(
      endOf(plan, null, [noHost(), unseen, noHost({ leftOut: ["two"], ageMs: 60_000 }), { kind: "refused" }]),
    ).toMatchObject({
      kind: "refused",
      fault: "No valid host was found. There are no hosts: no answer from cell three, two.",
    });
  });

  test("waits for servers of its group that are moving or being built, unless they wait for it, too", () => {
    const waits = noHost({ awaitsGroup: true });
    expect(endOf(plan, null, [noHost(), looked, waits])).toEqual({ kind: "later", why: GROUP_IN_FLIGHT });
    const together = placingPlan({ route: routeInMultiCreate(BOOT) });
    expect(endOf(together, null, [noHost(), looked, waits])).toMatchObject({ kind: "unplaced", cell: null });
  });

  test("of a multi-create lets the others choose before it continues, and is not refused alone", () => {
    const together = placingPlan({ route: routeInMultiCreate(BOOT) });
    const steps = run(together, null, [chosen("one"), { kind: "joined" }]);
    expect(kindsOf(steps)).toEqual(["choose", "reserve join", "assign"]);
    expect(endOf(together, "one", [noHost(), looked, noHost(), { kind: "cell-left" }])).toMatchObject({
      kind: "unplaced",
      cell: "one",
    });
  });

  test("that another scheduler continues to place in another cell is looked for there", () => {
    const events: PlacingEvent[] = [noHost(), looked, noHost(), { kind: "taken-over", cell: "two", assignment: 0 }];
    const last = lastOf(plan, null, events);
    expect([last.state.kind, last.state.learnt.at, last.state.learnt.fresh]).toEqual(["choosing", "two", false]);
  });

  test("is put off after thirty rounds", () => {
    const round = [chosen("one"), { kind: "assigned" } as const, lost];
    const events = Array.from({ length: 30 }, () => round).flat();
    expect(endOf(plan, null, events)).toEqual({ kind: "later", why: "lost 30 claims to other requests" });
  });

  test("whose search is interrupted lets others go first, and continues", () => {
    expect(kindsOf(run(plan, null, [{ kind: "paused" }, { kind: "resumed" }]))).toEqual(["choose", "pause", "choose"]);
  });

  test("that cannot be placed at all is refused at once, even when others have assigned it meanwhile", () => {
    const malformed = placingPlan({ malformed: "It has no flavor." });
    const steps = run(malformed, null, [
      { kind: "taken-over", cell: "one", assignment: 0 },
      { kind: "cell-left" },
      { kind: "refused" },
    ]);
    expect(kindsOf(steps)).toEqual(["refuse", "leave-cell", "tell-left refuse", ""]);
    expect(steps.at(-1)!.state).toMatchObject({ end: { kind: "refused", fault: "It has no flavor." } });
  });

  test("whose stores fail is tried again later, after its claim is released", () => {
    const last = lastOf(plan, null, [chosen("one"), { kind: "failed" }]);
    expect(last.effects.map(({ kind }) => kind)).toEqual(["release"]);
    expect(last.state).toMatchObject({ end: { kind: "failed" } });
  });
});

describe("an old request", () => {
  const plan = placingPlan({ isOld: true });
  const away: PlacingEvent = { kind: "cannot-yet", why: "cell one is away" };

  test("is given up with the reason instead of being put off", () => {
    const end = endOf(plan, "one", [away, { kind: "cell-left" }, { kind: "refused" }]);
    expect(end).toMatchObject({ fault: "The request was given up after 10 minutes: cell one is away." });
  });

  test("is still put off when its cell cannot be closed to it, or another scheduler has it", () => {
    const later = { kind: "later", why: "cell one is away" };
    expect(endOf(plan, "one", [away, { kind: "cannot-yet", why: "still away" }])).toEqual(later);
    expect(
      endOf(plan, "one", [away, { kind: "cell-left" }, { kind: "taken-over", cell: "two", assignment: 0 }]),
    ).toEqual(later);
  });

  test("is given up when stores keep failing, with that reason; when the refusal fails, too, it is tried again", () => {
    const steps = run(plan, null, [chosen("one"), { kind: "failed" }, { kind: "refused" }]);
    expect(kindsOf(steps)).toEqual(["choose", "reserve assign", "release refuse", "tell-given-up"]);
    expect(endOf(plan, null, [chosen("one"), { kind: "failed" }, { kind: "failed" }])).toEqual({ kind: "failed" });
  });
});

describe("a server that must move", () => {
  const plan = placingPlan({ route: MOVE });

  test("is read from its cell, gets a host, and its move is begun there after its row says so", () => {
    const steps = run(plan, "one", [
      read,
      chosen("one"),
      { kind: "marked" },
      { kind: "claimed", xid: 1 },
      { kind: "noted" },
    ]);
    expect(kindsOf(steps)).toEqual(["read-server", "choose", "reserve mark-asked", "claim", "keep note-begun", ""]);
    expect(steps.at(-1)!.state).toMatchObject({ end: { kind: "placed" } });
  });

  test("is read again when it has changed, and everything learnt before is forgotten", () => {
    const events: PlacingEvent[] = [read, chosen("one"), { kind: "marked" }, lost, chosen("one"), { kind: "marked" }];
    const steps = run(plan, "one", [
      ...events,
      { kind: "server-changed" },
      { kind: "server-read", leftOut: new Map() },
    ]);
    expect(kindsOf(steps).slice(-2)).toEqual(["release read-server", "choose"]);
    expect(steps.at(-1)!.state.learnt.tried.size).toBe(0);
  });

  test("is not refused when its cell has begun the move and the answer was lost", () => {
    const events: PlacingEvent[] = [read, noHost(), looked, noHost()];
    expect(kindsOf(run(plan, "one", events)).at(-1)).toBe("ask-cell");
    expect(endOf(plan, "one", [...events, { kind: "found", cell: "one" }, { kind: "noted" }])).toEqual({
      kind: "over",
    });
    const busy: PlacingEvent = { kind: "unplaceable", fault: "Another operation is under way.", mayHaveBegun: true };
    expect(kindsOf(run(plan, "one", [read, chosen("one"), busy])).at(-1)).toBe("release ask-cell");
  });

  test("excludes its own host and lost ones even after a search of fresh views", () => {
    const { learnt } = lastOf(plan, "one", [read, chosen("one"), { kind: "marked" }, lost, noHost(), looked]).state;
    expect(learnt.tried.get("one")).toEqual(new Set(["source", "host of one"]));
  });

  test("that is old is refused unless its cell may have been asked; then the cell decides", () => {
    const old = placingPlan({ route: MOVE, isOld: true });
    const away: PlacingEvent = { kind: "cannot-yet", why: "cell one is away" };
    expect(endOf(old, "one", [away, { kind: "refused" }])).toMatchObject({
      fault:
        "The move was given up after 10 minutes: cell one is away. The server stays as it is. Try again when this has changed.",
    });
    const asked: PlacingEvent[] = [away, { kind: "may-have-begun" }];
    expect(endOf(old, "one", [...asked, away])).toEqual({ kind: "later", why: "cell one is away" });
    expect(endOf(old, "one", [...asked, { kind: "found", cell: "one" }, { kind: "noted" }])).toEqual({ kind: "over" });
    expect(endOf(old, "one", [...asked, { kind: "not-begun" }, { kind: "refused" }])).toMatchObject({
      kind: "refused",
    });
  });
});
