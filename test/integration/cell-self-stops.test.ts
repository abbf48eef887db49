import { pino } from "pino";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { StopCause } from "../../core/agent/stop-cause.ts";
import type { FoundGuest } from "../../core/tasks/guest-fate.ts";
import type { GuestLook } from "../../core/tasks/refused-order.ts";
import { systemClock } from "../../runtime/clock.ts";
import { overriding } from "../../runtime/overriding.ts";
import type { Driver, FoundPower } from "../../services/compute-agent/driver.ts";
import type { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import type { GuestName } from "../../services/compute-agent/journal.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { ConductorEvents } from "../../services/conductor/events.ts";
import { ServerStopper } from "../../services/conductor/server-stopper.ts";
import { StepCommitter } from "../../services/conductor/step-committer.ts";
import { conductorId, serverId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { type AgentProcess, SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

const NEVER = new AbortController().signal;
const HOST = { id: "agent-0", hosts: [0] } as const;

/** Server 1 runs on host 0. */
async function start(options: Partial<Parameters<SmallCell["startAgent"]>[0]> = {}): Promise<AgentProcess> {
  await cell.startConductor(1);
  const agent = await cell.startAgent({ ...HOST, ...options });
  await cell.hostsUp(1);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await eventually("the guest to run", () => cell.runsOn(1).length === 1);
  return agent;
}

function guestOf({ driver }: AgentProcess): GuestName {
  const [guest] = driver.guests();
  if (guest === undefined) throw new Error("no guest");
  const { host, serverUuid, attemptId } = guest;
  return { host, serverUuid, attemptId };
}

function silentEvents(): ConductorEvents {
  const logger = pino({ level: "silent" });
  return new ConductorEvents({ logger, registry: new Registry(), clock: systemClock, taskCount: () => 0 });
}

/** The operations of server 1, oldest first. */
async function operations(): Promise<unknown[]> {
  const tasks = await cell.store.tasksOf(serverId(1));
  return tasks.flatMap(({ task: { work } }) => (work?.$case === "operate" ? [work.value.kind] : []));
}

/** A driver that finds guests in the state that the test sets. */
function seeing(sights: FoundPower[]) {
  return (driver: FakeDriver): Driver =>
    overriding<Driver>(driver, {
      watch: (onChanged) => driver.watch(onChanged),
      powersOf: async (guests) => {
        const real = await driver.powersOf(guests);
        return real.map((power) => (power === "shut-down" ? (sights.shift() ?? power) : power));
      },
    });
}

describe("a guest that stops without an order", () => {
  test.each(["shut-down", "crashed"] as const)("has its server stopped by an operation (%s)", async (by) => {
    const agent = await start();
    agent.driver.endGuest(guestOf(agent), by);
    await cell.become(1, "SHUTOFF");
    await cell.rest(1);
    expect([await operations(), cell.runsOn(1), cell.existsOn(1)]).toEqual([["stop"], [], ["host-0"]]);
    await cell.operate({ server: 1, kind: "start" });
    await cell.become(1, "ACTIVE");
    expect(cell.runsOn(1)).toEqual(["host-0"]);
  });

  test("is left alone when it has only been restarted from inside", async () => {
    // The first look finds the guest shut down, and the second one, which must confirm that, does not.
    const sights: FoundPower[] = ["shut-down", "running"];
    const agent = await start({ before: seeing(sights) });
    agent.driver.endGuest(guestOf(agent), "shut-down");
    await eventually("both looks", () => sights.length === 0);
    await agent.driver.start(guestOf(agent), NEVER);
    await cell.operate({ server: 1, kind: "pause" });
    await cell.become(1, "PAUSED");
    expect(await operations()).toEqual(["pause"]);
  });

  test("has its paused server stopped, too", async () => {
    const agent = await start();
    await cell.operate({ server: 1, kind: "pause" });
    await cell.become(1, "PAUSED");
    await cell.rest(1);
    agent.driver.endGuest(guestOf(agent), "crashed");
    await cell.become(1, "SHUTOFF");
  });

  test("is known to the agent's next process, and to a conductor that did not get the report", async () => {
    const disk: MemoryDisk = { records: [] };
    const agent = await start({ disk });
    agent.cutOff();
    agent.driver.endGuest(guestOf(agent), "shut-down");
    await eventually("the journal", () => disk.records.some((record) => "cause" in record));
    await agent.agent.close();
    cell.forget(agent.driver);
    await cell.startAgent({ ...HOST, disk });
    await cell.become(1, "SHUTOFF");
    expect(await operations()).toEqual(["stop"]);
  });
});

describe("the report that a guest stopped without an order", () => {
  async function stopper(look: () => Promise<GuestLook>): Promise<{ readonly stop: () => Promise<unknown> }> {
    const agent = await start();
    const guest: FoundGuest = { ...guestOf(agent), state: "stopped", cause: "shut-down" };
    const parts = { store: cell.store, clock: systemClock, events: silentEvents() };
    const stop = new AbortController().signal;
    const commits = new StepCommitter({ ...parts, conductorId: conductorId(9), stop });
    const one = new ServerStopper({ ...parts, commits, looker: { look } });
    return { stop: () => Promise.all([one.stop(guest), one.stop(guest)]) };
  }
  const found = (state: string, cause: StopCause | null): GuestLook => ({ kind: "found", state, revision: 1, cause });

  test("is acted on once when it is delivered twice", async () => {
    const { stop } = await stopper(async () => found("stopped", "shut-down"));
    await stop();
    await cell.become(1, "SHUTOFF");
    expect(await operations()).toEqual(["stop"]);
  });

  test.each([
    ["the guest runs again", found("running", null)],
    ["the guest was stopped by an order since", found("stopped", null)],
    ["the host has no such guest", { kind: "absent" }],
    ["the host does not answer", { kind: "silent" }],
    ["the server was unpaused since, and its guest stopped with its host", found("stopped", "halted-with-host")],
  ] as const)("changes nothing when %s", async (_, look) => {
    const { stop } = await stopper(async () => look);
    await stop();
    expect([await operations(), (await cell.server(1)).status]).toEqual([[], "ACTIVE"]);
  });

  test("changes nothing when another operation begins, or has ended, while the host is asked", async () => {
    let rebooted: Promise<string> | null = null;
    const { stop } = await stopper(async () => {
      rebooted ??= cell.operate({ server: 1, kind: "reboot" });
      await rebooted;
      await cell.rest(1);
      return found("stopped", "shut-down");
    });
    await stop();
    expect([await operations(), (await cell.server(1)).status]).toEqual([["reboot"], "ACTIVE"]);
  });
});

describe("a guest that stopped with its host", () => {
  test.each([
    [true, "ACTIVE"],
    [false, "SHUTOFF"],
  ] as const)("resumed: %s, its server is %s", async (resumesGuests, status) => {
    const disk: MemoryDisk = { records: [] };
    const agent = await start({ disk });
    await agent.agent.close();
    cell.forget(agent.driver);
    await cell.startAgent({ ...HOST, disk, resumesGuests, fake: { loses_power: true } });
    await cell.become(1, status);
    await eventually("the guest", () => cell.runsOn(1).length === (resumesGuests ? 1 : 0));
    expect(await operations()).toEqual(resumesGuests ? [] : ["stop"]);
  });

  test.each([true, false])(
    "and was paused cannot go on, so its server is SHUTOFF, and starts (resumed: %s)",
    async (resumesGuests) => {
      const disk: MemoryDisk = { records: [] };
      const agent = await start({ disk });
      await cell.operate({ server: 1, kind: "pause" });
      await cell.become(1, "PAUSED");
      await cell.rest(1);
      await agent.agent.close();
      cell.forget(agent.driver);
      await cell.startAgent({ ...HOST, disk, resumesGuests, fake: { loses_power: true } });
      await cell.become(1, "SHUTOFF");
      await cell.rest(1);
      expect([await operations(), cell.runsOn(1)]).toEqual([["pause", "stop"], []]);
      await cell.operate({ server: 1, kind: "start" });
      await cell.become(1, "ACTIVE");
      expect(cell.runsOn(1)).toEqual(["host-0"]);
    },
  );

  test("and was halted by a full disk is started again, since its server is ACTIVE and nobody has paused it", async () => {
    const disk: MemoryDisk = { records: [] };
    const agent = await start({ disk });
    await agent.agent.close();
    const record = disk.records.findLast((one) => one.kind === "guest");
    if (record?.kind !== "guest") throw new Error("the journal has no guest");
    // The agent has found the guest halted before the host lost its power.
    disk.records.push({ ...record, state: "paused" });
    cell.forget(agent.driver);
    await cell.startAgent({ ...HOST, disk, fake: { loses_power: true } });
    await eventually("the guest", () => cell.runsOn(1).length === 1);
    await cell.rest(1);
    expect([await operations(), (await cell.server(1)).status]).toEqual([[], "ACTIVE"]);
  });
});
