import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { MoveStore } from "../../core/stores/api/move-store.ts";
import type { MoveRequest } from "../../proto/gen/berth/scheduler.ts";
import { serverId } from "./cell-fixtures.ts";

export interface MoveSubject {
  readonly store: MoveStore;
  close(): Promise<void>;
}

/** A request to migrate a server, with no other options. */
export function moveRequest(server: number, fields: Partial<MoveRequest> = {}): MoveRequest {
  return {
    id: randomUUID(),
    serverUuid: serverId(server),
    cell: "cell-1",
    kind: "migrate",
    flavor: undefined,
    host: "",
    forced: false,
    sameHostAllowed: false,
    availabilityZone: "",
    changesZone: false,
    requestId: "req-1",
    userId: "user",
    projectId: "project",
    createdAtMs: 1,
    fenceWaived: false,
    ...fields,
  };
}

/** The guarantees of both implementations of the moves' store. */
export function moveStoreContract(name: string, makeSubject: () => Promise<MoveSubject>): void {
  describe(`the moves' store in ${name}`, () => {
    let subject: MoveSubject;
    beforeEach(async () => {
      subject = await makeSubject();
    });
    afterEach(() => subject.close());

    test("keeps a move as it was first requested", async () => {
      const { store } = subject;
      const move = moveRequest(1, { kind: "resize", host: "host-1" });
      expect(await store.accept([move])).toEqual([{ kind: "accepted" }]);
      expect(await store.accept([move])).toEqual([{ kind: "accepted" }]);
      const [record] = await store.moves([move.id, randomUUID()]);
      expect(record).toMatchObject({ request: move, state: "accepted", fault: null });
      expect(await store.waiting([serverId(1), serverId(2)])).toHaveLength(1);
    });

    test("of two moves of one server at once, one waits and the other one learns which", async () => {
      const { store } = subject;
      const [some, other] = [moveRequest(1, { kind: "resize" }), moveRequest(1, { kind: "evacuate" })];
      const outcomes = await Promise.all([store.accept([some]), store.accept([other])]);
      const kinds = outcomes.flat().map(({ kind }) => kind);
      expect(kinds.sort()).toEqual(["accepted", "busy"]);
      const [waiting] = await store.waiting([serverId(1)]);
      expect(await store.accept([moveRequest(1)])).toEqual([{ kind: "busy", running: waiting?.request.kind }]);
    });

    test("accepts another move once the first has ended, and keeps both", async () => {
      const { store } = subject;
      const [first, second] = [moveRequest(1), moveRequest(1)];
      await store.accept([first]);
      await store.end([{ id: first.id, state: "refused", fault: "No valid host was found." }]);
      expect(await store.accept([second])).toEqual([{ kind: "accepted" }]);
      expect(
        (await store.movesOf(serverId(1), 10)).map(({ request, state, fault }) => [request.id, state, fault]),
      ).toEqual([
        [second.id, "accepted", null],
        [first.id, "refused", "No valid host was found."],
      ]);
    });

    test("a move that one scheduler has begun stays begun, although another one refused it before or afterwards", async () => {
      const { store } = subject;
      const first = moveRequest(1);
      await store.accept([first]);
      await store.markAsked([first.id]);
      const stateAfter = async (state: "begun" | "refused", fault: string | null) => {
        await store.end([{ id: first.id, state, fault }]);
        const [record] = await store.moves([first.id]);
        return [record?.state, record?.fault];
      };
      expect(await stateAfter("refused", "No valid host was found.")).toEqual(["refused", "No valid host was found."]);
      expect(await stateAfter("begun", null)).toEqual(["begun", null]);
      expect(await stateAfter("refused", "No valid host was found.")).toEqual(["begun", null]);
    });

    test("gives a move that no scheduler works on to only one of several sweeps", async () => {
      const { store } = subject;
      const [waits, ended] = [moveRequest(1), moveRequest(2)];
      await store.accept([waits, ended]);
      await store.end([{ id: ended.id, state: "begun", fault: null }]);
      expect(await store.staleMoves(60_000, 10)).toEqual([]);
      expect(await store.staleMoves(0, 10)).toEqual([waits.id]);
      await store.putOff([{ id: waits.id, delayMs: 0 }]);
      const swept = await Promise.all([1, 2, 3].map(() => store.staleMoves(60_000, 10)));
      expect(swept.flat()).toEqual([waits.id]);
    });

    test("remembers which moves were put off, how often, and how old they are", async () => {
      const { store } = subject;
      const [near, far, ended] = [moveRequest(1), moveRequest(2), moveRequest(3)];
      await store.accept([near, far, ended]);
      await store.end([{ id: ended.id, state: "begun", fault: null }]);
      await store.putOff([near, far, ended].map(({ id }) => ({ id, delayMs: id === far.id ? 3_600_000 : 0 })));
      await store.putOff([{ id: near.id, delayMs: 0 }]);
      expect(await store.staleMoves(0, 10)).toEqual([near.id]);
      const records = await store.moves([near.id, far.id, ended.id]);
      expect(records.map(({ putOffs }) => putOffs)).toEqual([2, 1, 0]);
      for (const { ageMs } of records) expect(ageMs).toBeGreaterThanOrEqual(0);
    });

    test("leaves moves of unreachable cells alone, unless they are old enough to be given up", async () => {
      const { store } = subject;
      const [here, away, asked] = [moveRequest(1), moveRequest(2, { cell: "away" }), moveRequest(3, { cell: "away" })];
      await store.accept([here, away, asked]);
      expect(await store.markAsked([asked.id])).toEqual([asked.id]);
      const except = { exceptCells: ["away"], unlessOlderThanMs: 3_600_000 };
      expect(await store.staleMoves(0, 10, except)).toEqual([here.id]);
      const old = await store.staleMoves(0, 10, { ...except, unlessOlderThanMs: 0 });
      expect([...old].sort()).toEqual([here.id, away.id].sort());
    });

    test("gives up no move that a cell may have begun, and marks none that has ended", async () => {
      const { store } = subject;
      const [asked, unasked] = [moveRequest(1), moveRequest(2)];
      await store.accept([asked, unasked]);
      await store.markAsked([asked.id]);
      const fault = "given up";
      expect(await store.giveUp([asked, unasked].map(({ id }) => ({ id, fault })))).toEqual([unasked.id]);
      expect(await store.moves([asked.id, unasked.id])).toMatchObject([
        { state: "accepted" },
        { state: "refused", fault },
      ]);
      expect(await store.markAsked([asked.id, unasked.id])).toEqual([asked.id]);
    });

    test("of a scheduler that is about to ask a cell and another one that gives the move up, one wins", async () => {
      const { store } = subject;
      const moves = Array.from({ length: 20 }, (_, server) => moveRequest(server));
      await store.accept(moves);
      const [asked, givenUp] = await Promise.all([
        store.markAsked(moves.map(({ id }) => id)),
        store.giveUp(moves.map(({ id }) => ({ id, fault: "given up" }))),
      ]);
      expect([...asked, ...givenUp].sort()).toEqual(moves.map(({ id }) => id).sort());
    });
  });
}
