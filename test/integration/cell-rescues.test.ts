import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OperationKind } from "../../core/tasks/operation-kinds.ts";
import { overriding } from "../../runtime/overriding.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { FakeScript } from "../../services/compute-agent/fake-script.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { HOST, openCell, operated, startServer } from "../rigs/cell-of-one-server.ts";
import { eventually } from "../rigs/eventually.ts";
import type { AgentProcess, SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
let disk: MemoryDisk;
beforeEach(async () => {
  cell = await openCell();
  disk = { records: [] };
});
afterEach(() => cell.close());

/** Server 1 runs on host 0. */
async function start(
  options: Parameters<typeof startServer>[1] = {},
  settings: Parameters<typeof startServer>[2] = {},
): Promise<AgentProcess> {
  const agent = await startServer(cell, { disk, ...options }, settings);
  await running(true, false);
  return agent;
}
const done = (kind: OperationKind) => operated(cell, kind);
const runs = () => [cell.runsOn(1).length === 1, cell.rescuedOn(1).length === 1];
const running = (runsNow: boolean, rescued: boolean) =>
  eventually(`it to run: ${runsNow}, rescued: ${rescued}`, () => runs().join() === [runsNow, rescued].join());
const CORRUPT = { message: "the rescue image is corrupt" };

describe("a rescue", () => {
  test.each(["ACTIVE", "SHUTOFF"] as const)("that fails leaves the server %s, and can be repeated", async (before) => {
    await start({ fake: { rescue_failures: 1 } });
    if (before === "SHUTOFF") await done("stop");
    expect(await done("rescue")).toMatchObject({ status: before, fault: CORRUPT });
    expect(runs()).toEqual([before === "ACTIVE", false]);
    expect((await done("rescue")).status).toBe("RESCUE");
    expect(runs()).toEqual([true, true]);
    expect((await done("unrescue")).status).toBe("ACTIVE");
    expect(runs()).toEqual([true, false]);
  });

  test("after which the guest does not start again leaves the server in ERROR, from which it is rescued", async () => {
    await start({ fake: { rescue_failures: 1, power_failures: 3 } });
    expect(await done("rescue")).toMatchObject({ status: "ERROR", host: "host-0", fault: CORRUPT });
    expect((await done("rescue")).status).toBe("RESCUE");
    expect((await done("unrescue")).status).toBe("ACTIVE");
    expect(runs()).toEqual([true, false]);
  });

  test("on a host whose driver cannot do it changes nothing", async () => {
    const calls: string[] = [];
    const without = (driver: Driver): Driver =>
      overriding<Driver>(driver, {
        capabilities: new Set(["suspend"]),
        rescue: async () => void calls.push("rescue"),
      });
    await start({ before: without });
    const fault = { message: "the host's driver cannot rescue guests" };
    expect(await done("rescue")).toMatchObject({ status: "ACTIVE", fault });
    expect([calls, runs()]).toEqual([[], [true, false]]);
  });

  test("is finished by another conductor when the first one dies, and the guest is booted once", async () => {
    let rescues = 0;
    const goOn = Promise.withResolvers<void>();
    const counting = (driver: Driver): Driver =>
      overriding<Driver>(driver, {
        rescue: async (guest, image, signal) => {
          rescues += 1;
          await goOn.promise;
          await driver.rescue(guest, image, signal);
        },
      });
    const first = await cell.startConductor(1);
    await cell.startAgent({ ...HOST, before: counting });
    await cell.hostsUp(1);
    await cell.boot(1, [0]);
    await cell.become(1, "ACTIVE");
    await cell.operate({ server: 1, kind: "rescue" });
    await eventually("the rescue", () => rescues === 1);
    await first.kill();
    await cell.startConductor(2);
    goOn.resolve();
    await cell.become(1, "RESCUE");
    expect([rescues, runs()]).toEqual([1, [true, true]]);
  });

  test("whose agent dies after it has booted the guest is known to the agent's next process", async () => {
    // Otherwise the conductor may give the rescue up before the next process is there.
    const agent = await start({}, { hostGraceMs: 600_000, unseenMs: 600_000 });
    const rescue = agent.driver.rescue.bind(agent.driver);
    agent.driver.rescue = async (...order) => {
      await rescue(...order);
      void agent.agent.close();
      await new Promise(() => {});
    };
    await cell.operate({ server: 1, kind: "rescue" });
    await running(true, true);
    cell.forget(agent.driver);
    await cell.startAgent({ ...HOST, disk });
    await cell.become(1, "RESCUE");
    await cell.rest(1);
    await running(true, true);
  });

  test("of a host that falls silent is given up, and a guest that is found rescued later runs from its own disk", async () => {
    let isRescued = false;
    const agent = await start();
    const rescue = agent.driver.rescue.bind(agent.driver);
    agent.driver.rescue = async (...order) => {
      agent.cutOff();
      await rescue(...order);
      isRescued = true;
    };
    await cell.operate({ server: 1, kind: "rescue" });
    await eventually("the rescue", () => isRescued);
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE" });
    expect(runs()).toEqual([true, true]);
    agent.reconnect();
    await running(true, false);
    expect((await cell.server(1)).status).toBe("ACTIVE");
  });
});

describe("a rescued server", () => {
  test("stays rescued when its agent is restarted, and its guest is left alone", async () => {
    const agent = await start();
    await done("rescue");
    await agent.agent.close();
    cell.forget(agent.driver);
    await cell.startAgent({ ...HOST, disk });
    await running(true, true);
    expect((await done("unrescue")).status).toBe("ACTIVE");
    await running(true, false);
  });

  test.each([
    ["whose guest ended by itself", {}],
    ["whose host lost its power", { loses_power: true }],
  ] as const satisfies readonly (readonly [string, FakeScript])[])(
    "%s stays in RESCUE, and its owner ends the rescue",
    async (_, fake) => {
      const agent = await start();
      await done("rescue");
      if (!("loses_power" in fake)) {
        const [guest] = agent.driver.guests();
        expect(guest !== undefined && agent.driver.endGuest(guest, "shut-down")).toBe(true);
        await eventually("the journal", () => disk.records.some((record) => "cause" in record));
      }
      await agent.agent.close();
      cell.forget(agent.driver);
      await cell.startAgent({ ...HOST, disk, fake });
      await running(false, false);
      expect((await cell.server(1)).status).toBe("RESCUE");
      expect((await done("unrescue")).status).toBe("ACTIVE");
      await running(true, false);
    },
  );

  test("whose unrescue fails stays in RESCUE, and one whose host falls silent is ACTIVE as soon as the host is back", async () => {
    const agent = await start({ fake: { power_failures: 1 } });
    await done("rescue");
    const fault = { message: "the hypervisor refused to unrescue the guest" };
    expect(await done("unrescue")).toMatchObject({ status: "RESCUE", fault });
    expect(runs()).toEqual([true, true]);
    agent.cutOff();
    expect((await done("unrescue")).status).toBe("ACTIVE");
    expect(runs()).toEqual([true, true]);
    agent.reconnect();
    await running(true, false);
  });

  test("is deleted, and can do nothing else that Nova refuses", async () => {
    await start();
    await done("rescue");
    for (const kind of [
      "stop",
      "start",
      "reboot",
      "hard-reboot",
      "pause",
      "suspend",
      "shelve",
      "snapshot",
      "rescue",
    ] as const)
      await expect(cell.operate({ server: 1, kind }), kind).rejects.toThrow("wrong-status");
    await cell.delete(1);
    await cell.become(1, "DELETED");
    await eventually("the guest to go", () => cell.existsOn(1).length === 0);
    expect(await cell.holds(serverId(1))).toEqual({});
  });
});
