import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TaskNotice } from "../../proto/gen/berth/cell.ts";
import { serverId, taskId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { type AgentProcess, type ConductorProcess, SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
let conductor: ConductorProcess;
let agents: AgentProcess[];
/** The build of server 1 as its message tells it. */
let message: Buffer;

/** Server 1 runs on host-1. Its build was begun untaken, so that its row still has epoch 0. */
beforeEach(async () => {
  cell = await new SmallCell().open();
  conductor = await cell.startConductor(1);
  agents = [];
  for (const host of [1, 2]) agents.push(await cell.startAgent({ id: `agent-${host}`, hosts: [host] }));
  await cell.hostsUp(2);
  message = Buffer.from(await cell.boot(1, [1, 2]));
  await cell.become(1, "ACTIVE");
  await eventually("it to run", () => cell.runsOn(1).join() === "host-1");
});
afterEach(() => cell.close());

/** Tells the build again, as a scheduler or a NATS server that stood still does, and waits until the conductor is done with it. */
async function tellAgain(next = 9): Promise<void> {
  await cell.publish(TaskNotice.encode({ id: taskId(1), more: [], told: [message] }).finish());
  await cell.boot(next, [2]);
  await cell.become(next, "ACTIVE");
  await eventually("all tasks to end", () => conductor.conductor.taskCount === 0);
}

describe("a build that is told again when it has ended long ago", () => {
  test("is not started if its server was shut off", async () => {
    await cell.operate({ server: 1, kind: "stop" });
    await cell.become(1, "SHUTOFF");
    await tellAgain();
    expect([cell.runsOn(1), cell.existsOn(1)]).toEqual([[], ["host-1"]]);
    expect(await cell.server(1)).toMatchObject({ status: "SHUTOFF", fault: null });
  });

  test("is not stopped or built elsewhere if its server runs", async () => {
    await tellAgain();
    expect([cell.runsOn(1), cell.existsOn(1)]).toEqual([["host-1"], ["host-1"]]);
    expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", host: "host-1" });
    expect((await cell.store.attempts(serverId(1))).map(({ result }) => result)).toEqual(["success"]);
  });

  test("is not built again if its server was deleted", async () => {
    await cell.delete(1);
    await cell.become(1, "DELETED");
    await tellAgain();
    expect([cell.existsOn(1), await cell.heldOn(1)]).toEqual([[], []]);
    expect(await cell.server(1)).toMatchObject({ status: "DELETED" });
  });

  test.each(["confirm", "revert"] as const)(
    "leaves one guest where its server is after a resize and its %s",
    async (kind) => {
      await cell.operate({ server: 1, kind: "resize", hosts: [2], vcpus: 2 });
      await cell.become(1, "VERIFY_RESIZE");
      await tellAgain();
      await eventually("it to run at its destination alone", () => cell.runsOn(1).join() === "host-2");
      expect(cell.existsOn(1).sort()).toEqual(["host-1", "host-2"]);
      await cell.operate({ server: 1, kind });
      await cell.become(1, "ACTIVE");
      const home = kind === "confirm" ? "host-2" : "host-1";
      await tellAgain(10);
      await eventually(
        "it to run at home alone",
        () => cell.runsOn(1).join() === home && cell.existsOn(1).join() === home,
      );
    },
  );

  test("leaves nothing on a host that has forgotten the attempt", async () => {
    await cell.operate({ server: 1, kind: "resize", hosts: [2], vcpus: 2 });
    await cell.become(1, "VERIFY_RESIZE");
    await cell.operate({ server: 1, kind: "confirm" });
    await cell.become(1, "ACTIVE");
    await eventually("its source to be empty", () => cell.existsOn(1).join() === "host-2");
    await agents[0]?.agent.close();
    const { driver } = await cell.startAgent({ id: "agent-1", hosts: [1] });
    await cell.hostsUp(2);
    await tellAgain();
    await eventually("the host to be empty", () => driver.guests().length === 0);
    expect(cell.runsOn(1)).toEqual(["host-2"]);
    expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", host: "host-2" });
  });
});
