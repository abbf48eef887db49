import { expect, test } from "vitest";
import type { Tenure } from "../../core/tasks/tenure.ts";
import { conductorId, dispatchOf, hostName, serverId, swapTo, taskId } from "./cell-fixtures.ts";
import type { CellUnderTest } from "./cell-under-test.ts";

const committed = { kind: "committed" };
const fenced = { kind: "fenced" };

/** The guarantees for a task that a conductor begins before it takes it. */
export function untakenContract(cell: () => CellUnderTest): void {
  /** What conductor 0 writes with for a task that it has not taken. */
  const untaken = (server: number): Tenure => ({
    ...{ taskId: taskId(server), serverUuid: serverId(server), epoch: 0, untakenBy: conductorId(0) },
  });
  const dispatch = (server: number) =>
    cell().store.dispatch([dispatchOf({ server, task: server, hosts: [0, 1], vcpus: 1 })]);
  const conductorsOf = async (server: number) =>
    (await cell().store.tasksOf(serverId(server))).map(({ takings }) => takings.map((one) => one.conductorId));

  test("ends without being taken, and names the conductor", async () => {
    const { store } = cell();
    for (const server of [1, 2]) await dispatch(server);
    expect(await store.commitActive([1, 2].map((server) => ({ ...untaken(server), selection: 0 })))).toEqual([
      committed,
      committed,
    ]);
    expect(await store.commitActive([{ ...untaken(1), selection: 0 }])).toEqual([committed]);
    expect([await conductorsOf(1), await conductorsOf(2)]).toEqual([[[conductorId(0)]], [[conductorId(0)]]]);
    expect(await store.servers([1, 2].map(serverId))).toMatchObject([{ status: "ACTIVE" }, { status: "ACTIVE" }]);
  });

  test("ends beside one that another conductor has taken, which fences the write", async () => {
    const { store } = cell();
    for (const server of [1, 2, 3]) await dispatch(server);
    await cell().take(2, 1);
    const commits = [1, 2, 3].map((server) => ({ ...untaken(server), selection: 0 }));
    expect(await store.commitActive(commits)).toEqual([committed, fenced, committed]);
    expect([await conductorsOf(1), await conductorsOf(2)]).toEqual([[[conductorId(0)]], [[conductorId(1)]]]);
  });

  test("is held under the same epoch, so that no sweep takes it and what was begun stays valid", async () => {
    const { store } = cell();
    await dispatch(1);
    for (let times = 0; times < 2; times += 1)
      expect(await store.holdTasks(conductorId(0), [taskId(1)])).toEqual([true]);
    expect(await store.sweepTasks(conductorId(1), 0, 10)).toEqual([]);
    expect(await store.takeTasks(conductorId(1), [taskId(1)])).toEqual([]);
    expect(await store.ownedTasks(conductorId(0))).toEqual([taskId(1)]);
    const hop = { ...untaken(1), from: 0, reason: "x", to: 1, toHost: hostName(1), change: swapTo(1, 1) };
    expect(await store.hop([hop])).toEqual([committed]);
    expect(await store.commitActive([{ ...untaken(1), selection: 1 }])).toEqual([committed]);
    expect(await conductorsOf(1)).toEqual([[conductorId(0)]]);
  });

  test("cannot be held when it was taken, has ended or does not exist; the others can", async () => {
    const { store } = cell();
    for (const server of [1, 2, 3, 4]) await dispatch(server);
    await cell().take(1, 1);
    await cell().take(2, 0);
    await store.commitActive([{ ...untaken(3), selection: 0 }]);
    const ids = [taskId(1), taskId(2), taskId(3), taskId(4), taskId(9), "nonsense", taskId(4)];
    expect(await store.holdTasks(conductorId(0), ids)).toEqual([false, false, false, true, false, false, true]);
    expect(await store.ownedTasks(conductorId(1))).toEqual([taskId(1)]);
  });

  test("goes to another conductor when the one that holds it is gone", async () => {
    const { store } = cell();
    await dispatch(1);
    await store.holdTasks(conductorId(0), [taskId(1)]);
    await store.giveUpLease(conductorId(0));
    const [swept] = await store.sweepTasks(conductorId(1), 0, 10);
    expect(swept?.epoch).toBe(1);
    expect(await store.commitActive([{ ...untaken(1), selection: 0 }])).toEqual([fenced]);
    expect(await conductorsOf(1)).toEqual([[conductorId(0), conductorId(1)]]);
  });

  test("two conductors that both begin it: a hop of the slower one does not undo the later hop of the other", async () => {
    const { store } = cell();
    await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0, 1, 2], vcpus: 1 })]);
    const other = { ...untaken(1), untakenBy: conductorId(1) };
    const hop = (from: number) => ({
      from,
      reason: "x",
      to: from + 1,
      toHost: hostName(from + 1),
      change: swapTo(1, from + 1),
    });
    expect(await store.hop([{ ...untaken(1), ...hop(0) }])).toEqual([committed]);
    expect(await store.hop([{ ...other, ...hop(0) }])).toEqual([committed]);
    expect(await store.hop([{ ...untaken(1), ...hop(1) }])).toEqual([committed]);
    expect(await store.hop([{ ...other, ...hop(0) }])).toEqual([fenced]);
    expect(await cell().used()).toEqual([0, 0, 1]);
    expect((await store.attempts(serverId(1))).map(({ result }) => result)).toEqual(["failed", "failed", null]);
    expect(await store.commitActive([{ ...untaken(1), selection: 2 }])).toEqual([committed]);
  });

  test("two conductors that both begin it: the one that has lost a host does not become the owner by a commit that is fenced", async () => {
    const { store } = cell();
    for (const server of [1, 2]) await dispatch(server);
    const hop = { ...untaken(1), from: 0, reason: "x", to: 1, toHost: hostName(1), change: swapTo(1, 1) };
    expect(await store.hop([hop])).toEqual([committed]);
    const commits = [1, 2].map((server) => ({ ...untaken(server), untakenBy: conductorId(1), selection: 0 }));
    expect(await store.commitActive(commits)).toEqual([fenced, committed]);
    expect([await conductorsOf(1), await conductorsOf(2)]).toEqual([[[]], [[conductorId(1)]]]);
    expect(await store.holdTasks(conductorId(0), [taskId(1)])).toEqual([true]);
  });

  test("two conductors that both begin it: the record names both when the first one has released it", async () => {
    const { store } = cell();
    for (const server of [1, 2]) {
      await dispatch(server);
      await store.holdTasks(conductorId(0), [taskId(server)]);
    }
    expect(await store.releaseTasks(conductorId(0), [untaken(1), untaken(2)])).toEqual([true, true]);
    await store.holdTasks(conductorId(1), [taskId(1)]);
    for (const server of [1, 2])
      await store.commitActive([{ ...untaken(server), untakenBy: conductorId(1), selection: 0 }]);
    const both = [[conductorId(0), conductorId(1)]];
    expect([await conductorsOf(1), await conductorsOf(2)]).toEqual([both, both]);
  });

  test("is released before it is held, if no other conductor has it", async () => {
    const { store } = cell();
    for (const server of [1, 2, 3]) await dispatch(server);
    await cell().take(2, 1);
    await store.holdTasks(conductorId(1), [taskId(3)]);
    expect(await store.releaseTasks(conductorId(0), [untaken(1), untaken(2), untaken(3)])).toEqual([
      true,
      false,
      false,
    ]);
    expect((await store.sweepTasks(conductorId(1), 0, 10)).map(({ task, epoch }) => [task.id, epoch])).toEqual([
      [taskId(1), 1],
    ]);
    expect(await store.releaseTasks(conductorId(0), [untaken(1)])).toEqual([false]);
  });
}
