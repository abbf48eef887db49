import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { attemptIdOf } from "../../core/tasks/server.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { serverId, taskId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

const freshDisk = (): MemoryDisk => ({ records: [] });

describe("an agent", () => {
  test("killed in the middle of a build reports the failure when it is back, and the build goes to the alternate", async () => {
    await cell.startConductor(1, { hostGraceMs: 20_000 });
    const disk = freshDisk();
    const first = await cell.startAgent({ id: "agent-1", hosts: [1], disk });
    await cell.startAgent({ id: "agent-2", hosts: [2] });
    await cell.hostsUp(2);
    await cell.boot(1, [1, 2], { fake: { outcome: "crash", first: 1 } });
    await eventually("the crash", () => first.crashes === 1);
    cell.forget(first.driver);
    await cell.startAgent({ id: "agent-1", hosts: [1], disk });
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-2" });
    expect(await cell.store.attempts(serverId(1))).toMatchObject([
      { reason: expect.stringContaining("restarted") },
      {},
    ]);
    await eventually("the guest to run", () => cell.runsOn(1).length > 0);
    expect(cell.existsOn(1)).toEqual(["host-2"]);
  });

  test("that never comes back loses its build to the alternate after the grace", async () => {
    await cell.startConductor(1);
    const first = await cell.startAgent({ id: "agent-1", hosts: [1] });
    await cell.startAgent({ id: "agent-2", hosts: [2] });
    await cell.hostsUp(2);
    await cell.boot(1, [1, 2], { fake: { outcome: "crash", first: 1 } });
    await eventually("the crash", () => first.crashes === 1);
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-2" });
  });

  test("whose connection broke is attached to its build again, and builds it once", async () => {
    await cell.startConductor(1, { hostGraceMs: 20_000 });
    const { agent, driver } = await cell.startAgent({ id: "agent-1", hosts: [1] });
    await cell.hostsUp(1);
    await cell.boot(1, [1], { fake: { duration_ms: 300 } });
    await eventually("the build to begin", () => agent.guests().length === 1);
    agent.loseConnections();
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-1" });
    await eventually("the guest to run", () => cell.runsOn(1).length > 0);
    expect(driver.guests()).toHaveLength(1);
    expect(await cell.store.attempts(serverId(1))).toHaveLength(1);
  });

  test("that comes back with a guest of a server that went elsewhere destroys it before its host is up", async () => {
    await cell.startConductor(1, { unseenMs: 200 });
    const disk = freshDisk();
    const first = await cell.startAgent({ id: "agent-1", hosts: [1], disk });
    await cell.startAgent({ id: "agent-2", hosts: [2] });
    await cell.hostsUp(2);
    await cell.boot(1, [1, 2], { fake: { outcome: "hang", first: 1 } });
    await eventually("the build to begin", () => first.agent.guests().length === 1);
    await first.agent.close();
    cell.forget(first.driver);
    disk.records.push({
      kind: "guest",
      host: "host-1",
      serverUuid: serverId(1),
      attemptId: attemptIdOf(taskId(1), 0),
      state: "prepared",
      atMs: 0,
    });
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-2" });
    await cell.hostsUp(1);
    const back = await cell.startAgent({ id: "agent-1", hosts: [1], disk });
    await cell.hostsUp(2);
    expect(back.driver.guests()).toEqual([]);
  });

  test("that reports a wrong outcome after a lost connection leaves one guest, on the alternate", async () => {
    await cell.startConductor(1);
    await cell.startAgent({ id: "agent-1", hosts: [1, 2] });
    await cell.hostsUp(2);
    await cell.boot(1, [1, 2], { fake: { outcome: "lie", first: 1 } });
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-2" });
    await eventually("one guest", () => cell.existsOn(1).length === 1 && cell.runsOn(1).length === 1);
    expect(cell.runsOn(1)).toEqual(["host-2"]);
  });

  test("keeps its prepared guests when it is killed, and the guest is started when it is back", async () => {
    const { gate } = await cell.startConductor(1, { hostGraceMs: 20_000 });
    const disk = freshDisk();
    const first = await cell.startAgent({ id: "agent-1", hosts: [1], disk });
    await cell.hostsUp(1);
    const release = gate.hold("commitActive");
    await cell.boot(1, [1]);
    await eventually("the commit", () => gate.held("commitActive") > 0);
    await first.agent.close();
    cell.forget(first.driver);
    release();
    await cell.become(1, "ACTIVE");
    await cell.startAgent({ id: "agent-1", hosts: [1], disk });
    await eventually("the guest to run", () => cell.runsOn(1).length === 1);
  });
});

describe("two conductors", () => {
  const conductors = [1, 2];

  test("one dies between prepared and ACTIVE: the other one resumes, and the guest runs once", async () => {
    const first = await cell.startConductor(1);
    const { driver } = await cell.startAgent({ id: "agent-1", hosts: [1, 2], conductors });
    await cell.hostsUp(2);
    first.gate.hold("commitActive");
    await cell.boot(1, [1, 2]);
    await eventually("the commit", () => first.gate.held("commitActive") > 0);
    await cell.startConductor(2);
    await first.kill();
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-1" });
    await eventually("the guest to run", () => cell.runsOn(1).length > 0);
    expect(driver.guests()).toHaveLength(1);
  });

  test("one dies after ACTIVE and before Start: the other one starts the guest", async () => {
    const first = await cell.startConductor(1);
    await cell.startAgent({ id: "agent-1", hosts: [1], conductors });
    await cell.hostsUp(1);
    const release = first.gate.hold("commitActive");
    await cell.boot(1, [1]);
    await eventually("the commit", () => first.gate.held("commitActive") > 0);
    const claim = { taskId: taskId(1), serverUuid: serverId(1), epoch: 0, selection: 0 };
    expect(await cell.store.commitActive([claim])).toEqual([{ kind: "committed" }]);
    await cell.startConductor(2);
    await first.kill();
    release();
    await eventually("the guest to run", () => cell.runsOn(1).length === 1);
  });

  test("one dies in the middle of a hop: the other one continues and names every attempt", async () => {
    const first = await cell.startConductor(1);
    await cell.startAgent({ id: "agent-1", hosts: [1, 2, 3], conductors });
    await cell.hostsUp(3);
    first.gate.hold("commitError");
    await cell.boot(1, [1, 2, 3], { fake: { outcome: "reschedule", reason: "no power" } });
    await eventually("the end", () => first.gate.held("commitError") > 0);
    await cell.startConductor(2);
    await first.kill();
    const server = await cell.become(1, "ERROR");
    expect(server.fault?.message).toBe(
      "No valid host: exhausted all hosts of the build. 3 attempts on 3 hosts failed, and no alternate is left: host-1: no power; host-2: no power; host-3: no power",
    );
    expect(await cell.heldOn(1)).toEqual([]);
  });

  test("one is too slow: it is fenced, and its late writes change nothing", async () => {
    const first = await cell.startConductor(1);
    await cell.startAgent({ id: "agent-1", hosts: [1, 2], conductors });
    await cell.hostsUp(2);
    const releaseLease = first.gate.hold("renewLease");
    const release = first.gate.hold("hop");
    await cell.boot(1, [1, 2], { fake: { outcome: "reschedule", first: 1 } });
    await eventually("the hop", () => first.gate.held("hop") > 0);
    await cell.startConductor(2);
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-2" });
    release();
    releaseLease();
    await eventually("the slow one to let go", () => first.conductor.taskCount === 0);
    expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", host: "host-2" });
    await eventually("the guest to run", () => cell.runsOn(1).length > 0);
    expect([cell.existsOn(1), await cell.heldOn(1)]).toEqual([["host-2"], ["host-2"]]);
  });

  test("one stops in order: the other one continues its builds at once", async () => {
    const first = await cell.startConductor(1, { leaseMs: 60_000 });
    await cell.startConductor(2, { leaseMs: 60_000 });
    await cell.startAgent({ id: "agent-1", hosts: [1], conductors });
    await cell.hostsUp(1);
    for (let server = 1; server <= 8; server += 1) await cell.boot(server, [1], { fake: { duration_ms: 200 } });
    await first.conductor.close();
    for (let server = 1; server <= 8; server += 1) await cell.become(server, "ACTIVE");
  });
});

describe("the conductor's database", () => {
  test("may fail for a while, and every build still ends", async () => {
    const { gate } = await cell.startConductor(1);
    await cell.startAgent({ id: "agent-1", hosts: [1, 2] });
    await cell.hostsUp(2);
    const commitActive = cell.store.commitActive.bind(cell.store);
    let failures = 0;
    cell.store.commitActive = (commits) => {
      failures += 1;
      return failures <= 3 ? Promise.reject(new Error("the connection was lost")) : commitActive(commits);
    };
    await cell.boot(1, [1, 2]);
    await cell.boot(2, [1, 2]);
    await cell.become(1, "ACTIVE");
    await cell.become(2, "ACTIVE");
    expect(gate.held("commitActive")).toBe(0);
  });

  test("learns again that hosts are up which were wrongly taken for dead", async () => {
    await cell.startConductor(1);
    await cell.startAgent({ id: "agent-1", hosts: [1, 2] });
    await cell.hostsUp(2);
    expect((await cell.store.expireAgents(-1)).down).toHaveLength(2);
    await cell.hostsUp(2);
  });
});
