import { afterEach, beforeEach, expect, test } from "vitest";
import { overriding } from "../../runtime/overriding.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import type { FakeScript } from "../../services/compute-agent/fake-script.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { type AgentProcess, SmallCell } from "../rigs/small-cell.ts";

const NEVER = new AbortController().signal;

let cell: SmallCell;
let agent: AgentProcess;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

const existing = () => cell.existsOn(1);
const runs = () => eventually("it to run", () => cell.runsOn(1).join() === "host-0");
const guestOf = (attemptId: string | null) => ({
  host: "host-0",
  serverUuid: serverId(1),
  attemptId: attemptId ?? "",
});

async function startAgent(
  disk: MemoryDisk = { records: [] },
  fake: FakeScript = {},
  before: (driver: FakeDriver) => Driver = (driver) => driver,
): Promise<void> {
  agent = await cell.startAgent({ id: "agent-0", hosts: [0], vcpus: 4, disk, fake, before });
}

/** A host of 4 VCPUs with server 1 of one. */
async function start(): Promise<void> {
  await cell.startConductor(1);
  await startAgent();
  await cell.hostsUp(1);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await runs();
}

/** The host has got a new disk, on which there is neither a guest nor a journal. */
async function loseDisk(fake: FakeScript = {}, before?: (driver: FakeDriver) => Driver): Promise<void> {
  await agent.agent.close();
  cell.forget(agent.driver);
  await startAgent({ records: [] }, fake, before);
  expect(existing()).toEqual([]);
}

/** Somebody has removed the guest from the hypervisor, of which the agent's journal does not know. */
async function loseGuest(): Promise<void> {
  await agent.driver.destroy(guestOf((await cell.server(1)).attemptId), NEVER);
  expect(existing()).toEqual([]);
}

const rebuilt = async () => {
  await cell.operate({ server: 1, kind: "rebuild", hosts: [0] });
  return cell.rest(1);
};

test.each([
  ["the host has a new disk", loseDisk],
  ["the guest was removed by hand", loseGuest],
])("a rebuild makes a new guest for a server that has lost its guest because %s", async (_, lose) => {
  await start();
  const before = await cell.server(1);
  await lose();
  const after = await rebuilt();
  expect(after).toMatchObject({ status: "ACTIVE", host: "host-0", fault: null });
  expect(after.attemptId).not.toBe(before.attemptId);
  await runs();
  await eventually("one guest", () => existing().length === 1);
  expect(await cell.holds(serverId(1))).toEqual({ "host-0": 1 });
});

test("a server that was stopped is stopped after that, and has a guest that starts", async () => {
  await start();
  await cell.operate({ server: 1, kind: "stop" });
  await cell.become(1, "SHUTOFF");
  await loseDisk();
  expect(await rebuilt()).toMatchObject({ status: "SHUTOFF", fault: null });
  expect([cell.runsOn(1), existing()]).toEqual([[], ["host-0"]]);
  await cell.operate({ server: 1, kind: "start" });
  await cell.become(1, "ACTIVE");
  await runs();
});

test.each(["pause", "suspend", "shelve", "rescue"] as const)(
  "a server that has lost its guest after a %s is rebuilt when an administrator has set it to error",
  async (kind) => {
    await start();
    await cell.operate({ server: 1, kind });
    const { status } = await cell.rest(1);
    await loseDisk();
    await expect(cell.operate({ server: 1, kind: "rebuild", hosts: [0] })).rejects.toThrow(status);
    await cell.store.resetStatus([{ serverUuid: serverId(1), status: "ERROR" }]);
    expect(await rebuilt()).toMatchObject({ status: "ACTIVE", host: "host-0", fault: null });
    await runs();
    expect(existing()).toEqual(["host-0"]);
  },
);

test("a rebuild whose new guest does not start leaves the server in ERROR with its room, and the next one heals it", async () => {
  await start();
  await loseDisk({ start_failures: 1 });
  const failed = await rebuilt();
  expect(failed).toMatchObject({ status: "ERROR", host: "host-0" });
  expect(await cell.holds(serverId(1))).toEqual({ "host-0": 1 });
  // The firmware is mended.
  await loseDisk();
  expect(await rebuilt()).toMatchObject({ status: "ACTIVE", host: "host-0" });
  await runs();
  expect(existing()).toEqual(["host-0"]);
});

test("a host that cannot say whether it has the guest leaves the server as it was", async () => {
  await start();
  const silent = (driver: FakeDriver) =>
    overriding<Driver>(driver, { powersOf: async (guests) => guests.map(() => "unknown" as const) });
  await loseDisk({}, silent);
  expect(await rebuilt()).toMatchObject({ status: "ERROR", host: "host-0" });
  expect(cell.runsOn(1)).toEqual([]);
});
