import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { overriding } from "../../runtime/overriding.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { FakeScript } from "../../services/compute-agent/fake-script.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { type AgentProcess, SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
let agents: AgentProcess[];
beforeEach(async () => {
  cell = await new SmallCell().open();
  agents = [];
});
afterEach(() => cell.close());

const existing = () => cell.existsOn(1).sort();
const held = () => cell.holds(serverId(1));
const runs = (host: number) => eventually(`it to run on host-${host}`, () => cell.runsOn(1).join() === `host-${host}`);
const only = (host: number) => eventually(`it to be on host-${host} alone`, () => existing().join() === `host-${host}`);

/** Two hosts of 4 VCPUs, and server 1 on the first. */
async function start(fake: FakeScript = {}): Promise<void> {
  await cell.startConductor(1);
  for (const host of [0, 1]) agents.push(await cell.startAgent({ id: `agent-${host}`, hosts: [host], vcpus: 4, fake }));
  await cell.hostsUp(2);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await runs(0);
}

/** The agent of the host ends, and begins again without its journal, or with another one, while its hypervisor goes on. */
async function loseJournal(
  host: 0 | 1,
  { disk = { records: [] }, changes = {} }: { readonly disk?: MemoryDisk; readonly changes?: Partial<Driver> } = {},
): Promise<void> {
  const { agent, driver } = agents[host]!;
  await agent.close();
  const before = () => overriding<Driver>(driver, changes);
  agents[host] = { ...(await cell.startAgent({ id: `agent-${host}`, hosts: [host], vcpus: 4, disk, before })), driver };
}

describe("an agent that has lost its journal while its guests run", () => {
  test("destroys the guest of a server that is deleted", async () => {
    await start();
    await loseJournal(0);
    await cell.delete(1);
    await cell.become(1, "DELETED");
    expect([existing(), await held()]).toEqual([[], {}]);
  });

  test("stops and starts a server", async () => {
    await start();
    await loseJournal(0);
    await cell.operate({ server: 1, kind: "stop" });
    await cell.become(1, "SHUTOFF");
    expect(cell.runsOn(1)).toEqual([]);
    await loseJournal(0);
    await cell.operate({ server: 1, kind: "start" });
    await cell.become(1, "ACTIVE");
    await runs(0);
    expect(existing()).toEqual(["host-0"]);
  });

  test("replaces the guest of a server that is rebuilt", async () => {
    await start();
    const { attemptId } = await cell.server(1);
    await loseJournal(0);
    await cell.operate({ server: 1, kind: "rebuild", hosts: [0] });
    const after = await cell.rest(1);
    expect(after).toMatchObject({ status: "ACTIVE", host: "host-0", fault: null });
    expect(after.attemptId).not.toBe(attemptId);
    await runs(0);
    await only(0);
    expect(await held()).toEqual({ "host-0": 1 });
  });

  test("hands the guest of a server over that is migrated", async () => {
    await start();
    await loseJournal(0);
    await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1", fault: null });
    await runs(1);
    await only(1);
  });

  test("makes a server SHUTOFF whose guest has shut itself down meanwhile, and starts one that stopped with its host", async () => {
    await start();
    const guest = () => agents[0]!.driver.guests()[0]!;
    await agents[0]!.agent.close();
    agents[0]!.driver.endGuest(guest(), "shut-down");
    await loseJournal(0);
    await cell.become(1, "SHUTOFF");
    await cell.operate({ server: 1, kind: "start" });
    await cell.become(1, "ACTIVE");
    await agents[0]!.agent.close();
    agents[0]!.driver.losePower();
    await loseJournal(0);
    await runs(0);
    expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", fault: null });
  });
});

describe("in the middle of a move", () => {
  test.each([0, 1] as const)(
    "it goes on if the agent of host-%i loses its journal while the guest is handed over",
    async (host) => {
      await start({ hand_off_ms: 700 });
      await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
      await eventually("the hand-over", async () => {
        const [move] = await cell.store.migrations({ serverUuid: serverId(1), limit: 1 });
        return move?.status === "running";
      });
      await loseJournal(host);
      expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1", fault: null });
      await runs(1);
      await only(1);
      expect(await held()).toEqual({ "host-1": 1 });
    },
  );

  test.each(["confirm", "revert"] as const)(
    "a resize can be settled by a %s if both agents have lost their journals",
    async (kind) => {
      await start();
      await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 2 });
      await cell.become(1, "VERIFY_RESIZE");
      for (const host of [0, 1] as const) await loseJournal(host);
      await cell.hostsUp(2);
      expect(cell.runsOn(1)).toEqual(["host-1"]);
      await cell.operate({ server: 1, kind });
      const { host } = await cell.become(1, "ACTIVE");
      expect(host).toBe(kind === "confirm" ? "host-1" : "host-0");
      await runs(kind === "confirm" ? 1 : 0);
      await only(kind === "confirm" ? 1 : 0);
    },
  );

  test("a copy of the source that is there again when the move is over is no home, and is destroyed", async () => {
    await start();
    const { attemptId } = await cell.server(1);
    await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
    expect(await cell.rest(1)).toMatchObject({ host: "host-1" });
    await only(1);
    const copy = { host: "host-0", serverUuid: serverId(1), attemptId: attemptId ?? "" };
    await agents[0]!.driver.adopt([{ ...copy, state: "stopped" }]);
    await loseJournal(0);
    await only(1);
    expect(cell.runsOn(1)).toEqual(["host-1"]);
    expect(await cell.server(1)).toMatchObject({ host: "host-1", status: "ACTIVE", fault: null });
  });
});

test("a host whose driver cannot list its guests stays away until it can, and its server keeps its room", async () => {
  await start();
  const asked = Promise.withResolvers<void>();
  let answers = false;
  const { driver } = agents[0]!;
  const hostedGuests: Driver["hostedGuests"] = async (hosts) => {
    asked.resolve();
    if (!answers) throw new Error("the hypervisor does not answer");
    return driver.hostedGuests(hosts);
  };
  const back = loseJournal(0, { changes: { hostedGuests } });
  await asked.promise;
  await cell.delete(1);
  expect([existing(), await held()]).toEqual([["host-0"], { "host-0": 1 }]);
  answers = true;
  await back;
  await cell.become(1, "DELETED");
  await eventually("nothing to be left", async () => existing().length === 0 && Object.keys(await held()).length === 0);
});

test("an old copy of the journal does no harm: what the driver has is what counts", async () => {
  const disk: MemoryDisk = { records: [] };
  await start();
  const { attemptId } = await cell.server(1);
  const guest = { host: "host-0", serverUuid: serverId(1), attemptId: attemptId ?? "" };
  const gone = { ...guest, serverUuid: serverId(7), attemptId: "gone/0" };
  // The copy is of a moment at which the guest was being built. Another one was there then, and is gone.
  disk.records.push({ kind: "compared", host: "host-0", incarnation: await cell.store.incarnation() });
  disk.records.push({ kind: "guest", ...guest, state: "building", atMs: 1 });
  disk.records.push({ kind: "guest", ...gone, state: "running", revision: 3, atMs: 1 });
  await loseJournal(0, { disk });
  await cell.operate({ server: 1, kind: "stop" });
  await cell.become(1, "SHUTOFF");
  expect([cell.runsOn(1), existing()]).toEqual([[], ["host-0"]]);
  await eventually("the other one to be forgotten", () => agents[0]!.agent.guests().length === 1);
});

test("keeps a guest of another cloud, whose host has the same name, at each of its agent's starts", async () => {
  await start();
  const others = { host: "host-0", serverUuid: serverId(9), attemptId: `${serverId(8)}/0` };
  await agents[0]!.driver.adopt([{ ...others, state: "running" }]);
  for (const time of [1, 2]) {
    const disk: MemoryDisk = { records: [] };
    await loseJournal(0, { disk });
    await eventually(`comparison ${time} to end`, async () => disk.records.some(({ kind }) => kind === "compared"));
    expect(cell.existsOn(9)).toEqual(["host-0"]);
    const [host] = await cell.store.hosts();
    expect(host).toMatchObject({ name: "host-0", disabled: true });
  }
});
