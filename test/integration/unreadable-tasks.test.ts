import { afterEach, beforeEach, expect, test } from "vitest";
import { conductorId, dispatchOf, serverId, taskId } from "../contract/cell-fixtures.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

const SOON = { unreadableMs: 20, untakenMs: 20, sweepMs: 20 };
let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

/** The build of server 1 on host 0, stored in a form that no conductor of this version can read. */
async function storeUnreadable(): Promise<() => void> {
  const dispatch = dispatchOf({ server: 1, task: 1, hosts: [0] });
  const { work } = dispatch.task;
  await cell.store.dispatch([dispatch]);
  dispatch.task.work = undefined;
  return () => {
    dispatch.task.work = work;
  };
}

test("a task that no conductor can read ends with its server in ERROR, which can be deleted", async () => {
  await cell.startConductor(1, SOON);
  await cell.startConductor(2, SOON);
  await cell.startAgent({ id: "agent-0", hosts: [0], conductors: [1, 2] });
  await cell.hostsUp(1);
  await storeUnreadable();
  const { fault } = await cell.become(1, "ERROR");
  expect(fault?.message).toContain(`No conductor of the cell can read the task of this server (task ${taskId(1)}`);
  expect(await cell.holds(serverId(1))).toEqual({ "host-0": 1 });
  await cell.delete(1);
  await cell.become(1, "DELETED");
  expect(await cell.holds(serverId(1))).toEqual({});
});

test("a single conductor takes it repeatedly before it ends", async () => {
  const { conductor } = await cell.startConductor(1, SOON);
  await cell.startAgent({ id: "agent-0", hosts: [0] });
  await cell.hostsUp(1);
  await storeUnreadable();
  await cell.become(1, "ERROR");
  await eventually("no task to be in progress", () => conductor.taskCount === 0);
});

test("a conductor that can read it and is started meanwhile carries it out", async () => {
  const old = await cell.startConductor(1, { ...SOON, unreadableMs: 3_600_000 });
  await cell.startAgent({ id: "agent-0", hosts: [0], conductors: [1, 2] });
  await cell.hostsUp(1);
  const becomeReadable = await storeUnreadable();
  await eventually("it to be taken", async () => (await cell.store.ownedTasks(conductorId(1))).length > 0);
  expect(old.conductor.taskCount).toBe(1);
  becomeReadable();
  // The agent has tried in vain to dial it, and the next try may be later than the short grace of this cell.
  await cell.startConductor(2, { ...SOON, hostGraceMs: 10_000 });
  await old.conductor.close();
  await cell.become(1, "ACTIVE");
});

test("an unreadable move leaves both guests until the server is deleted", async () => {
  const { gate } = await cell.startConductor(1, SOON);
  for (const host of [0, 1]) await cell.startAgent({ id: `agent-${host}`, hosts: [host] });
  await cell.hostsUp(2);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await eventually("the guest to run", () => cell.runsOn(1).length === 1);
  const release = [gate.hold("takeTasks"), gate.hold("sweepTasks")];
  const { task } = await beginOperationOn(cell.store, { server: 1, kind: "resize", hosts: [1], vcpus: 2 });
  if (task === null) throw new Error("not begun");
  task.work = undefined;
  for (const each of release) each();
  await cell.become(1, "ERROR");
  expect(cell.runsOn(1)).toEqual(["host-0"]);
  await cell.delete(1);
  await cell.become(1, "DELETED");
  expect([cell.existsOn(1), await cell.heldOn(1)]).toEqual([[], []]);
});
