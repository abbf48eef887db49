import { afterEach, beforeEach, expect, test } from "vitest";
import { taskSignalHeader } from "../../adapters/nats/streams.ts";
import { Task } from "../../proto/gen/berth/cell.ts";
import type { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import { FakeMemory } from "../../services/compute-agent/fake-memory.ts";
import type { FakeScript } from "../../services/compute-agent/fake-script.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import type { ConductorSettings } from "../../services/conductor/settings.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { beginOperationOn, type RequestedOperation } from "../rigs/begin-operation.ts";
import { eventually } from "../rigs/eventually.ts";
import { type AgentProcess, type ConductorProcess, SmallCell } from "../rigs/small-cell.ts";

/** The product's own waits, of a second and more, dominate these tests. */
const SPEED = 5;
const UNSEEN_MS = 500 * SPEED;
let cell: SmallCell;
let agents: AgentProcess[];
let disks: MemoryDisk[];
let first: ConductorProcess;
let memory: FakeMemory;
beforeEach(async () => {
  cell = await new SmallCell({ speed: SPEED }).open();
  agents = [];
  memory = new FakeMemory();
  disks = [0, 1, 2].map(() => ({ records: [] }));
});
afterEach(() => cell.close());

async function startAgent(host: number, fake: FakeScript = {}): Promise<void> {
  const disk = disks[host];
  const script = { loses_power: true, ...fake };
  const [conductors, before] = [[1, 2], memory.over.bind(memory)];
  agents[host] = await cell.startAgent({
    id: `agent-${host}`,
    hosts: [host],
    vcpus: 4,
    conductors,
    before,
    fake: script,
    ...(disk ? { disk } : {}),
  });
}

/** Three hosts that lose power together with their agents, and server 1 on the first. */
async function start(
  scripts: Readonly<Record<number, FakeScript>> = {},
  settings: Partial<ConductorSettings> = {},
): Promise<void> {
  first = await cell.startConductor(1, { unseenMs: UNSEEN_MS, ...settings });
  for (const host of [0, 1, 2]) await startAgent(host, scripts[host]);
  await cell.hostsUp(3);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await eventually("the guest to run", () => cell.runsOn(1).length === 1);
}

/** The host fails with all its guests. */
async function lose(host: number): Promise<void> {
  const agent = agents[host];
  if (agent === undefined) throw new Error(`no agent ${host}`);
  await agent.agent.close();
  cell.forget(agent.driver);
}

const isDown = (host: number) =>
  eventually(`host-${host} to be down`, async () =>
    (await cell.store.hosts()).some((one) => one.name === `host-${host}` && !one.up),
  );
const begin = (requested: RequestedOperation) => beginOperationOn(cell.store, requested);
/**
 * Holds each step before it is written. `until` lets steps pass up to the one that leads to the stage, and resolves with a function that
 * lets that one pass.
 */
function holdSteps(): { until(operation: string, stage: string): Promise<() => void> } {
  let release = first.gate.hold("commitStep");
  const before = first.gate.held("commitStep");
  return {
    until: async (operation, stage) => {
      for (let held = before + 1; ; held += 1) {
        await eventually("a step", () => first.gate.held("commitStep") >= held);
        if ((await stageOf(operation)) === stage) return release;
        release();
        release = first.gate.hold("commitStep");
      }
    },
  };
}
const stageOf = async (operation: string) => (await cell.store.positions([operation]))[0]?.stage;

test("two resizes at once: one begins, and the other one learns which runs", async () => {
  await start();
  const requested: RequestedOperation = { server: 1, kind: "resize", hosts: [1], vcpus: 2 };
  const outcomes = await Promise.all([begin(requested), begin({ ...requested, hosts: [2] })]);
  expect(outcomes.map(({ outcome }) => outcome.kind).sort()).toEqual(["begun", "busy"]);
  await cell.become(1, "VERIFY_RESIZE");
});

test("confirm against revert: one wins, and the server is in one place", async () => {
  await start();
  await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 2 });
  await cell.become(1, "VERIFY_RESIZE");
  const outcomes = await Promise.all([begin({ server: 1, kind: "confirm" }), begin({ server: 1, kind: "revert" })]);
  expect(outcomes.map(({ outcome }) => outcome.kind).sort()).toEqual(["begun", "busy"]);
  await cell.become(1, "ACTIVE");
  await eventually("one guest", () => cell.existsOn(1).length === 1 && cell.runsOn(1).length === 1);
});

/** An evacuation of server 1 from host-0 to host-1. */
const EVACUATION = { server: 1, kind: "evacuate", hosts: [1], unseenMs: UNSEEN_MS } as const;

test("an evacuation of a host that is up is refused", async () => {
  await start();
  const evacuation = await begin(EVACUATION);
  expect(evacuation.outcome.kind).toBe("host-seen");
});

test("a host whose only link is cut is not evacuated before it is forced down", async () => {
  await start();
  agents[0]?.cutOff();
  await isDown(0);
  expect(cell.runsOn(1)).toEqual(["host-0"]);
  expect((await begin(EVACUATION)).outcome).toEqual({ kind: "host-unfenced" });
  // The operator switches the host off and declares it fenced.
  await lose(0);
  await cell.store.hostAdmin().setForcedDown("host-0", true);
  await cell.operate(EVACUATION);
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1" });
  await eventually("it to run there alone", () => cell.runsOn(1).join() === "host-1");
});

test("a host that is forced down while its agent is alive is evacuated, and its guest is stopped before the other one starts", async () => {
  await start();
  const driver = agents[1]?.driver as FakeDriver;
  const start1 = driver.start.bind(driver);
  const ranAtStart: string[][] = [];
  driver.start = (...order) => {
    ranAtStart.push(cell.runsOn(1));
    return start1(...order);
  };
  await cell.store.hostAdmin().setForcedDown("host-0", true);
  await cell.operate(EVACUATION);
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1" });
  await eventually("it to run there alone", () => cell.existsOn(1).join() === "host-1" && cell.runsOn(1).length === 1);
  expect(ranAtStart).toEqual([[]]);
});

test("an evacuation is aborted while the agent of its source is alive: the guest there is kept stopped, and runs when the host is up again", async () => {
  await start();
  const driver = agents[1]?.driver as FakeDriver;
  driver.start = () => Promise.reject(new Error("the destination cannot start it"));
  const heldBefore = await cell.holds(serverId(1));
  await cell.store.hostAdmin().setForcedDown("host-0", true);
  await cell.operate(EVACUATION);
  const rested = await cell.rest(1);
  expect(rested).toMatchObject({ status: "ACTIVE", host: "host-0" });
  expect(rested.fault?.message).toContain("the destination cannot start it");
  expect(await cell.holds(serverId(1))).toEqual(heldBefore);
  await eventually("the other guest to go", () => cell.existsOn(1).join() === "host-0");
  expect(cell.runsOn(1)).toEqual([]);
  await cell.store.hostAdmin().setForcedDown("host-0", false);
  await eventually("it to run where it was", () => cell.runsOn(1).join() === "host-0");
});

test("a source that was forced down and cannot be stopped keeps the server, which does not run twice", async () => {
  await start();
  const driver = agents[0]?.driver as FakeDriver;
  driver.power = () => Promise.reject(new Error("the guest does not stop"));
  await cell.store.hostAdmin().setForcedDown("host-0", true);
  await cell.operate(EVACUATION);
  const rested = await eventually(
    "it to be at rest",
    async () => {
      const server = await cell.server(1);
      return server.taskState === null && server.fault !== null && server;
    },
    { withinMs: 60_000 },
  );
  expect(rested).toMatchObject({ status: "ACTIVE", host: "host-0" });
  expect(rested.fault?.message).toContain("host-0 was forced down, but its agent reports that the server runs there");
  expect(cell.runsOn(1)).toEqual(["host-0"]);
});

test("an evacuated host that comes back starts nothing, loses its guest, and its old allocation is released", async () => {
  await start();
  await lose(0);
  await isDown(0);
  const migration = await cell.operate({ ...EVACUATION, fenceWaived: true });
  await eventually("it to run elsewhere", () => cell.runsOn(1).join() === "host-1");
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1" });
  expect(await cell.holds(migration)).toEqual({ "host-0": 1 });
  await startAgent(0);
  await cell.hostsUp(3);
  expect(cell.runsOn(1)).toEqual(["host-1"]);
  await eventually("the old guest to go", () => cell.existsOn(1).join() === "host-1");
  await eventually("the allocation to go", async () => Object.keys(await cell.holds(migration)).length === 0);
});

test("an evacuated host that is forced down is fenced: its old allocation is released, and its guest is destroyed when it comes back", async () => {
  await start();
  await lose(0);
  await isDown(0);
  const migration = await cell.operate({ ...EVACUATION, fenceWaived: true });
  await eventually("it to run elsewhere", () => cell.runsOn(1).join() === "host-1");
  await cell.rest(1);
  expect(await cell.holds(migration)).toEqual({ "host-0": 1 });
  const admin = cell.store.hostAdmin();
  await admin.setForcedDown("host-0", true);
  await eventually("the allocation to go", async () => Object.keys(await cell.holds(migration)).length === 0);
  await startAgent(0);
  await admin.setForcedDown("host-0", false);
  await cell.hostsUp(3);
  await eventually("the old guest to go", () => cell.existsOn(1).join() === "host-1");
  expect([cell.runsOn(1), await cell.holds(serverId(1))]).toEqual([["host-1"], { "host-1": 1 }]);
});

test("an evacuation against a host that comes back: the server stays, and runs once", async () => {
  await start({ 1: { duration_ms: 1_500 * SPEED } });
  await lose(0);
  await isDown(0);
  const migration = await cell.operate({ ...EVACUATION, fenceWaived: true });
  await startAgent(0);
  const rested = await cell.rest(1);
  expect(rested).toMatchObject({ status: "ACTIVE", host: "host-0" });
  expect(rested.fault?.message).toBe("the host that is being evacuated is back");
  await eventually("it to run where it was", () => cell.runsOn(1).join() === "host-0");
  await eventually("the other guest to go", () => cell.existsOn(1).join() === "host-0");
  expect(await cell.holds(migration)).toEqual({});
});

test("a live migration against the loss of its source: it waits, and the server runs there when the host is back", async () => {
  await start({ 0: { hand_off_ms: 3_600_000 } });
  const migration = await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
  await eventually("the copying", async () => (await stageOf(migration)) === "handing-over");
  await lose(0);
  const noted = async () => (await cell.store.migrations({ uuids: [migration], limit: 1 }))[0]?.note;
  await eventually("the wait", async () => (await noted())?.includes("but is silent"));
  expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", host: "host-0", taskState: "migrating" });
  await startAgent(0);
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
  expect(await cell.holds(serverId(1))).toEqual({ "host-0": 1 });
  await eventually("it to run again", () => cell.runsOn(1).join() === "host-0");
  await eventually("the other guest to go", () => cell.existsOn(1).join() === "host-0");
});

test("a live migration against the loss of its destination goes to the alternate", async () => {
  await start({ 1: { outcome: "hang" } });
  const migration = await cell.operate({ server: 1, kind: "live-migrate", hosts: [1, 2] });
  await eventually("the preparing", async () => (await stageOf(migration)) === "preparing");
  await lose(1);
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-2" });
  await eventually("it to run there alone", () => cell.existsOn(1).join() === "host-2" && cell.runsOn(1).length === 1);
});

/** No sweep runs, so conductors learn of tasks only by messages. */
const UNSWEPT = { sweepMs: 3_600_000 };

async function abort(migration: string): Promise<string | undefined> {
  const [outcome] = await cell.store.signal([{ taskId: migration, signal: "abort" }]);
  const [record] = await cell.store.migrations({ uuids: [migration], limit: 1 });
  if (record === undefined) throw new Error("no such migration");
  if (record.operation === null) throw new Error(record.note);
  const task: Task = { id: migration, server: record.server, work: { $case: "operate", value: record.operation } };
  await cell.publish(Task.encode(task).finish(), { [taskSignalHeader]: "abort" });
  return outcome;
}

test("an abort against the conductor that carries out the migration: a message informs the conductor", async () => {
  await start({ 0: { hand_off_ms: 3_600_000 } }, UNSWEPT);
  const migration = await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
  await eventually("the copying", async () => (await stageOf(migration)) === "handing-over");
  expect(await abort(migration)).toBe("signalled");
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
  await eventually("one guest", () => cell.existsOn(1).join() === "host-0" && cell.runsOn(1).length === 1);
});

test("an abort against the take of its task: the conductor that is taking it takes it again", async () => {
  await start({ 0: { hand_off_ms: 3_600_000 } }, UNSWEPT);
  const letTake = first.gate.hold("takeTasks");
  const migration = await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
  await eventually("the take", () => first.gate.held("takeTasks") === 1);
  expect(await abort(migration)).toBe("signalled");
  letTake();
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
});

test("an abort against the end of the copying: it is accepted before the switch is written, and the server stays at the source", async () => {
  await start({}, UNSWEPT);
  const steps = holdSteps();
  const migration = await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
  const letCommit = await steps.until(migration, "handing-over");
  expect(await abort(migration)).toBe("signalled");
  letCommit();
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
  await eventually("one guest", () => cell.existsOn(1).join() === "host-0" && cell.runsOn(1).length === 1);
  expect(await cell.store.migrations({ uuids: [migration], limit: 1 })).toMatchObject([{ status: "cancelled" }]);
});

test("an abort against the start at the destination is refused as too late, and the server runs there", async () => {
  await start({}, UNSWEPT);
  const steps = holdSteps();
  const migration = await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
  const letCommit = await steps.until(migration, "starting");
  expect(await abort(migration)).toBe("too-late");
  letCommit();
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1" });
  await eventually("one guest", () => cell.existsOn(1).join() === "host-1" && cell.runsOn(1).length === 1);
});

test("an abort against a forced completion: the aborted migration stays aborted", async () => {
  await start({ 0: { hand_off_ms: 3_600_000 } });
  const migration = await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
  await eventually("the copying", async () => (await stageOf(migration)) === "handing-over");
  const signals = (["abort", "force"] as const).map((signal) => ({ taskId: migration, signal }));
  expect([await cell.store.signal(signals.slice(0, 1)), await cell.store.signal(signals.slice(1))]).toEqual([
    ["signalled"],
    ["too-late"],
  ]);
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
});

test("a delete against a resize that waits for its confirmation leaves nothing on either host", async () => {
  await start();
  const migration = await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 2 });
  await cell.become(1, "VERIFY_RESIZE");
  await cell.delete(1);
  await cell.become(1, "DELETED");
  expect([cell.existsOn(1), await cell.holds(serverId(1)), await cell.holds(migration)]).toEqual([[], {}, {}]);
});

test("a delete against a live migration that copies leaves nothing on either host", async () => {
  await start({ 0: { hand_off_ms: 3_600_000 } });
  const migration = await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
  await eventually("the copying", async () => (await stageOf(migration)) === "handing-over");
  await cell.delete(1);
  await cell.become(1, "DELETED");
  expect([cell.existsOn(1), await cell.holds(serverId(1)), await cell.holds(migration)]).toEqual([[], {}, {}]);
});

test("a conductor is killed while a resize copies: another one completes it", async () => {
  await start({ 0: { hand_off_ms: 1_500 * SPEED } });
  const migration = await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 2 });
  await eventually("the copying", async () => (await stageOf(migration)) === "handing-over");
  await cell.startConductor(2, { unseenMs: UNSEEN_MS });
  await first.kill();
  expect((await cell.become(1, "VERIFY_RESIZE")).host).toBe("host-1");
  await eventually("it to run there", () => cell.runsOn(1).join() === "host-1");
});

test("a resize that is not confirmed in time is confirmed automatically", async () => {
  await start();
  await cell.startConductor(2, { unseenMs: UNSEEN_MS, confirmAfterMs: 200 * SPEED });
  const migration = await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 2 });
  await eventually("its confirmation", async () => {
    const [record] = await cell.store.migrations({ serverUuid: serverId(1), limit: 1 });
    return record?.status === "confirmed";
  });
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1" });
  expect(await cell.holds(migration)).toEqual({});
});
