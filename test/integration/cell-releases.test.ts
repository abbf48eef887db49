import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { conductorId, serverId } from "../contract/cell-fixtures.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { eventually } from "../rigs/eventually.ts";
import { type ConductorProcess, SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
let apart: ConductorProcess;
let near: ConductorProcess;
beforeEach(async () => {
  cell = await new SmallCell().open();
  apart = await cell.startConductor(1);
  near = await cell.startConductor(2);
  await cell.startAgent({ id: "agent-1", hosts: [1, 2], conductors: [2] });
  await cell.hostsUp(2);
});
afterEach(() => cell.close());

/** A conductor without agents takes the task that `begin` stores. */
async function takenApart(begin: () => Promise<unknown>): Promise<void> {
  const releases = [near.gate.hold("takeTasks"), near.gate.hold("sweepTasks")];
  await eventually("the other's sweep to wait", () => near.gate.held("sweepTasks") > 0);
  // The takings of the server's tasks are recorded, since the conductor that took a task may already have handed it over.
  const takings = async () =>
    (await cell.store.tasksOf(serverId(1))).reduce((count, task) => count + task.takings.length, 0);
  const before = await takings();
  await begin();
  await eventually("the task to be taken", async () => (await takings()) > before);
  for (const release of releases) release();
}

describe("a task of a conductor that does not reach the host, while another does", () => {
  test("a build is released instead of leaving a live host", async () => {
    await takenApart(() => cell.boot(1, [1, 2], { lost: true }));
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-1" });
    expect(await cell.store.attempts(serverId(1))).toMatchObject([{ host: "host-1", result: "success" }]);
    await eventually("all tasks to end", () => apart.conductor.taskCount + near.conductor.taskCount === 0);
  });

  test("a delete is released instead of releasing the allocation of a running guest", async () => {
    await cell.boot(1, [1]);
    await cell.become(1, "ACTIVE");
    await eventually("the guest to run", () => cell.runsOn(1).length > 0);
    await takenApart(() => cell.delete(1));
    await cell.become(1, "DELETED");
    expect([cell.existsOn(1), await cell.heldOn(1)]).toEqual([[], []]);
    await eventually("all tasks to end", () => apart.conductor.taskCount + near.conductor.taskCount === 0);
  });

  test("a delete that cannot be handed over waits until the host is down", async () => {
    await cell.boot(1, [1]);
    await cell.become(1, "ACTIVE");
    await eventually("the guest to run", () => cell.runsOn(1).length > 0);
    await takenApart(() => cell.delete(1));
    const hold = apart.gate.hold("releaseTasks");
    await eventually("the hand-over", () => apart.gate.held("releaseTasks") > 0);
    await near.kill();
    await cell.store.giveUpLease(conductorId(2));
    hold();
    const looked = apart.gate.hold("sightings");
    await eventually("another look at the host", () => apart.gate.held("sightings") > 0);
    expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", taskState: "deleting", host: "host-1" });
    await cell.store.expireAgents(0);
    looked();
    await cell.become(1, "DELETED");
  });

  test("an evacuation is released to the other conductor, which stops the source on its forced-down host before the destination starts", async () => {
    const { driver } = await cell.startAgent({ id: "agent-3", hosts: [3], conductors: [1, 2] });
    const start = driver.start.bind(driver);
    const ranAtStart: string[][] = [];
    driver.start = (...order) => {
      ranAtStart.push(cell.runsOn(1));
      return start(...order);
    };
    await cell.hostsUp(3);
    await cell.boot(1, [1]);
    await cell.become(1, "ACTIVE");
    await eventually("the guest to run", () => cell.runsOn(1).length > 0);
    await cell.store.hostAdmin().setForcedDown("host-1", true);
    await takenApart(async () => {
      const begun = await beginOperationOn(cell.store, { server: 1, kind: "evacuate", hosts: [3] });
      expect(begun.outcome.kind).toBe("begun");
    });
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-3" });
    await eventually("the old guest to go", () => cell.existsOn(1).join() === "host-3");
    expect(ranAtStart).toEqual([[]]);
  });
});
