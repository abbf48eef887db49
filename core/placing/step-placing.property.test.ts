import { expect, test } from "vitest";
import { awaits, noHost, placingPlan, reservedClaim } from "../../test/rigs/placing-fixtures.ts";
import fc from "../../test/rigs/property.ts";
import { isQuestion, type PlacingEvent, type PlacingPlan, type PlacingStep } from "./placing.ts";
import { BOOT, BOOT_OF_AFFINITY_GROUP, MOVE, routeInMultiCreate } from "./placing-routes.ts";
import { beginPlacing, stepPlacing } from "./step-placing.ts";

/** More than any placing can take: a move is read at most thirty times, with at most thirty searches each. */
const STEPS_MAX = 30 * 30 * 6;

const cell = fc.constantFrom("one", "two", "three");
const inFlight = fc.boolean();

/** Every possible answer, by kind. */
const ANSWERS: { readonly [Kind in PlacingEvent["kind"]]: fc.Arbitrary<PlacingEvent> } = {
  "server-read": fc.constant({ kind: "server-read", leftOut: new Map() }),
  // The id stands for the step, so that no two claims have the same id.
  chosen: cell.map((name) => ({ kind: "chosen", claim: reservedClaim("", name) })),
  none: fc
    .record({ leftOut: fc.subarray(["two"]), awaitsGroup: fc.boolean(), ageMs: fc.constantFrom(0, 100_000) })
    .map((over) => noHost(over)),
  paused: fc.constant({ kind: "paused" }),
  resumed: fc.constant({ kind: "resumed" }),
  joined: fc.constant({ kind: "joined" }),
  "cell-left": fc.constant({ kind: "cell-left" }),
  pinned: fc.constant({ kind: "pinned" }),
  "pinned-elsewhere": cell.map((name) => ({ kind: "pinned-elsewhere", cell: name })),
  assigned: fc.constant({ kind: "assigned" }),
  "assigned-elsewhere": fc.option(cell).map((name) => ({ kind: "assigned-elsewhere", cell: name, assignment: 1 })),
  marked: fc.constant({ kind: "marked" }),
  claimed: fc.constant({ kind: "claimed", xid: 1 }),
  closed: fc.constant({ kind: "closed" }),
  "server-changed": fc.constant({ kind: "server-changed" }),
  lost: inFlight.map((flying) => ({ kind: "lost", why: "stale", inFlight: flying, shortfalls: [] })),
  "write-refused": fc.constant({ kind: "write-refused" }),
  "group-conflict": fc
    .record({
      policy: fc.constantFrom("affinity" as const, "anti-affinity" as const),
      hosts: fc.subarray(["a", "b"]),
      inFlight,
    })
    .map((conflict) => ({ kind: "group-conflict", ...conflict })),
  looked: fc.subarray(["three"]).map((unseen) => ({ kind: "looked", unseen })),
  noted: fc.constant({ kind: "noted" }),
  "not-begun": fc.constant({ kind: "not-begun" }),
  refused: fc.constant({ kind: "refused" }),
  "may-have-begun": fc.constant({ kind: "may-have-begun" }),
  "taken-over": fc.option(cell).map((name) => ({ kind: "taken-over", cell: name, assignment: 1 })),
  found: cell.map((name) => ({ kind: "found", cell: name })),
  unplaceable: fc.boolean().map((mayHaveBegun) => ({ kind: "unplaceable", fault: "No.", mayHaveBegun })),
  over: fc.constant({ kind: "over" }),
  "cannot-yet": fc.constant({ kind: "cannot-yet", why: "away" }),
  failed: fc.constant({ kind: "failed" }),
};

const KINDS = Object.keys(ANSWERS) as PlacingEvent["kind"][];
/** Answers after which most placings continue. They are rare, because they would hide the others. */
const RARE: readonly PlacingEvent["kind"][] = [
  "over",
  "cannot-yet",
  "failed",
  "found",
  "unplaceable",
  "claimed",
  "refused",
];

const plans: fc.Arbitrary<PlacingPlan> = fc
  .record({
    route: fc.constantFrom(
      BOOT,
      BOOT_OF_AFFINITY_GROUP,
      routeInMultiCreate(BOOT),
      routeInMultiCreate(BOOT_OF_AFFINITY_GROUP),
      MOVE,
    ),
    isOld: fc.boolean(),
    malformed: fc.constantFrom(null, null, null, "It asks for nothing."),
  })
  .map(({ route, isOld, malformed }) => placingPlan({ route, isOld, malformed: route === MOVE ? null : malformed }));

interface Turn {
  readonly step: PlacingStep;
  /** The answer to the step, or null when the placing had ended. */
  readonly event: PlacingEvent | null;
}

/** Runs placings to their ends with random answers. `script` is repeated until they have ended. */
const histories = fc
  .record({
    plan: plans,
    at: fc.option(cell),
    script: fc.array(
      fc.record({
        pick: fc.nat(1_000),
        isRare: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
        answers: fc.record(ANSWERS),
      }),
      {
        minLength: 1,
        maxLength: 12,
      },
    ),
  })
  .map(({ plan, at, script }) => {
    const turns: Turn[] = [];
    let step = beginPlacing(plan, plan.route === MOVE ? (at ?? "one") : at);
    while (step.state.kind !== "ended" && turns.length < STEPS_MAX) {
      const { pick, isRare, answers } = script[turns.length % script.length]!;
      const { state } = step;
      const awaited = KINDS.filter((kind) => awaits(state, kind));
      const common = awaited.filter((kind) => !RARE.includes(kind));
      const among = isRare || common.length === 0 ? awaited : common;
      const answer = answers[among[(pick + turns.length) % among.length]!];
      const event =
        answer.kind === "chosen" ? { ...answer, claim: { ...answer.claim, id: `${turns.length}` } } : answer;
      turns.push({ step, event });
      step = stepPlacing(plan, state, event);
    }
    return { plan, turns: [...turns, { step, event: null }] };
  });

test("every sequence of answers ends", () => {
  fc.assert(
    fc.property(histories, ({ turns }) => turns.at(-1)!.step.state.kind === "ended"),
    { numRuns: 1_000 },
  );
});

test("each step asks exactly one question, as the last of its effects; the end asks none", () => {
  fc.assert(
    fc.property(histories, ({ turns }) => {
      for (const { step } of turns) {
        const questions = step.effects.map(isQuestion);
        const expected = step.state.kind === "ended" ? [] : [true];
        expect(questions.filter((is) => is)).toEqual(expected);
        if (step.state.kind !== "ended") expect(questions.at(-1)).toBe(true);
      }
    }),
  );
});

test("at most one claim is held, and it is released or kept exactly once", () => {
  fc.assert(
    fc.property(histories, ({ turns }) => {
      let held: string | null = null;
      for (const { step } of turns) {
        for (const effect of step.effects) {
          if (effect.kind === "reserve") {
            expect(held).toBeNull();
            held = effect.claim.id;
          } else if (effect.kind === "release" || effect.kind === "keep") {
            expect(effect.claim.id).toBe(held);
            held = null;
          } else if (effect.kind === "claim") expect(effect.claim.id).toBe(held);
        }
      }
      expect(held).toBeNull();
    }),
    { numRuns: 1_000 },
  );
});

test("a claim is kept only when its cell has stored it, and such a request is never refused", () => {
  fc.assert(
    fc.property(histories, ({ turns }) => {
      const isStored = turns.some(({ event }) => event?.kind === "claimed");
      const isKept = turns.some(({ step }) => step.effects.some(({ kind }) => kind === "keep"));
      expect(isKept).toBe(isStored);
      const last = turns.at(-1)!.step.state;
      if (last.kind === "ended" && last.end.kind === "placed") expect(isStored).toBe(true);
    }),
  );
});

/** Answers that show that views were behind, or that another process is active. */
const CONTRADICTIONS: readonly PlacingEvent["kind"][] = ["lost", "group-conflict", "pinned-elsewhere", "taken-over"];

test("a request without a host is refused only after a search of fresh views that nothing has contradicted since, or after the last search", () => {
  fc.assert(
    fc.property(histories, ({ plan, turns }) => {
      const last = turns.at(-1)!.step.state;
      if (last.kind !== "ended" || (last.end.kind !== "refused" && last.end.kind !== "unplaced")) return;
      if (last.end.choice === null) return;
      const judged = turns.findLastIndex(({ event }) => event?.kind === "none");
      const before = turns.slice(0, judged).map(({ event }) => event!.kind);
      const readAt = before.lastIndexOf("server-read");
      const looks = before.filter((kind, index) => kind === "looked" && index > readAt).length;
      const isFresh = before.lastIndexOf("looked") > before.findLastIndex((kind) => CONTRADICTIONS.includes(kind));
      expect(looks).toBeGreaterThan(0);
      expect(isFresh || looks >= plan.route.looksMax).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});

test("answers for which a state does not wait change nothing", () => {
  fc.assert(
    fc.property(histories, fc.record(ANSWERS), ({ plan, turns }, answers) => {
      for (const { step } of turns.slice(0, 50)) {
        for (const kind of KINDS.filter((one) => !awaits(step.state, one)))
          expect(stepPlacing(plan, step.state, answers[kind])).toEqual({ state: step.state, effects: [] });
      }
    }),
    { numRuns: 50 },
  );
});

test("a request that is not old is never given up, and an old one is never put off without an attempt to give it up", () => {
  fc.assert(
    fc.property(histories, ({ plan, turns }) => {
      const last = turns.at(-1)!.step.state;
      if (last.kind !== "ended") return;
      const { givenUp } = last.learnt;
      if (!plan.isOld) expect(givenUp).toBeNull();
      else if (last.end.kind === "later" || last.end.kind === "failed") expect(givenUp).not.toBeNull();
    }),
  );
});
