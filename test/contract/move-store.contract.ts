import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { MoveStore } from "../../core/cell/move-store.ts";
import type { MoveRequest } from "../../proto/gen/berth/scheduler.ts";
import { serverId } from "./cell-fixtures.ts";

export interface MoveSubject {
  readonly store: MoveStore;
  close(): Promise<void>;
}

/** A request to migrate a server that names nothing else. */
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
    ...fields,
  };
}

/** What both bodies of the moves' store promise. */
export function moveStoreContract(name: string, makeSubject: () => Promise<MoveSubject>): void {
  describe(`the moves' store in ${name}`, () => {
    let subject: MoveSubject;
    beforeEach(async () => {
      subject = await makeSubject();
    });
    afterEach(() => subject.close());

    test("keeps a move as it was asked for, whoever asks again", async () => {
      const { store } = subject;
      const move = moveRequest(1, { kind: "resize", host: "host-1" });
      expect(await store.accept([move])).toEqual([{ kind: "accepted" }]);
      expect(await store.accept([move])).toEqual([{ kind: "accepted" }]);
      const [record] = await store.moves([move.id, randomUUID()]);
      expect(record).toMatchObject({ request: move, state: "accepted", fault: null });
      expect(await store.waiting([serverId(1), serverId(2)])).toHaveLength(1);
    });

    test("two moves of one server at once: one waits, the other hears which", async () => {
      const { store } = subject;
      const [some, other] = [moveRequest(1, { kind: "resize" }), moveRequest(1, { kind: "evacuate" })];
      const outcomes = await Promise.all([store.accept([some]), store.accept([other])]);
      const kinds = outcomes.flat().map(({ kind }) => kind);
      expect(kinds.sort()).toEqual(["accepted", "busy"]);
      const [waiting] = await store.waiting([serverId(1)]);
      expect(await store.accept([moveRequest(1)])).toEqual([{ kind: "busy", running: waiting?.request.kind }]);
    });

    test("takes another move once the first has ended, and keeps both", async () => {
      const { store } = subject;
      const [first, second] = [moveRequest(1), moveRequest(1)];
      await store.accept([first]);
      await store.end([{ id: first.id, state: "refused", fault: "No valid host was found." }]);
      await store.end([{ id: first.id, state: "begun", fault: null }]);
      expect(await store.accept([second])).toEqual([{ kind: "accepted" }]);
      expect(
        (await store.movesOf(serverId(1), 10)).map(({ request, state, fault }) => [request.id, state, fault]),
      ).toEqual([
        [second.id, "accepted", null],
        [first.id, "refused", "No valid host was found."],
      ]);
    });

    test("hands a move that nobody carries on to one of those who sweep", async () => {
      const { store } = subject;
      const [waits, ended] = [moveRequest(1), moveRequest(2)];
      await store.accept([waits, ended]);
      await store.end([{ id: ended.id, state: "begun", fault: null }]);
      expect(await store.staleMoves(60_000, 10)).toEqual([]);
      const swept = await store.staleMoves(0, 10);
      expect(swept.map(({ request }) => request.id)).toEqual([waits.id]);
      expect(await store.staleMoves(60_000, 10)).toEqual([]);
    });
  });
}
