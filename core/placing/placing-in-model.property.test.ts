import { expect, test } from "vitest";
import { noHost, placingPlan, reservedClaim } from "../../test/rigs/placing-fixtures.ts";
import fc from "../../test/rigs/property.ts";
import { isQuestion, type Learnt, type PlacingEvent, type PlacingQuestion, type PlacingState } from "./placing.ts";
import { BOOT, MOVE, type PlacingRoute } from "./placing-routes.ts";
import { beginPlacing, stepPlacing } from "./step-placing.ts";

// Runs the machine on a model of the rows. Only `rows` is durable. Messages are delivered twice and interleave, processes die between any
// two steps, their last questions arrive late, answers are lost, and views are behind.

const CELLS = ["one", "two"] as const;

interface CellModel {
  /** The number of free places. */
  room: number;
  /** The room that schedulers see, which may be behind. */
  seen: number;
  /** The last assignment under which the cell is closed to the server. */
  shutUpTo: number;
  /** The cell's disk is full: it refuses to store anything, also that it is closed to the server. */
  isFull: boolean;
  /** The server, or the operation of the move, is stored in the cell. */
  isPresent: boolean;
  timesStored: number;
}

class RowsModel {
  readonly cells: Map<string, CellModel>;
  state: "open" | "failed" | "begun" | "cancelled" = "open";
  cell: string | null;
  assignment = 0;
  /** Only for a move: a cell was asked to begin it. */
  isAsked = false;

  constructor(rooms: readonly { readonly room: number; readonly seen: number }[], cell: string | null) {
    const model = ({ room, seen }: { room: number; seen: number }): CellModel => ({
      ...{ room, seen, shutUpTo: -1, isFull: false, isPresent: false, timesStored: 0 },
    });
    this.cells = new Map(CELLS.map((name, index) => [name, model(rooms[index]!)]));
    this.cell = cell;
  }

  /** Adds to `avoided` each cell that refuses to write, and chooses none of them. */
  answer(question: PlacingQuestion, newId: () => string, avoided: Set<string> = new Set()): PlacingEvent {
    switch (question.kind) {
      case "read-server":
        return { kind: "server-read", leftOut: new Map() };
      case "choose":
        return this.#choose(question.learnt, newId, avoided);
      case "look-again":
        for (const cell of this.cells.values()) cell.seen = cell.room;
        return { kind: "looked", unseen: [] };
      case "leave-cell":
        return this.#leave(question.cell, question.assignment);
      case "assign":
        return this.#assign(question);
      case "mark-asked":
        this.isAsked ||= this.state === "open";
        return this.state === "open" ? { kind: "marked" } : { kind: "over" };
      case "claim":
        return this.#claim(question.claim.cell, question.assignment, avoided);
      case "note-begun":
        if (this.state === "open") this.state = "begun";
        return { kind: "noted" };
      case "ask-cell":
        return this.cells.get("one")!.isPresent ? { kind: "found", cell: "one" } : { kind: "not-begun" };
      case "refuse-unasked":
        if (this.state !== "open" || this.isAsked) return { kind: "may-have-begun" };
        this.state = "failed";
        return { kind: "refused" };
      case "refuse":
        return this.#refuse(question);
      default:
        throw new Error(`nobody asks "${question.kind}" here`);
    }
  }

  #choose({ at, shut, tried }: Learnt, newId: () => string, avoided: ReadonlySet<string>): PlacingEvent {
    const open = [...this.cells].filter(
      ([name, { seen }]) => seen > 0 && !avoided.has(name) && !shut.has(name) && !tried.has(name),
    );
    const [name] = open.find(([cell]) => cell === at) ?? open[0] ?? [];
    return name === undefined
      ? noHost({ leftOut: [...avoided] })
      : { kind: "chosen", claim: reservedClaim(newId(), name) };
  }

  #leave(name: string, assignment: number): PlacingEvent {
    const cell = this.cells.get(name)!;
    if (cell.isFull) return { kind: "failed" };
    if (cell.isPresent) return { kind: "found", cell: name };
    cell.shutUpTo = Math.max(cell.shutUpTo, assignment);
    return { kind: "cell-left" };
  }

  #isAssigned(cell: string | null, assignment: number): boolean {
    return this.cell === cell && this.assignment === assignment;
  }

  #assign({ from, to, assignment, next }: PlacingQuestion & { readonly kind: "assign" }): PlacingEvent {
    if (this.state !== "open") return { kind: "over" };
    if (!this.#isAssigned(from, assignment)) {
      return { kind: "assigned-elsewhere", cell: this.cell, assignment: this.assignment };
    }
    this.assignment = next;
    this.cell = to;
    return { kind: "assigned" };
  }

  #claim(name: string, assignment: number, avoided: Set<string>): PlacingEvent {
    const cell = this.cells.get(name)!;
    // The cell is opened by a statement of its own, which may be carried out although the claim is refused.
    if (cell.shutUpTo < assignment) cell.shutUpTo = -1;
    if (cell.isFull) {
      avoided.add(name);
      return { kind: "write-refused" };
    }
    if (cell.isPresent) return { kind: "found", cell: name };
    if (cell.shutUpTo >= assignment) return { kind: "closed" };
    if (cell.room === 0) return { kind: "lost", why: "no-capacity", inFlight: false, shortfalls: [] };
    cell.room -= 1;
    cell.isPresent = true;
    cell.timesStored += 1;
    return { kind: "claimed", xid: 1 };
  }

  #refuse({ cell, assignment }: PlacingQuestion & { readonly kind: "refuse" }): PlacingEvent {
    if (this.state === "open" && this.#isAssigned(cell, assignment)) this.state = "failed";
    if (this.state === "failed") return { kind: "refused" };
    if (this.state !== "open") return { kind: "over" };
    return { kind: "taken-over", cell: this.cell, assignment: this.assignment };
  }
}

/** A process that has taken the message. */
class Delivery {
  readonly #plan;
  readonly #rows: RowsModel;
  readonly #avoided = new Set<string>();
  #state: PlacingState;
  #question: PlacingQuestion | null = null;

  constructor(route: PlacingRoute, rows: RowsModel, isOld: boolean) {
    this.#plan = placingPlan({ route, isOld });
    this.#rows = rows;
    const { state, effects } = beginPlacing(this.#plan, rows.cell, rows.assignment);
    this.#state = state;
    this.#question = effects.find(isQuestion) ?? null;
  }

  /** The question whose answer the process waits for. */
  get question(): PlacingQuestion | null {
    return this.#question;
  }

  get end() {
    return this.#state.kind === "ended" ? this.#state.end : null;
  }

  /** `lost`: the question is carried out, but its answer does not come back. `unasked`: the store cannot be reached. */
  step(fate: "answered" | "lost" | "unasked", newId: () => string): void {
    if (this.#question === null) return;
    const answer = fate === "unasked" ? null : this.#rows.answer(this.#question, newId, this.#avoided);
    const event: PlacingEvent = fate === "answered" && answer !== null ? answer : { kind: "failed" };
    const { state, effects } = stepPlacing(this.#plan, this.#state, event);
    this.#state = state;
    this.#question = effects.find(isQuestion) ?? null;
  }
}

interface Turn {
  readonly hand: number;
  readonly what: "answered" | "lost" | "unasked" | "crash";
  readonly drift: number;
  readonly where: string;
  readonly seen: number | null;
  readonly full: boolean | null;
  readonly lands: boolean;
}

const turn: fc.Arbitrary<Turn> = fc.record({
  /** Which of the two deliveries makes the next step. */
  hand: fc.nat(1),
  what: fc.constantFrom(
    ...(["answered", "answered", "answered", "answered", "answered", "answered", "lost", "unasked", "crash"] as const),
  ),
  /** Another tenant takes or releases a place in a cell meanwhile. */
  drift: fc.constantFrom(-1, 0, 0, 0, 0, 1),
  where: fc.constantFrom(...CELLS),
  /** The view of that cell catches up or falls behind. With null it stays as it is. */
  seen: fc.constantFrom(null, null, null, 0, 2),
  /** The disk of that cell fills, or has space again. With null it stays as it is. */
  full: fc.constantFrom(null, null, null, true, false),
  /** A question of a process that has died since reaches its store now. */
  lands: fc.boolean(),
});
const rooms = fc.array(fc.record({ room: fc.nat(2), seen: fc.nat(2) }), { minLength: 2, maxLength: 2 });

interface Scene {
  readonly route: PlacingRoute;
  readonly hands: number;
  readonly rows: RowsModel;
  readonly turns: readonly Turn[];
  readonly isOld: boolean;
}

/** Questions about a new server that still change something if they reach their store after the death of the process that asked them. */
const LATE: readonly PlacingQuestion["kind"][] = ["assign", "claim", "leave-cell"];

/** Runs the scene, then delivers the message without further faults until the placing has ended. */
function playToEnd({ route, hands, rows, turns, isOld }: Scene): void {
  let claims = 0;
  const newId = () => {
    claims += 1;
    return `claim ${claims}`;
  };
  const deliveries: (Delivery | null)[] = Array.from({ length: hands }, () => null);
  const late: PlacingQuestion[] = [];
  const land = () => late.splice(0, 1).forEach((question) => void rows.answer(question, newId));
  for (const { hand, what, drift, where, seen, full, lands } of turns) {
    const cell = rows.cells.get(where)!;
    cell.seen = seen ?? cell.seen;
    cell.isFull = full ?? cell.isFull;
    cell.room = Math.max(0, cell.room + drift);
    const at = hand % hands;
    if (lands) land();
    if (what === "crash" || deliveries[at]?.end) {
      const sent = deliveries[at]?.question;
      if (route === BOOT && sent && LATE.includes(sent.kind)) late.push(sent);
      deliveries[at] = null;
      continue;
    }
    deliveries[at] ??= new Delivery(route, rows, isOld);
    deliveries[at].step(what, newId);
  }
  for (const cell of rows.cells.values()) cell.isFull = false;
  for (let again = 0; again < 3; again += 1) {
    const last = new Delivery(route, rows, isOld);
    const wasOpen = rows.state === "open";
    for (let steps = 0; last.end === null; steps += 1) {
      expect(steps).toBeLessThan(300);
      last.step("answered", newId);
      if (steps % 2 === 1) land();
    }
    if (last.end.kind === "later" || last.end.kind === "failed") continue;
    // A boot is refused only for lack of room, whichever cells it has left before.
    if (route === BOOT && wasOpen && rows.state === "failed") {
      expect([...rows.cells.values()].map(({ room }) => room)).toEqual([0, 0]);
    }
    return;
  }
  throw new Error("the request never ended, although nothing failed any more");
}

const storedIn = (rows: RowsModel) => CELLS.filter((name) => rows.cells.get(name)!.isPresent);

test("a request that two schedulers take at once, with crashes at any point, ends in one cell or is refused", () => {
  fc.assert(
    fc.property(
      rooms,
      fc.array(turn, { maxLength: 60 }),
      fc.boolean(),
      fc.option(fc.constantFrom(...CELLS)),
      (found, turns, isOld, cell) => {
        const rows = new RowsModel(found, cell);
        playToEnd({ route: BOOT, hands: 2, rows, turns, isOld });
        const stored = storedIn(rows);
        expect(CELLS.map((name) => rows.cells.get(name)!.timesStored).reduce((sum, times) => sum + times, 0)).toBe(
          stored.length,
        );
        if (rows.state === "failed") expect(stored).toEqual([]);
        else expect([rows.state, stored]).toEqual(["open", [rows.cell]]);
      },
    ),
    { numRuns: 3_000 },
  );
});

test("a request whose cell refuses to write, while two schedulers have it, still ends in one cell", () => {
  const fullness: fc.Arbitrary<Turn> = fc.record({
    hand: fc.nat(1),
    what: fc.constantFrom("answered", "answered", "answered", "answered", "answered", "crash"),
    drift: fc.constant(0),
    where: fc.constantFrom("one", "one", "two"),
    seen: fc.constant(null),
    full: fc.constantFrom(null, null, null, null, true, false),
    lands: fc.boolean(),
  });
  const fills: Turn = { hand: 0, what: "answered", drift: 0, where: "one", seen: null, full: true, lands: false };
  fc.assert(
    fc.property(fc.array(fullness, { maxLength: 40 }), (turns) => {
      const rows = new RowsModel(
        [2, 2].map((room) => ({ room, seen: room })),
        null,
      );
      playToEnd({ route: BOOT, hands: 2, rows, turns: [fills, ...turns], isOld: false });
      expect([...rows.cells.values()].map(({ timesStored }) => timesStored).sort()).toEqual([0, 1]);
      expect([rows.state, storedIn(rows)]).toEqual(["open", [rows.cell]]);
    }),
    { numRuns: 6_000 },
  );
});

test("a move that is delivered repeatedly, with crashes at any point, is begun once or refused", () => {
  fc.assert(
    fc.property(rooms, fc.array(turn, { maxLength: 40 }), fc.boolean(), (found, turns, isOld) => {
      // A move stays in its cell, which its row names.
      const rows = new RowsModel([found[0]!, { room: 0, seen: 0 }], "one");
      playToEnd({ route: MOVE, hands: 1, rows, turns: turns.map((one) => ({ ...one, where: "one" })), isOld });
      expect(rows.cells.get("one")!.timesStored).toBeLessThanOrEqual(1);
      expect(rows.state).toBe(storedIn(rows).length === 1 ? "begun" : "failed");
    }),
    { numRuns: 3_000 },
  );
});
