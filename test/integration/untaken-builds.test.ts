import { afterEach, beforeEach, expect, test } from "vitest";
import { taskLife } from "../../core/scheduling/explain/task-life.ts";
import { TaskNotice } from "../../proto/gen/berth/cell.ts";
import { serverId, taskId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

const conductors = [1, 2];
const takersOf = async (server: number) =>
  (await cell.store.tasksOf(serverId(server))).flatMap(({ takings }) => takings.map(({ name }) => name));

test("a build whose message tells it ends without being taken, and names its conductor", async () => {
  // On a busy machine the message may be older than the quarter of the usual 300 ms that counts as fresh.
  const { gate } = await cell.startConductor(1, { untakenMs: 60_000 });
  await cell.startAgent({ id: "agent-1", hosts: [1] });
  await cell.hostsUp(1);
  gate.hold("takeTasks");
  gate.hold("sweepTasks");
  await cell.boot(1, [1]);
  expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-1" });
  expect(await takersOf(1)).toEqual(["conductor-1"]);
  await eventually("the guest to run", () => cell.runsOn(1).length === 1);
});

test("a build that lasts longer than sweeps wait is held, so that no other conductor repeats it", async () => {
  for (const conductor of conductors) await cell.startConductor(conductor);
  const { driver } = await cell.startAgent({ id: "agent-1", hosts: [1], conductors });
  await cell.hostsUp(1);
  await cell.boot(1, [1], { fake: { duration_ms: 1_500 } });
  expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-1" });
  expect(await takersOf(1)).toHaveLength(1);
  expect(driver.guests()).toHaveLength(1);
});

test("a conductor that dies during such a build, before it has held it, loses it to the other one after the time for lost messages", async () => {
  const first = await cell.startConductor(1);
  await cell.startAgent({ id: "agent-1", hosts: [1, 2], conductors });
  await cell.hostsUp(2);
  first.gate.hold("holdTasks");
  first.gate.hold("commitActive");
  await cell.boot(1, [1, 2]);
  await eventually("the commit", () => first.gate.held("commitActive") > 0);
  await cell.startConductor(2);
  await first.kill();
  expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-1" });
  // It takes the build twice if its lease runs out because the machine is busy.
  expect([...new Set(await takersOf(1))]).toEqual(["conductor-2"]);
  await eventually("the guest to run", () => cell.runsOn(1).length === 1);
});

test("a conductor that was slow to hold such a build is fenced once another one has taken it", async () => {
  const first = await cell.startConductor(1);
  const { driver } = await cell.startAgent({ id: "agent-1", hosts: [1, 2], conductors });
  await cell.hostsUp(2);
  const release = [first.gate.hold("holdTasks"), first.gate.hold("commitActive"), first.gate.hold("sweepTasks")];
  await cell.boot(1, [1, 2]);
  await eventually("the commit", () => first.gate.held("commitActive") > 0);
  await cell.startConductor(2);
  await cell.become(1, "ACTIVE");
  for (const one of release) one();
  await eventually("the first one to be done with it", () => first.conductor.taskCount === 0);
  // It takes the build twice if its lease runs out because the machine is busy.
  expect([...new Set(await takersOf(1))]).toEqual(["conductor-2"]);
  await eventually("the guest to run", () => cell.runsOn(1).length === 1);
  expect(driver.guests()).toHaveLength(1);
});

test("such a build goes on to the next host, and its record names the conductor of each attempt, also when it ends in ERROR", async () => {
  const { gate } = await cell.startConductor(1, { sweepMs: 600_000 });
  await cell.startAgent({ id: "agent-1", hosts: [1, 2] });
  await cell.hostsUp(2);
  gate.hold("takeTasks");
  await cell.boot(1, [1, 2], { fake: { outcome: "reschedule", first: 1 } });
  expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-2" });
  await cell.boot(2, [1, 2], { fake: { outcome: "reschedule" } });
  await cell.become(2, "ERROR");
  for (const server of [1, 2]) {
    const [record] = await cell.store.tasksOf(serverId(server));
    if (record === undefined) throw new Error("there is no record");
    const { attempts } = taskLife(record, await cell.store.attempts(serverId(server)), []);
    expect(attempts.map((one) => one.conductors)).toEqual([["conductor-1"], ["conductor-1"]]);
  }
});

test("a build for which there was no room is taken once its message comes again", async () => {
  const { gate } = await cell.startConductor(1, { tasksMax: 1, untakenMs: 600_000 });
  await cell.startAgent({ id: "agent-1", hosts: [1] });
  await cell.hostsUp(1);
  const release = gate.hold("commitActive");
  await cell.boot(1, [1]);
  await eventually("the first build to be at its end", () => gate.held("commitActive") > 0);
  const take = gate.hold("takeTasks");
  await cell.boot(2, [1]);
  release();
  await eventually("the take", () => gate.held("takeTasks") > 0);
  expect((await cell.server(2)).status).toBe("BUILD");
  take();
  await cell.become(2, "ACTIVE");
});

test("a build that two messages tell to two conductors runs once", async () => {
  const first = await cell.startConductor(1);
  const second = await cell.startConductor(2);
  const { driver } = await cell.startAgent({ id: "agent-1", hosts: [1], conductors });
  await cell.hostsUp(1);
  const release = [first, second].map(({ gate }) => gate.hold("commitActive"));
  const message = Buffer.from(await cell.boot(1, [1]));
  const notice = TaskNotice.encode({ id: taskId(1), more: [], told: [message] }).finish();
  const begun = () => [first, second].filter(({ gate }) => gate.held("commitActive") > 0).length;
  await eventually("both to begin it", async () => {
    if (begun() < 2) await cell.publish(notice);
    return begun() === 2;
  });
  for (const one of release) one();
  await cell.become(1, "ACTIVE");
  await eventually("the guest to run", () => cell.runsOn(1).length === 1);
  expect(driver.guests()).toHaveLength(1);
  expect((await cell.store.attempts(serverId(1))).map(({ result }) => result)).toEqual(["success"]);
});

test("a conductor that has begun a build which another one holds abandons it, and does not leave a host that only it has lost", async () => {
  const first = await cell.startConductor(1);
  const second = await cell.startConductor(2);
  await cell.startAgent({ id: "agent-1", hosts: [1, 2], conductors });
  await cell.hostsUp(2);
  const [letFirst, letSecond] = [first, second].map(({ gate }) => gate.hold("holdTasks"));
  const message = Buffer.from(await cell.boot(1, [1, 2], { fake: { duration_ms: 600_000 } }));
  const notice = TaskNotice.encode({ id: taskId(1), more: [], told: [message] }).finish();
  const counts = () => [first, second].map(({ conductor }) => conductor.taskCount);
  await eventually("both to begin it", async () => {
    if (counts().includes(0)) await cell.publish(notice);
    return !counts().includes(0);
  });
  letFirst?.();
  await eventually("the first one to hold it", async () => (await takersOf(1)).length > 0);
  letSecond?.();
  await eventually("the second one to abandon it", () => counts().join() === "1,0");
  expect(await takersOf(1)).toEqual(["conductor-1"]);
  expect(await cell.store.attempts(serverId(1))).toMatchObject([{ host: "host-1", result: null }]);
});
