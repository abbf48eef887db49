import { describe, expect, test } from "vitest";
import type { PeriodQuery } from "../../core/stores/cell/cell-store.ts";
import { factsOf } from "../../core/tasks/operation-facts.ts";
import { writeOf } from "../../core/tasks/operation-writes.ts";
import type { ServerStatus } from "../../core/tasks/server.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { conductorId, deleteTask, dispatchOf, hostName, numbered, serverId, swapTo, taskId } from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";

const moveId = numbered(0xe, 1);
const NAMES = [0, 1].map((index) => `conductor ${conductorId(index)}`);

/** The records of a server's tasks. */
export function recordContract(cell: () => CellUnderTest): void {
  const dispatch = (): Promise<unknown> =>
    cell().store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0, 1, 2] })]);
  const records = () => cell().store.tasksOf(serverId(1));

  describe("servers of a period", () => {
    const YEAR_MS = 365 * 86_400_000;
    const found = async (query: Partial<PeriodQuery> = {}) => {
      const all = { beginMs: 0, endMs: Date.now() + YEAR_MS, projectId: null, after: null, rows: 10 };
      const { servers, resumeAt } = await cell().store.serversOfPeriod({ ...all, ...query });
      return [servers.map(({ uuid }) => uuid), resumeAt];
    };
    const build = async (number: number, isActive: boolean) => {
      await cell().store.dispatch([dispatchOf({ server: number, task: number, hosts: [0] })]);
      const taken = await cell().take(number, 0);
      if (isActive) await cell().store.commitActive([{ ...tenureOf(taken), selection: 0 }]);
    };

    test("are those that were launched before its end and not deleted before its begin", async () => {
      const { store } = cell();
      for (const number of [1, 2, 3]) await build(number, number !== 3);
      await store.requestDelete([deleteTask(2, 9)]);
      await store.commitDeleted((await store.takeTasks(conductorId(0), [taskId(9)])).map(tenureOf));
      expect(await found()).toEqual([[serverId(1), serverId(2)], null]);
      const [first, second] = await store.servers([1, 2].map(serverId));
      expect(await found({ beginMs: (second?.deletedAtMs ?? 0) + 1 })).toEqual([[serverId(1)], null]);
      expect(await found({ endMs: Math.floor(first?.launchedAtMs ?? 0) - 1 })).toEqual([[], null]);
    });

    test("are found in stretches of a given number of servers, of one project or of all", async () => {
      for (const number of [1, 2, 3]) await build(number, number !== 1);
      expect(await found({ rows: 2 })).toEqual([[serverId(2)], serverId(2)]);
      expect(await found({ rows: 2, after: serverId(2) })).toEqual([[serverId(3)], null]);
      const [{ spec } = { spec: { projectId: "" } }] = await cell().store.servers([serverId(2)]);
      expect(await found({ projectId: spec.projectId })).toEqual([[serverId(2), serverId(3)], null]);
      expect(await found({ projectId: "another" })).toEqual([[], null]);
    });
  });

  describe("servers by their status", () => {
    test("are found when it is neither BUILD nor ACTIVE, and while a task of theirs is open", async () => {
      const { store } = cell();
      const found = async (statuses: readonly ServerStatus[], busy = false) =>
        (await store.serversByStatus({ statuses, busy }, 10))?.map(({ uuid }) => uuid).toSorted();
      await dispatch();
      await store.dispatch([dispatchOf({ server: 2, task: 2, hosts: [0] })]);
      expect([await found(["BUILD", "ERROR"]), await found([], true)]).toEqual([[], [serverId(1), serverId(2)]]);
      expect(await store.serversByStatus({ statuses: [], busy: true }, 2)).toHaveLength(2);
      expect(await store.serversByStatus({ statuses: [], busy: true }, 1)).toBeNull();
      const first = await cell().take(1, 0);
      await store.commitError([{ ...tenureOf(first), selection: 0, attemptReason: "x", reason: "x" }]);
      const second = await cell().take(2, 0);
      await store.commitActive([{ ...tenureOf(second), selection: 0 }]);
      expect([await found(["ERROR"]), await found([], true), await found(["ACTIVE", "SHUTOFF"])]).toEqual([
        [serverId(1)],
        [],
        [],
      ]);
      expect(await found(["SHUTOFF", "ERROR"], true)).toEqual([serverId(1)]);
      await store.requestDelete([deleteTask(1, 3)]);
      const third = await store.takeTasks(conductorId(0), [taskId(3)]);
      await store.commitDeleted(third.map(tenureOf));
      expect(await found(["ERROR", "DELETED"])).toEqual([]);
    });
  });

  describe("the record of a task", () => {
    test("exists from the dispatch on, and names no conductor until one has taken the task", async () => {
      await dispatch();
      expect(await records()).toEqual([
        {
          ...{ task: expect.objectContaining({ id: taskId(1) }), kind: "build", createdAtMs: expect.any(Number) },
          ...{ endedAtMs: null, outcome: null, stage: null, reason: "", takings: [], stages: [] },
        },
      ]);
      for (const other of [serverId(2), "nonsense"]) expect(await cell().store.tasksOf(other)).toEqual([]);
    });

    test("names each conductor that took the task, once, even when its lease ended long ago", async () => {
      const { store } = cell();
      await dispatch();
      await cell().take(1, 0);
      await cell().take(1, 0);
      await store.giveUpLease(conductorId(0));
      const [swept] = await store.sweepTasks(conductorId(1), 0, 10);
      if (swept === undefined) throw new Error("the task was not swept");
      const change = swapTo(1, 1);
      await store.hop([{ ...tenureOf(swept), from: 0, reason: "x", to: 1, toHost: hostName(1), change }]);
      await store.commitActive([{ ...tenureOf(swept), selection: 1 }]);
      await store.giveUpLease(conductorId(1));
      const [record] = await records();
      expect(record?.takings.map(({ conductorId: id, name }) => [id, name])).toEqual([
        [conductorId(0), NAMES[0]],
        [conductorId(1), NAMES[1]],
      ]);
      expect(record).toMatchObject({ outcome: "success", endedAtMs: expect.any(Number) });
      const [first, second] = record?.takings ?? [];
      expect(second?.atMs).toBeGreaterThanOrEqual(first?.atMs ?? Number.POSITIVE_INFINITY);
    });

    test("keeps the youngest takings of a task that goes back and forth", async () => {
      const { store } = cell();
      await dispatch();
      for (let turn = 0; turn < 25; turn += 1) {
        const taken = await cell().take(1, turn % 2);
        expect(await store.releaseTasks(conductorId(turn % 2), [tenureOf(taken)])).toEqual([true]);
      }
      const [record] = await records();
      expect(record?.takings.map(({ name }) => name)).toEqual(
        Array.from({ length: 20 }, (_, index) => NAMES[(index + 5) % 2]),
      );
    });

    test("of an operation has the stages that it reached, each once", async () => {
      const { store } = cell();
      await dispatch();
      await store.commitActive([{ ...tenureOf(await cell().take(1)), selection: 0 }]);
      await beginOperationOn(store, { server: 1, kind: "resize", hosts: [1, 2], vcpus: 2, taskId: moveId });
      const [taken] = await store.takeTasks(conductorId(0), [moveId]);
      if (taken === undefined) throw new Error("the operation was not taken");
      const step = {
        ...{ ...tenureOf(taken), step: 1 },
        ...writeOf(factsOf(taken.task), {
          from: { stage: "preparing", selection: 0 },
          ...{ to: "handing-over", selection: 0, reason: "", noted: [], unseenMs: 0 },
        }),
      };
      await store.commitStep([step]);
      await store.commitStep([step]);
      const [, move] = await records();
      expect(move?.task.id).toBe(moveId);
      expect(move?.stages.map(({ stage, selection }) => [stage, selection])).toEqual([
        ["preparing", 0],
        ["handing-over", 0],
      ]);
    });

    test("exists after the end of operations and deletes that left no attempt and no migration", async () => {
      const { store } = cell();
      await dispatch();
      await store.commitActive([{ ...tenureOf(await cell().take(1)), selection: 0 }]);
      const stopId = numbered(0xe, 2);
      const askedBy = { requestId: "req-7", userId: "eve", projectId: "p" };
      await beginOperationOn(store, { server: 1, kind: "stop", taskId: stopId });
      const [taken] = await store.takeTasks(conductorId(0), [stopId]);
      if (taken === undefined) throw new Error("the operation was not taken");
      const transition = { from: { stage: "powering", selection: 0 }, to: "succeed", selection: 0 } as const;
      const write = writeOf(factsOf(taken.task), { ...transition, reason: "", noted: [], unseenMs: 0 });
      await store.commitStep([{ ...tenureOf(taken), step: 1, ...write }]);
      await store.requestDelete([{ ...deleteTask(1, 9), askedBy }]);
      await store.commitDeleted([tenureOf(await cell().take(9))]);
      const found = await records();
      expect(found.map(({ kind, outcome }) => [kind, outcome])).toEqual([
        ["build", "success"],
        ["operate", "success"],
        ["delete", "deleted"],
      ]);
      expect(found[2]?.task.askedBy).toEqual(askedBy);
    });

    test("of a delete that overtakes a build exists, and the build is cancelled", async () => {
      const { store } = cell();
      await dispatch();
      await cell().take(1);
      await store.requestDelete([deleteTask(1, 9)]);
      await store.commitDeleted([tenureOf(await cell().take(9))]);
      expect((await records()).map(({ kind, outcome }) => [kind, outcome])).toEqual([
        ["build", "cancelled"],
        ["delete", "deleted"],
      ]);
    });
  });
}
