import { describe, expect, test } from "vitest";
import type { Hop } from "../../core/stores/cell/cell-store.ts";
import { attemptIdOf } from "../../core/tasks/server.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import {
  conductorId,
  deleteTask,
  dispatchOf,
  hostName,
  providerOf,
  serverId,
  swapTo,
  taskId,
} from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";

const NEVER_MS = 3_600_000;
const committed = { kind: "committed" };
const fenced = { kind: "fenced" };

/** The guarantees for conductors. */
export function taskContract(cell: () => CellUnderTest): void {
  const dispatch = async (server: number, hosts: readonly number[] = [0, 1, 2], vcpus = 1): Promise<void> => {
    await cell().store.dispatch([dispatchOf({ server, task: server, hosts, vcpus })]);
  };

  describe("a task", () => {
    test("belongs to the conductor that took it, as long as its lease holds", async () => {
      const { store } = cell();
      await dispatch(1);
      expect((await cell().take(1, 0)).epoch).toBe(1);
      expect(await store.takeTasks(conductorId(1), [taskId(1)])).toEqual([]);
      expect((await cell().take(1, 0)).epoch).toBe(2);
      expect(await store.ownedTasks(conductorId(0))).toEqual([taskId(1)]);
      expect(await store.ownedTasks(conductorId(1))).toEqual([]);
    });

    test("goes to another conductor when the owner's lease has run out or was given up, and fences the owner", async () => {
      const { store } = cell();
      await dispatch(1);
      const first = tenureOf(await cell().take(1, 0));
      await store.renewLease({ id: conductorId(0), name: "slow", leaseMs: 0 });
      const second = tenureOf(await cell().take(1, 1));
      expect(second.epoch).toBe(first.epoch + 1);
      expect(await store.commitActive([{ ...first, selection: 0 }])).toEqual([fenced]);
      await store.giveUpLease(conductorId(1));
      await store.renewLease({ id: conductorId(0), name: "awake", leaseMs: NEVER_MS });
      expect((await cell().take(1, 0)).epoch).toBe(3);
      expect(await store.commitActive([{ ...second, selection: 0 }])).toEqual([fenced]);
    });

    test("cannot be taken when it has ended or does not exist; the others of the batch can, in the requested order", async () => {
      const { store } = cell();
      for (const server of [1, 2, 3]) await dispatch(server);
      await store.commitActive([{ ...tenureOf(await cell().take(1)), selection: 0 }]);
      const ids = [taskId(3), taskId(1), "nonsense", taskId(9), taskId(2), taskId(3)];
      const taken = await store.takeTasks(conductorId(1), ids);
      expect(taken.map((one) => one.task.id)).toEqual([taskId(3), taskId(2)]);
    });

    test("is swept when it was not taken in time, oldest first, up to the limit", async () => {
      const { store } = cell();
      for (const server of [3, 1, 2]) await dispatch(server);
      expect(await store.sweepTasks(conductorId(0), NEVER_MS, 10)).toEqual([]);
      const swept = await store.sweepTasks(conductorId(0), 0, 2);
      expect(swept.map((one) => [one.task.id, one.epoch])).toEqual([
        [taskId(3), 1],
        [taskId(1), 1],
      ]);
      const rest = await store.sweepTasks(conductorId(1), 0, 10);
      expect(rest.map((one) => one.task.id)).toEqual([taskId(2)]);
    });

    test("of a dead conductor is swept by another one, not by the same one", async () => {
      const { store } = cell();
      await dispatch(1);
      await cell().take(1, 0);
      await store.renewLease({ id: conductorId(0), name: "gone", leaseMs: 0 });
      expect(await store.sweepTasks(conductorId(0), NEVER_MS, 10)).toEqual([]);
      const [swept] = await store.sweepTasks(conductorId(1), NEVER_MS, 10);
      expect(swept).toMatchObject({ task: { id: taskId(1) }, epoch: 2, host: "host-0" });
      expect(await store.sweepTasks(conductorId(1), 0, 10)).toEqual([]);
    });
  });

  describe("a task that no conductor can read", () => {
    test("ends only under its epoch; its server is in ERROR, and keeps its allocation until it is deleted", async () => {
      const { store } = cell();
      for (const server of [1, 2]) await dispatch(server, [0, 1], 2);
      const [one, two] = [tenureOf(await cell().take(1)), tenureOf(await cell().take(2))];
      const endOf = ({ taskId, epoch }: Tenure) => ({ taskId, epoch, reason: "nobody can read it" });
      const unknown = { ...endOf(one), taskId: taskId(9) };
      const stale = { ...endOf(two), epoch: two.epoch - 1 };
      const ended = { kind: "ended", serverUuid: serverId(1) };
      expect(await store.endUnreadable([unknown, endOf(one), stale])).toEqual([fenced, ended, fenced]);
      expect(await store.endUnreadable([endOf(one)])).toEqual([ended]);
      expect(await store.servers([serverId(1), serverId(2)])).toMatchObject([
        { status: "ERROR", taskState: null, host: hostName(0), fault: { message: "nobody can read it" } },
        { status: "BUILD", host: hostName(0), fault: null },
      ]);
      expect(await store.attempts(serverId(1))).toMatchObject([{ result: "failed", reason: "nobody can read it" }]);
      expect(await store.takeTasks(conductorId(0), [taskId(1)])).toEqual([]);
      expect(await cell().used()).toEqual([4, 0, 0]);
      await store.requestDelete([deleteTask(1, 11)]);
      await store.commitDeleted([tenureOf(await cell().take(11))]);
      expect(await store.servers([serverId(1)])).toMatchObject([{ status: "DELETED" }]);
      expect(await cell().used()).toEqual([2, 0, 0]);
      expect(await store.endUnreadable([endOf(one)])).toEqual([ended]);
      expect(await store.servers([serverId(1)])).toMatchObject([{ status: "DELETED" }]);
    });

    test("keeps an open move, with both of its guests, until the server is deleted", async () => {
      const { store } = cell();
      await dispatch(1, [0]);
      await store.commitActive([{ ...tenureOf(await cell().take(1)), selection: 0 }]);
      const uuid = taskId(5);
      await beginOperationOn(store, { server: 1, kind: "resize", hosts: [1], vcpus: 2, taskId: uuid });
      const [taken] = await store.takeTasks(conductorId(0), [uuid]);
      const end = { taskId: uuid, epoch: taken?.epoch ?? 0, reason: "nobody can read it" };
      expect(await store.endUnreadable([end])).toEqual([{ kind: "ended", serverUuid: serverId(1) }]);
      expect(await store.homes([serverId(1)])).toMatchObject([{ status: "ERROR", busy: false, move: { uuid } }]);
      expect(await cell().used()).toEqual([1, 2, 0]);
      await store.requestDelete([deleteTask(1, 11)]);
      await store.commitDeleted([{ ...tenureOf(await cell().take(11)), migrations: [uuid] }]);
      expect(await cell().used()).toEqual([0, 0, 0]);
    });
  });

  describe("a released task", () => {
    test("is swept by other conductors, by its old owner only when it no longer excludes the task, and fences it", async () => {
      const { store } = cell();
      await dispatch(1);
      const tenure = tenureOf(await cell().take(1, 0));
      expect(await store.releaseTasks(conductorId(0), [tenure, tenure])).toEqual([true, false]);
      expect(await store.ownedTasks(conductorId(0))).toEqual([]);
      expect(await store.sweepTasks(conductorId(0), 0, 10, [taskId(1), "nonsense"])).toEqual([]);
      expect(await store.sweepTasks(conductorId(1), 0, 10)).toMatchObject([{ task: { id: taskId(1) }, epoch: 2 }]);
      expect(await store.commitActive([{ ...tenure, selection: 0 }])).toEqual([fenced]);
    });

    test("must be owned by that conductor under that epoch, and must not have ended", async () => {
      const { store } = cell();
      for (const server of [1, 2]) await dispatch(server);
      const old = tenureOf(await cell().take(1, 0));
      const tenure = tenureOf(await cell().take(1, 0));
      const ended = tenureOf(await cell().take(2, 0));
      await store.commitActive([{ ...ended, selection: 0 }]);
      const held = await Promise.all(
        [old, tenure, ended, { ...tenure, taskId: "nonsense" }].map((one) => store.holdsTask(one)),
      );
      expect(held).toEqual([false, true, false, false]);
      expect(await store.releaseTasks(conductorId(0), [old, ended])).toEqual([false, false]);
      expect(await store.releaseTasks(conductorId(1), [tenure])).toEqual([false]);
      expect(await store.ownedTasks(conductorId(0))).toEqual([taskId(1)]);
    });

    test("stays with its owner when no other conductor is alive", async () => {
      const { store } = cell();
      await dispatch(1);
      const tenure = tenureOf(await cell().take(1, 0));
      await store.renewLease({ id: conductorId(1), name: "dead", leaseMs: 0 });
      expect(await store.releaseTasks(conductorId(0), [tenure])).toEqual([false]);
      expect(await store.ownedTasks(conductorId(0))).toEqual([taskId(1)]);
    });
  });

  describe("a build that succeeds", () => {
    test("makes the server ACTIVE at its home, and ends", async () => {
      const { store } = cell();
      await dispatch(1);
      const tenure = tenureOf(await cell().take(1));
      expect(await store.commitActive([{ ...tenure, selection: 0 }])).toEqual([committed]);
      expect(await store.servers([serverId(1)])).toMatchObject([
        {
          status: "ACTIVE",
          taskState: null,
          host: "host-0",
          attemptId: attemptIdOf(taskId(1), 0),
          fault: null,
          launchedAtMs: expect.any(Number),
        },
      ]);
      expect(await store.attempts(serverId(1))).toMatchObject([
        { result: "success", reason: null, endedAtMs: expect.any(Number) },
      ]);
      expect(await store.takeTasks(conductorId(0), [taskId(1)])).toEqual([]);
      expect(await store.ownedTasks(conductorId(0))).toEqual([]);
      expect(await cell().used()).toEqual([1, 0, 0]);
    });

    test("is committed again when the answer was lost, and never by an older epoch or for another selection", async () => {
      const { store } = cell();
      await dispatch(1);
      const old = tenureOf(await cell().take(1));
      const tenure = tenureOf(await cell().take(1));
      expect(await store.commitActive([{ ...old, selection: 0 }])).toEqual([fenced]);
      expect(await store.commitActive([{ ...tenure, selection: 1 }])).toEqual([fenced]);
      expect(await store.commitActive([{ ...tenure, serverUuid: serverId(2), selection: 0 }])).toEqual([fenced]);
      expect(
        await store.commitActive([
          { ...tenure, selection: 0 },
          { ...tenure, selection: 0 },
        ]),
      ).toEqual([committed, committed]);
      expect(await store.commitActive([{ ...old, selection: 0 }])).toEqual([fenced]);
      const error = { ...tenure, selection: 0, attemptReason: "late", reason: "late" };
      expect(await store.commitError([error])).toEqual([fenced]);
      expect(await store.hop([hopOf(tenure, 1, 0, 1)])).toEqual([fenced]);
      expect(await store.servers([serverId(1)])).toMatchObject([{ status: "ACTIVE", fault: null }]);
    });
  });

  describe("a hop", () => {
    test("releases the failed host's allocation and claims the alternate's", async () => {
      const { store } = cell();
      await dispatch(1, [0, 1], 4);
      const tenure = tenureOf(await cell().take(1));
      expect(await store.hop([hopOf(tenure, 1, 0, 1, 4)])).toEqual([committed]);
      expect(await cell().used()).toEqual([0, 4, 0]);
      expect(await store.servers([serverId(1)])).toMatchObject([
        { status: "BUILD", host: "host-1", attemptId: attemptIdOf(taskId(1), 1) },
      ]);
      expect(await store.attempts(serverId(1))).toMatchObject([
        { selection: 0, host: "host-0", result: "failed", reason: 'failed on "host-0"', endedAtMs: expect.any(Number) },
        { selection: 1, host: "host-1", result: null, reason: null, endedAtMs: null },
      ]);
      expect(await store.commitActive([{ ...tenure, selection: 0 }])).toEqual([fenced]);
      expect(await store.commitActive([{ ...tenure, selection: 1 }])).toEqual([committed]);
    });

    test("is seen by the conductor that takes over", async () => {
      const { store } = cell();
      await dispatch(1);
      await store.hop([hopOf(tenureOf(await cell().take(1, 0)), 1, 0, 1)]);
      await store.giveUpLease(conductorId(0));
      expect(await cell().take(1, 1)).toMatchObject({
        selection: 1,
        host: "host-1",
        attemptId: attemptIdOf(taskId(1), 1),
      });
    });

    test("to an alternate that no longer fits is skipped with the reason, and changes no allocation", async () => {
      const { store } = cell();
      await dispatch(2, [1], 10);
      await dispatch(1, [0, 1, 2]);
      const tenure = tenureOf(await cell().take(1));
      const why = `1 VCPU requested of provider ${providerOf(1)}, 10 of 10 in use`;
      expect(await store.hop([hopOf(tenure, 1, 0, 1)])).toEqual([{ kind: "skipped", why }]);
      expect(await cell().used()).toEqual([1, 10, 0]);
      expect(await store.servers([serverId(1)])).toMatchObject([{ host: "host-0" }]);
      expect(await store.hop([hopOf(tenure, 1, 0, 2)])).toEqual([committed]);
      expect(await cell().used()).toEqual([0, 10, 1]);
      expect(await store.attempts(serverId(1))).toMatchObject([
        { selection: 0, result: "failed", reason: 'failed on "host-0"' },
        { selection: 1, host: "host-1", result: "skipped", reason: why, endedAtMs: expect.any(Number) },
        { selection: 2, host: "host-2", result: null },
      ]);
    });

    test("does no harm when it is repeated, and a skipped alternate may fit later", async () => {
      const { store } = cell();
      await dispatch(2, [1], 10);
      await dispatch(1);
      const tenure = tenureOf(await cell().take(1));
      await store.hop([hopOf(tenure, 1, 0, 1)]);
      const other = tenureOf(await cell().take(2));
      await store.commitError([{ ...other, selection: 0, attemptReason: "broken", reason: "broken" }]);
      const again = { ...hopOf(tenure, 1, 0, 1), result: "skipped" as const };
      expect(await store.hop([again, again])).toEqual([committed, committed]);
      expect(await cell().used()).toEqual([0, 1, 0]);
      expect(await store.attempts(serverId(1))).toMatchObject([
        { selection: 0, result: "failed" },
        { selection: 1, result: null, reason: null, endedAtMs: null },
      ]);
    });

    test("is written once when its answer was lost and it is repeated, also by two at once", async () => {
      const { store } = cell();
      await dispatch(1);
      const tenure = tenureOf(await cell().take(1));
      const hop = hopOf(tenure, 1, 0, 1);
      expect(await store.hop([hop])).toEqual([committed]);
      expect(await Promise.all([store.hop([hop]), store.hop([hop])])).toEqual([[committed], [committed]]);
      expect(await cell().used()).toEqual([0, 1, 0]);
      expect(await store.attempts(serverId(1))).toMatchObject([{ selection: 0, result: "failed" }, { selection: 1 }]);
    });

    test("is committed although another one of its batch finds no room", async () => {
      const { store } = cell();
      await dispatch(1, [0, 1, 2], 10);
      await dispatch(2, [1, 2, 0], 10);
      await dispatch(3, [2], 10);
      const [one, two] = [tenureOf(await cell().take(1)), tenureOf(await cell().take(2))];
      const three = tenureOf(await cell().take(3));
      await store.commitError([{ ...three, selection: 0, attemptReason: "broken", reason: "broken" }]);
      const hops = [hopOf(one, 1, 0, 2, 10), hopOf(two, 2, 0, 1, 10, 2)];
      expect(await store.hop(hops)).toMatchObject([committed, { kind: "skipped" }]);
      expect(await cell().used()).toEqual([0, 10, 10]);
      expect(await store.attempts(serverId(2))).toMatchObject([
        { result: "failed" },
        { selection: 1, result: "skipped" },
      ]);
    });

    test("may use what another hop of the batch released, and changes nothing when it is fenced", async () => {
      const { store } = cell();
      await dispatch(1, [0, 1], 10);
      await dispatch(2, [2, 0], 10);
      await dispatch(3, [1], 10);
      const stale = tenureOf(await cell().take(3));
      const [one, two, three] = [tenureOf(await cell().take(1)), tenureOf(await cell().take(2)), await cell().take(3)];
      await store.commitError([{ ...tenureOf(three), selection: 0, attemptReason: "broken", reason: "broken" }]);
      const uncalled = { ...hopOf(two, 2, 0, 1, 10, 0), result: "skipped" as const };
      const hops = [hopOf(stale, 3, 0, 2, 10), hopOf(one, 1, 0, 1, 10), uncalled];
      expect(await store.hop(hops)).toEqual([fenced, committed, committed]);
      expect(await store.attempts(serverId(2))).toMatchObject([{ result: "skipped", reason: uncalled.reason }, {}]);
      expect(await cell().used()).toEqual([10, 10, 0]);
      expect(await store.attempts(serverId(3))).toHaveLength(1);
    });
  });

  describe("a build that fails for good", () => {
    test("ends in ERROR with the reason, and holds nothing", async () => {
      const { store, ledger } = cell();
      await dispatch(1);
      const tenure = tenureOf(await cell().take(1));
      const error = { ...tenure, selection: 0, attemptReason: "bad image", reason: 'the image is "bad"' };
      expect(await store.commitError([error])).toEqual([committed]);
      expect(await store.servers([serverId(1)])).toMatchObject([
        {
          status: "ERROR",
          taskState: null,
          host: null,
          attemptId: null,
          fault: { message: 'the image is "bad"', atMs: expect.any(Number) },
        },
      ]);
      expect(await store.attempts(serverId(1))).toMatchObject([{ result: "failed", reason: "bad image" }]);
      expect((await ledger.dump()).consumers).toEqual([]);
      expect(await store.takeTasks(conductorId(0), [taskId(1)])).toEqual([]);
      expect(await store.commitError([error])).toEqual([committed]);
      expect(await store.commitActive([{ ...tenure, selection: 0 }])).toEqual([fenced]);
    });

    test("keeps the first reason of an attempt that had already ended", async () => {
      const { store } = cell();
      await dispatch(2, [1], 10);
      await dispatch(1, [0, 1]);
      const tenure = tenureOf(await cell().take(1));
      await store.hop([hopOf(tenure, 1, 0, 1)]);
      await store.commitError([{ ...tenure, selection: 0, attemptReason: "second", reason: "used up" }]);
      expect(await store.attempts(serverId(1))).toMatchObject([
        { selection: 0, result: "failed", reason: 'failed on "host-0"' },
        { selection: 1, result: "skipped" },
      ]);
      expect(await cell().used()).toEqual([0, 10, 0]);
    });

    test("ends when a fenced one is in the same batch", async () => {
      const { store } = cell();
      await dispatch(1);
      await dispatch(2);
      const [stale, one, two] = [await cell().take(1), await cell().take(1), await cell().take(2)].map(tenureOf);
      const errorOf = (tenure: Tenure) => ({ ...tenure, selection: 0, attemptReason: "a", reason: "r" });
      expect(await store.commitError([errorOf(stale!), errorOf(two!)])).toEqual([fenced, committed]);
      expect(await cell().used()).toEqual([1, 0, 0]);
      expect(await store.commitActive([{ ...one!, selection: 0 }])).toEqual([committed]);
    });
  });
}

/** The hop of a server's build from one selection to another; selection n is host n unless `toHost` says otherwise. */
function hopOf(tenure: Tenure, server: number, from: number, to: number, vcpus = 1, toHost = to): Hop {
  return {
    ...tenure,
    from,
    reason: `failed on "host-${from}"`,
    to,
    toHost: hostName(toHost),
    change: swapTo(server, toHost, vcpus),
  };
}
