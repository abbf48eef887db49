import { expect, test } from "vitest";
import { type MigrationQuery, MOVE_IN_DOUBT } from "../../core/stores/cell/operation-store.ts";
import { volumeOf } from "../rigs/begin-operation.ts";
import { deleteTask, dispatchOf, numbered, serverId, taskId } from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";
import { moveId, operationsIn } from "./operations-under-test.ts";

/** The guarantees for operations that are under way: how they are listed, and what signals, resets and deletes do to them. */
export function operationActionsContract(cell: () => CellUnderTest): void {
  const { boot, begin, take, transition } = operationsIn(cell);

  test("migrations are listed youngest first, from a marker on, and up to a time; unreadable ones are included", async () => {
    const { store } = cell();
    const moves = [1, 2, 3].map((move) => numbered(0xe, move));
    for (const [index, id] of moves.entries()) {
      const server = index + 1;
      await store.dispatch([dispatchOf({ server, task: server, hosts: [0], vcpus: 1 })]);
      await store.commitActive([{ ...tenureOf(await cell().take(server)), selection: 0 }]);
      expect((await begin({ server, hosts: [1], vcpus: 1, taskId: id })).outcome.kind).toBe("begun");
    }
    const all = await store.migrations({ limit: 9 });
    const uuids = all.map(({ uuid }) => uuid);
    expect(uuids.toSorted()).toEqual(moves);
    const times = all.map(({ createdAtMs }) => createdAtMs);
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    const list = async (query: Partial<MigrationQuery>) =>
      (await store.migrations({ limit: 9, ...query })).map(({ uuid }) => uuid);
    expect(await list({ after: uuids[0]!, limit: 1 })).toEqual([uuids[1]]);
    expect(await list({ after: uuids[1]! })).toEqual([uuids[2]]);
    expect(await list({ after: uuids[2]! })).toEqual([]);
    for (const untilMs of new Set(times)) {
      const until = all.filter(({ createdAtMs }) => createdAtMs <= untilMs);
      expect(await list({ untilMs })).toEqual(until.map(({ uuid }) => uuid));
    }
    expect(await list({ untilMs: (times.at(-1) ?? 0) - 1 })).toEqual([]);
    expect(await list({ after: uuids[0]!, untilMs: times[0]! })).toEqual(uuids.slice(1));
    await cell().damage(moves[0]!);
    expect((await store.migrations({ limit: 9 })).find(({ operation }) => operation === null)).toMatchObject({
      ...{ uuid: moves[0], serverUuid: serverId(1), kind: "resize", sourceHost: "host-0", destHost: "host-1" },
      ...{ server: null, note: expect.stringContaining(`(${moves[0]}) cannot be read`) },
    });
    expect(await list({})).toEqual(uuids);
  });

  test("a status is reset only for a server at rest that has a home", async () => {
    const { store } = cell();
    await boot();
    const reset = (status: "ACTIVE" | "ERROR", server = 1) => ({ serverUuid: serverId(server), status });
    expect(await store.resetStatus([reset("ERROR"), reset("ERROR", 9)])).toEqual([{ kind: "reset" }, { kind: "gone" }]);
    expect(await store.servers([serverId(1)])).toMatchObject([{ status: "ERROR", host: "host-0", revision: 1 }]);
    expect((await begin()).outcome).toMatchObject({ kind: "wrong-status", status: "ERROR" });
    expect(await store.resetStatus([reset("ACTIVE"), reset("ACTIVE")])).toEqual([{ kind: "reset" }, { kind: "reset" }]);
    await begin();
    expect(await store.resetStatus([reset("ERROR")])).toEqual([{ kind: "busy", running: "resize" }]);
    const taken = await take(moveId);
    await store.commitStep([transition(taken, 1, "starting")]);
    await store.commitStep([transition(taken, 2, "succeed", { stage: "starting", selection: 0 })]);
    expect(await store.resetStatus([reset("ACTIVE")])).toEqual([{ kind: "busy", running: "VERIFY_RESIZE" }]);
  });

  test("a server in ERROR whose move waits for its confirmation waits for it again when an operator sets it to active, and can be confirmed", async () => {
    const { store } = cell();
    const reset = (status: "ACTIVE" | "ERROR") => store.resetStatus([{ serverUuid: serverId(1), status }]);
    await boot();
    await begin();
    const taken = await take(moveId);
    await store.commitStep([transition(taken, 1, "starting")]);
    await store.commitStep([transition(taken, 2, "succeed", { stage: "starting", selection: 0 })]);
    // A change of its volumes has ended without anybody knowing how, since its host has obeyed a later order than the database knows of.
    const change = await begin({
      kind: "attach-volume-unconfirmed",
      taskId: taskId(8),
      hosts: [],
      volume: volumeOf(1),
    });
    expect(change.outcome.kind).toBe("begun");
    const changing = await take(taskId(8));
    const forgotten = transition(changing, 1, "lost", { stage: "attaching", selection: 0 }, 0, true);
    expect(forgotten.server).toMatchObject({ status: "ERROR", uncertain: true });
    expect(await store.commitStep([forgotten])).toMatchObject([{ kind: "committed" }]);
    expect((await begin({ kind: "hard-reboot", taskId: taskId(9) })).outcome).toMatchObject({ why: MOVE_IN_DOUBT });
    expect(await reset("ERROR")).toEqual([{ kind: "reset" }]);
    expect(await reset("ACTIVE")).toEqual([{ kind: "reset" }]);
    expect(await store.servers([serverId(1)])).toMatchObject([{ status: "VERIFY_RESIZE", host: "host-1" }]);
    expect((await begin({ kind: "confirm", taskId: taskId(10) })).outcome.kind).toBe("begun");
  });

  test("a signal fences the conductor that carries out the operation, and the next one sees it", async () => {
    const { store } = cell();
    await boot();
    await begin({ kind: "live-migrate", vcpus: 2 });
    const taken = await take(moveId);
    expect(
      await store.signal([
        { taskId: moveId, signal: "abort" },
        { taskId: taskId(1), signal: "abort" },
      ]),
    ).toEqual(["signalled", "no-such-operation"]);
    expect(await store.commitStep([transition(taken, 1, "handing-over")])).toEqual([{ kind: "fenced" }]);
    await take(moveId, 1);
    expect(await store.positions([moveId])).toMatchObject([{ signal: "abort" }]);
    expect(await store.signal([{ taskId: moveId, signal: "force" }])).toEqual(["too-late"]);
    expect(await store.positions([moveId])).toMatchObject([{ signal: "abort" }]);
  });

  test("a signal is accepted only while it can still be obeyed", async () => {
    const { store } = cell();
    await boot();
    await begin({ kind: "live-migrate", vcpus: 2 });
    const signal = async (one: "abort" | "force") => (await store.signal([{ taskId: moveId, signal: one }]))[0];
    expect(await signal("force")).toBe("too-late");
    await store.commitStep([transition(await take(moveId), 1, "handing-over")]);
    expect(await signal("force")).toBe("signalled");
    const taken = await take(moveId);
    await store.commitStep([transition(taken, 2, "starting")]);
    expect([await signal("force"), await signal("abort")]).toEqual(["too-late", "too-late"]);
    expect(await store.migrations({ serverUuid: serverId(1), limit: 1 })).toMatchObject([{ status: "post-migrating" }]);
    const at = { stage: "starting", selection: 0 } as const;
    expect(await store.commitStep([transition(taken, 3, "cleaning", at)])).toMatchObject([{ kind: "committed" }]);
  });

  test("a volume is added to a server's spec once, and taken from it once, however often the commit is repeated", async () => {
    const { store } = cell();
    await boot();
    const stored = async () => (await store.servers([serverId(1)]))[0];
    for (const [nth, kind, volumes] of [
      [1, "attach-volume", [volumeOf(1)]],
      [2, "detach-volume", []],
    ] as const) {
      const before = (await stored())?.spec.volumes;
      const id = numbered(0xe, nth);
      expect((await begin({ kind, taskId: id, hosts: [] })).outcome.kind).toBe("begun");
      expect((await begin({ kind, taskId: numbered(0xe, 9), hosts: [] })).outcome).toMatchObject({ kind: "busy" });
      expect((await stored())?.spec.volumes).toEqual(before);
      const stage = kind === "attach-volume" ? "attaching" : "detaching";
      const step = transition(await take(id), 1, "succeed", { stage, selection: 0 });
      const [committed] = await store.commitStep([step]);
      expect(committed).toMatchObject({ kind: "committed" });
      expect(await store.commitStep([step])).toEqual([committed]);
      expect(await stored()).toMatchObject({ status: "ACTIVE", taskState: null, spec: { volumes } });
    }
  });

  test("an operation may change a server's spec with its first step, and take the change back with its last one", async () => {
    const { store } = cell();
    await boot();
    const volume = { ...volumeOf(1), inCinder: true };
    expect((await begin({ kind: "attach-volume", volume, taskId: numbered(0xe, 5) })).outcome.kind).toBe("begun");
    await store.commitStep([
      transition(await take(numbered(0xe, 5)), 1, "succeed", { stage: "attaching", selection: 0 }),
    ]);
    const files = async () => (await store.servers([serverId(1)]))[0]?.spec.volumes.map(({ file }) => file);
    const snapshot = { snapshotId: "s", newFile: "new", fileToMerge: "", mergeTarget: "" };
    const wish = { kind: "resume-snapshot", volume: { ...volume, file: "new" }, snapshot } as const;
    expect((await begin(wish)).outcome.kind).toBe("begun");
    expect(await files()).toEqual(["new"]);
    await store.commitStep([transition(await take(moveId), 1, "give-up", { stage: "denying", selection: 0 })]);
    expect(await files()).toEqual([""]);
    expect(await store.servers([serverId(1)])).toMatchObject([{ status: "ACTIVE", taskState: null }]);
  });

  test("an operation that was closed before it began never begins, and one that has begun is not closed", async () => {
    const { store } = cell();
    await boot();
    const [closed, begun, absent] = [7, 8, 9].map((id) => numbered(0xe, id)) as [string, string, string];
    const close = (taskId: string, server = 1) => ({ taskId, serverUuid: serverId(server) });
    const asked = { kind: "attach-volume", hosts: [] } as const;
    expect(await store.closeTasks([close(closed), close(closed), close(absent, 9)])).toEqual(Array(3).fill("closed"));
    expect((await begin({ ...asked, taskId: closed })).outcome).toEqual({ kind: "closed" });
    expect((await begin({ ...asked, taskId: begun })).outcome.kind).toBe("begun");
    expect(await store.closeTasks([close(begun), close(closed)])).toEqual(["begun", "closed"]);
    expect(await store.outcomes([begun, closed, absent])).toEqual(["open", null, null]);
    const step = transition(await take(begun), 1, "succeed", { stage: "attaching", selection: 0 });
    expect(await store.commitStep([step])).toMatchObject([{ kind: "committed" }]);
    expect(await store.outcomes([begun])).toEqual(["success"]);
    expect(await store.closeTasks([close(begun)])).toEqual(["begun"]);
  });

  test("of an operation that is begun and closed at once, either the one happens or the other", async () => {
    const { store } = cell();
    await boot();
    for (let round = 0; round < 12; round += 1) {
      const id = numbered(0xe, 20 + round);
      const asked = { kind: "attach-volume", hosts: [], taskId: id } as const;
      const closing = [{ taskId: id, serverUuid: serverId(1) }];
      const [{ outcome }, [closed]] = await Promise.all([begin(asked), store.closeTasks(closing)]);
      const ways = [
        ["begun", "begun"],
        ["closed", "closed"],
      ];
      expect(ways).toContainEqual([outcome.kind, closed]);
      if (closed === "closed") continue;
      const step = transition(await take(id), 1, "succeed", { stage: "attaching", selection: 0 });
      await store.commitStep([step]);
    }
  });

  test("a delete overtakes a move: its task is fenced, and both places are released", async () => {
    const { store } = cell();
    await boot();
    await begin();
    const taken = await take(moveId);
    expect(await store.requestDelete([deleteTask(1, 11)])).toMatchObject([{ kind: "queued" }]);
    expect(await store.commitStep([transition(taken, 1, "starting")])).toEqual([{ kind: "fenced" }]);
    expect((await begin({ taskId: numbered(0xe, 6) })).outcome.kind).toBe("busy");
    const tenure = tenureOf(await cell().take(11));
    expect(await store.commitDeleted([{ ...tenure, migrations: [moveId] }])).toEqual([{ kind: "committed" }]);
    expect(await cell().used()).toEqual([0, 0, 0]);
    expect(await store.migrations({ inFlightOnly: true, limit: 9 })).toEqual([]);
  });

  test("answers an empty batch with nothing", async () => {
    const { store } = cell();
    expect(await store.begin([])).toEqual([]);
    expect(await store.commitStep([])).toEqual([]);
    expect(await store.positions([])).toEqual([]);
    expect(await store.holdings([])).toEqual([]);
    expect(await store.signal([])).toEqual([]);
  });
}
