import { describe, expect, test } from "vitest";
import type { PeriodQuery } from "../../core/stores/cell/cell-store.ts";
import type { AttributeQuery } from "../../core/stores/cell/listed-servers.ts";
import { factsOf } from "../../core/tasks/operation-facts.ts";
import { writeOf } from "../../core/tasks/operation-writes.ts";
import type { ServerStatus } from "../../core/tasks/server.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import {
  conductorId,
  deleteTask,
  dispatchOf,
  hostName,
  numbered,
  providerOf,
  serverId,
  swapTo,
  taskId,
} from "./cell-fixtures.ts";
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

  describe("servers by an attribute", () => {
    const found = async (query: Partial<AttributeQuery>) => {
      const all = {
        attribute: "flavor",
        value: "1",
        projectId: null,
        oldestFirst: false,
        after: null,
        rows: 10,
      } as const;
      const { servers, resumeAt } = await cell().store.serversByAttribute({ ...all, ...query });
      return [servers.map(({ uuid }) => uuid), resumeAt?.uuid ?? null];
    };
    const dispatchWith = (number: number, spec: Partial<ServerSpec>) =>
      cell().store.dispatch([dispatchOf({ server: number, task: number, hosts: [0], spec })]);
    const createdAtMs = 1_700_000_000_500;
    const imageRef = "a-very-long-image-".repeat(50);

    test("are found in the order of the list, in stretches of a given number of servers", async () => {
      await dispatchWith(1, { createdAtMs, imageRef, userId: "ann" });
      await dispatchWith(2, { createdAtMs, imageRef, userId: "ann", name: "x".repeat(255), projectId: "another" });
      await dispatchWith(3, { createdAtMs: createdAtMs + 1, imageRef, userId: "bob" });
      await dispatchWith(4, { createdAtMs, imageRef: "", userId: "carl" });
      const query = { attribute: "image", value: imageRef } as const;
      expect(await found(query)).toEqual([[3, 1, 2].map(serverId), null]);
      expect(await found({ ...query, oldestFirst: true })).toEqual([[2, 1, 3].map(serverId), null]);
      expect(await found({ ...query, rows: 2 })).toEqual([[3, 1].map(serverId), serverId(1)]);
      const after = { uuid: serverId(1), createdAtMs };
      expect(await found({ ...query, after })).toEqual([[serverId(2)], null]);
      expect(await found({ ...query, after, oldestFirst: true })).toEqual([[serverId(3)], null]);
      expect(await found({ ...query, projectId: "another", rows: 2 })).toEqual([[], serverId(1)]);
      expect(await found({ ...query, projectId: "another" })).toEqual([[serverId(2)], null]);
      expect(await found({ attribute: "user", value: "ann" })).toEqual([[1, 2].map(serverId), null]);
      expect(await found({ attribute: "user", value: "an" })).toEqual([[], null]);
    });

    test("are found by one value, and of those only the ones that have values of other attributes", async () => {
      const flavor = (id: string) => ({ id, name: id, vcpus: 1, memoryMib: 1, diskGib: 0 }) as ServerSpec["flavor"];
      for (const [number, userId, imageRef, id, keyName] of [
        [1, "ann", "image-1", "a", "web"],
        [2, "ann", "image-2", "a", ""],
        [3, "bob", "image-1", "a", "db"],
        [4, "ann", "image-1", "b", "db"],
      ] as const)
        await dispatchWith(number, {
          ...{ createdAtMs: createdAtMs + number, userId, imageRef, keyName },
          flavor: { ephemeralGib: 0, swapMib: 0, extraSpecs: {}, ...flavor(id) } as ServerSpec["flavor"],
        });
      const [user, image] = [
        { attribute: "user", value: "ann" },
        { attribute: "image", value: "image-1" },
      ] as const;
      const [key, ofFlavor] = [
        { attribute: "key", value: "none", otherValues: ["web", "db"] },
        { attribute: "flavor", value: "a" },
      ] as const;
      expect(await found({ ...user, others: [image] })).toEqual([[4, 1].map(serverId), null]);
      expect(await found({ ...image, others: [user] })).toEqual([[4, 1].map(serverId), null]);
      expect(await found({ ...image, others: [user, ofFlavor, key] })).toEqual([[serverId(1)], null]);
      expect(await found({ ...key, others: [ofFlavor] })).toEqual([[3, 1].map(serverId), null]);
      expect(await found({ ...user, others: [key], rows: 2 })).toEqual([[serverId(4)], serverId(2)]);
      expect(await found({ ...user, others: [{ attribute: "image", value: "none" }], rows: 2 })).toEqual([
        [],
        serverId(2),
      ]);
    });

    test("are found by the last digits of the id of their request", async () => {
      const requestId = (digits: string) => `req-00000000-0000-4000-8000-00${digits}`;
      await dispatchWith(1, { createdAtMs, requestId: requestId("00000000ab") });
      await dispatchWith(2, { createdAtMs: createdAtMs + 1, requestId: requestId("00000000ab") });
      await dispatchWith(3, { createdAtMs, requestId: requestId("00000001ab") });
      const query = { attribute: "reservation", value: "00000000ab" } as const;
      expect(await found(query)).toEqual([[2, 1].map(serverId), null]);
      expect(await found({ ...query, rows: 1 })).toEqual([[serverId(2)], serverId(2)]);
      expect(await found({ ...query, after: { uuid: serverId(2), createdAtMs: createdAtMs + 1 } })).toEqual([
        [serverId(1)],
        null,
      ]);
      expect(await found({ ...query, value: "ab" })).toEqual([[], null]);
    });

    test("are found by each of several values, in one order", async () => {
      for (const [number, keyName] of [
        [1, "web"],
        [2, "db"],
        [3, "web-2"],
        [4, ""],
      ] as const)
        await dispatchWith(number, { createdAtMs: createdAtMs + number, keyName });
      const query = { attribute: "key", value: "web", otherValues: ["web-2"] } as const;
      expect(await found({ attribute: "key", value: "web" })).toEqual([[serverId(1)], null]);
      expect(await found(query)).toEqual([[3, 1].map(serverId), null]);
      expect(await found({ ...query, oldestFirst: true })).toEqual([[1, 3].map(serverId), null]);
      expect(await found({ ...query, rows: 1 })).toEqual([[serverId(3)], serverId(3)]);
      const after = { uuid: serverId(3), createdAtMs: createdAtMs + 3 };
      expect(await found({ ...query, after })).toEqual([[serverId(1)], null]);
    });

    test("have the different values that contain a text, unless there are more than may be looked at", async () => {
      const { store } = cell();
      const values = (contains: string, looksMax = 3) =>
        store.attributeValues({ attribute: "key", contains, looksMax });
      expect(await values("web")).toEqual([]);
      for (const [number, keyName] of [
        [1, "web"],
        [2, "web"],
        [3, "db"],
        [4, "my-web"],
        [5, ""],
      ] as const)
        await dispatchWith(number, { keyName });
      expect([await values("web"), await values("b"), await values("x")]).toEqual([
        ["my-web", "web"],
        ["db", "my-web", "web"],
        [],
      ]);
      expect([await values("web", 2), await values("x", 2)]).toEqual([null, null]);
      await store.requestDelete([deleteTask(3, 13)]);
      await store.commitDeleted([tenureOf(await cell().take(13, 0))]);
      expect(await values("web", 2)).toEqual(["my-web", "web"]);
    });

    test("are found on several hosts, newest first", async () => {
      const { store } = cell();
      for (const [number, host] of [
        [1, 0],
        [2, 1],
        [3, 0],
        [4, 2],
      ] as const)
        await store.dispatch([
          dispatchOf({ server: number, task: number, hosts: [host], spec: { createdAtMs: createdAtMs + number } }),
        ]);
      const on = async (hosts: readonly number[], limit = 9) =>
        (await store.serversOnHosts(hosts.map(hostName), limit)).map(({ uuid }) => uuid);
      expect([await on([0, 1]), await on([0, 1], 2), await on([]), await on([7])]).toEqual([
        [3, 2, 1].map(serverId),
        [3, 2].map(serverId),
        [],
        [],
      ]);
    });

    test("are found on the hosts whose names contain a text, unless these are more than may be looked at", async () => {
      const { store } = cell();
      await store.hostsUp(
        "agent-1",
        [0, 1, 2].map((host) => ({ name: hostName(host), rootProvider: providerOf(host) })),
      );
      for (const [number, host] of [
        [1, 0],
        [2, 1],
        [3, 0],
      ] as const)
        await store.dispatch([
          dispatchOf({ server: number, task: number, hosts: [host], spec: { createdAtMs: createdAtMs + number } }),
        ]);
      const on = async (contains: string, hostsMax = 9, limit = 9) =>
        (await store.serversOnHostsNamed(contains, { hostsMax, limit }))?.map(({ uuid }) => uuid) ?? null;
      expect([await on(hostName(0)), await on(hostName(0).slice(0, -1), 9, 2), await on("no-such-host")]).toEqual([
        [3, 1].map(serverId),
        [3, 2].map(serverId),
        [],
      ]);
      expect(await on("", 1)).toBeNull();
    });

    test("are found by their present flavor until they are deleted", async () => {
      const { store } = cell();
      await dispatchWith(1, {});
      const [server] = await store.servers([serverId(1)]);
      const value = server?.spec.flavor?.id ?? "";
      expect(await found({ value })).toEqual([[serverId(1)], null]);
      await store.requestDelete([deleteTask(1, 2)]);
      expect(await found({ value })).toEqual([[serverId(1)], null]);
      await store.commitDeleted([tenureOf(await cell().take(2, 0))]);
      expect(await found({ value })).toEqual([[], null]);
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
