import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { taskSignalHeader } from "../../adapters/nats/streams.ts";
import { Task } from "../../proto/gen/berth/cell.ts";
import { FakeMemory } from "../../services/compute-agent/fake-memory.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { type AgentProcess, type ConductorProcess, SmallCell } from "../rigs/small-cell.ts";

/** The product's own waits, of a second and more, dominate these tests. */
const SPEED = 8;
const WAITS = "host-0 was ordered to hand the server over to host-1, but is silent";

let cell: SmallCell;
let memory: FakeMemory;
let agents: AgentProcess[];
let conductor: ConductorProcess;
let disks: MemoryDisk[];
beforeEach(async () => {
  cell = await new SmallCell({ speed: SPEED }).open();
  memory = new FakeMemory();
  agents = [];
  disks = [0, 1, 2].map(() => ({ records: [] }));
});
afterEach(() => cell.close());

async function startConductor(index: number): Promise<void> {
  conductor = await cell.startConductor(index, { unseenMs: 500 * SPEED });
}

async function startAgent(host: number): Promise<void> {
  const [disk, before] = [disks[host], memory.over.bind(memory)];
  const agent = { id: `agent-${host}`, hosts: [host], conductors: [1, 2] };
  agents[host] = await cell.startAgent({ ...agent, before, ...(disk && { disk }) });
}

const agentOf = (host: number): AgentProcess => {
  const agent = agents[host];
  if (agent === undefined) throw new Error(`host ${host} has no agent`);
  return agent;
};

/** The agent of the source is cut off when its driver is told to hand over, before the driver has done anything or after it has handed everything over. */
function fallsSilent(when: "before" | "after"): void {
  const { driver } = agentOf(0);
  const really = driver.handOff.bind(driver);
  driver.handOff = async (...order) => {
    driver.handOff = really;
    if (when === "after") await really(...order);
    agentOf(0).cutOff();
    if (when === "before") await new Promise(() => {});
  };
}

/** The source's agent is back, and its guests have gone on meanwhile, with its disk, or with another one, as after a reinstallation. */
async function returns(disk = disks[0]): Promise<void> {
  const { agent, driver } = agentOf(0);
  await agent.close();
  cell.forget(driver);
  disks[0] = disk ?? { records: [] };
  await startAgent(0);
}

const migration = async () => {
  const [found] = await cell.store.migrations({ serverUuid: serverId(1), limit: 1 });
  if (found === undefined) throw new Error("there is no migration");
  return found;
};
const fence = () => cell.store.hostAdmin().setForcedDown("host-0", true);
const runs = (host: number) => eventually(`it to run on host-${host}`, () => cell.runsOn(1).join() === `host-${host}`);
const only = (host: number) =>
  eventually(`it to exist on host-${host} alone`, () => cell.existsOn(1).join() === `host-${host}`);
const ended = () =>
  eventually("the end", async () => (await cell.server(1)).taskState === null && cell.server(1), { withinMs: 20_000 });

/** A live migration of server 1 from host-0 to host-1 whose source falls silent. */
async function interrupted(when: "before" | "after"): Promise<void> {
  await startConductor(1);
  for (const host of [0, 1]) await startAgent(host);
  await cell.hostsUp(agents.length);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await runs(0);
  fallsSilent(when);
  await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
  await eventually("the wait", async () => (await migration()).note.includes(WAITS), { withinMs: 20_000 });
  expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", host: "host-0", taskState: "migrating" });
  expect(cell.existsOn(1).sort()).toEqual(["host-0", "host-1"]);
}

describe("a live migration whose source falls silent when it has handed over", () => {
  test("keeps the destination's guest, and goes on when the source is back", async () => {
    await interrupted("after");
    agentOf(0).reconnect();
    expect(await ended()).toMatchObject({ status: "ACTIVE", host: "host-1" });
    await runs(1);
    await only(1);
    expect(await migration()).toMatchObject({ status: "completed", note: "" });
  });

  test("goes on without the source when an operator has forced it down", async () => {
    await interrupted("after");
    await fence();
    expect(await ended()).toMatchObject({ status: "ACTIVE", host: "host-1" });
    await runs(1);
    expect(await migration()).toMatchObject({ status: "completed", note: "" });
  });
});

describe("a live migration whose destination has received everything and refuses to start, while its source is silent", () => {
  /** The destination's guest cannot start for another reason than that it lacks something. Returns what makes it able to. */
  function refusesToStart(): () => void {
    const { driver } = agentOf(1);
    const really = driver.start.bind(driver);
    driver.start = () => Promise.reject(new Error("the guest's firmware is broken"));
    return () => {
      driver.start = really;
    };
  }
  const told = () =>
    eventually("the wait", async () => (await migration()).note.includes("firmware is broken"), { withinMs: 20_000 });

  test("is kept when an operator has forced the source down, and starts as soon as it can", async () => {
    await interrupted("after");
    const repair = refusesToStart();
    await fence();
    await told();
    expect(await cell.server(1)).toMatchObject({ status: "ERROR", host: "host-1" });
    expect(cell.existsOn(1)).toContain("host-1");
    repair();
    expect(await ended()).toMatchObject({ status: "ACTIVE", host: "host-1" });
    await runs(1);
    expect(await migration()).toMatchObject({ status: "completed", note: "" });
  });

  test("is kept by the next conductor, too, and left when the source is back with its guest", async () => {
    await interrupted("after");
    refusesToStart();
    await fence();
    await told();
    await conductor.kill();
    const before = (await cell.server(1)).revision;
    await startConductor(2);
    await eventually("the note of the next conductor", async () => (await cell.server(1)).revision > before, {
      withinMs: 20_000,
    });
    expect(cell.existsOn(1)).toContain("host-1");
    await cell.store.hostAdmin().setForcedDown("host-0", false);
    agentOf(0).reconnect();
    expect(await ended()).toMatchObject({ status: "ACTIVE", host: "host-0" });
    await runs(0);
    await only(0);
  });
});

describe("an operator whose server cannot start at the destination of its move, while the source is silent", () => {
  async function stuck(): Promise<void> {
    await interrupted("after");
    agentOf(1).driver.start = () => Promise.reject(new Error("the guest's firmware is broken"));
    await fence();
    await eventually("the wait", async () => (await migration()).note.includes("firmware is broken"), {
      withinMs: 20_000,
    });
    // What the note says about the ways out is what the following tests do.
    expect((await migration()).note).toMatch(/stop its agent, fence host-1 and force it down.* can be evacuated after/);
  }

  test("can delete the server", async () => {
    await stuck();
    await cell.delete(1);
    await cell.become(1, "DELETED");
    expect(cell.existsOn(1)).not.toContain("host-1");
  });

  test("can give the destination up by forcing its host down, and evacuate the server then", async () => {
    await startAgent(2);
    await stuck();
    await agentOf(1).agent.close();
    await cell.store.hostAdmin().setForcedDown("host-1", true);
    expect(await ended()).toMatchObject({ status: "ACTIVE", host: "host-0" });
    await cell.operate({ server: 1, kind: "evacuate", hosts: [2] });
    await eventually("it to run on host-2", () => cell.runsOn(1).includes("host-2"), { withinMs: 20_000 });
    expect(await ended()).toMatchObject({ status: "ACTIVE", host: "host-2" });
  });
});

describe("a live migration whose source falls silent before it has handed over", () => {
  test("goes on when the source is back with its guest", async () => {
    await interrupted("before");
    await returns();
    expect(await ended()).toMatchObject({ status: "ACTIVE", host: "host-1" });
    await runs(1);
    await only(1);
  });

  test("leaves the server at the source when an operator has forced it down, because the destination says that it has not received everything", async () => {
    await interrupted("before");
    await fence();
    const server = await ended();
    expect(server).toMatchObject({ status: "ACTIVE", host: "host-0" });
    expect(server.fault?.message).toContain("the memory of the guest has not arrived");
    await only(0);
    expect(await migration()).toMatchObject({ status: "error", note: "" });
  });
});

/** A user aborts the migration, which then waits for the source. */
async function abort(): Promise<void> {
  const { uuid, server, operation } = await migration();
  expect(await cell.store.signal([{ taskId: uuid, signal: "abort" }])).toEqual(["signalled"]);
  if (operation === null) throw new Error("the migration cannot be read");
  const task: Task = { id: uuid, server: server ?? undefined, work: { $case: "operate", value: operation } };
  await cell.publish(Task.encode(task).finish(), { [taskSignalHeader]: "abort" });
  await eventually("the wait", async () => (await migration()).note.includes("before the move was aborted, but"), {
    withinMs: 20_000,
  });
  expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", host: "host-0", taskState: "migrating" });
  expect(cell.existsOn(1).sort()).toEqual(["host-0", "host-1"]);
}

describe("a live migration that is aborted while its source is silent", () => {
  test.each(["before", "after"] as const)(
    "keeps both guests, and goes back when the source, which fell silent %s it had handed over, has its guest",
    async (when) => {
      await interrupted(when);
      await abort();
      if (when === "after") agentOf(0).reconnect();
      else await returns();
      expect(await ended()).toMatchObject({ status: "ACTIVE", host: "host-0" });
      await runs(0);
      await only(0);
      expect(await migration()).toMatchObject({ status: "cancelled", note: "" });
    },
  );

  test("goes on at the destination, which has received everything, when an operator has forced the source down", async () => {
    await interrupted("after");
    await abort();
    await fence();
    expect(await ended()).toMatchObject({ status: "ACTIVE", host: "host-1" });
    await runs(1);
    expect(await migration()).toMatchObject({ status: "completed", note: "" });
  });

  test("leaves the server at the source when an operator has forced it down, because the destination says that it has not received everything", async () => {
    await interrupted("before");
    await abort();
    await fence();
    expect(await ended()).toMatchObject({ status: "ACTIVE", host: "host-0" });
    await only(0);
    expect(await migration()).toMatchObject({ status: "cancelled", note: "" });
  });

  test("goes on at the destination, which has received everything, when the source is back without its guest", async () => {
    await interrupted("after");
    await abort();
    await returns({ records: [] });
    expect(await ended()).toMatchObject({ status: "ACTIVE", host: "host-1" });
    await runs(1);
    await only(1);
  });
});

describe("a live migration whose source is back without its guest, as after a reinstallation", () => {
  test("goes on at the destination, which has received everything", async () => {
    await interrupted("after");
    await returns({ records: [] });
    expect(await ended()).toMatchObject({ status: "ACTIVE", host: "host-1" });
    await runs(1);
    await only(1);
  });

  test("ends in ERROR if the destination lacks something, keeps the destination's guest, and says where it is", async () => {
    await interrupted("before");
    await returns({ records: [] });
    const server = await ended();
    expect(server.status).toBe("ERROR");
    expect(server.fault?.message).toMatch(/^host-0 no longer has the guest .* the one on host-1 .* is kept/);
    expect(server.fault?.message).toContain("the memory of the guest has not arrived");
    expect(cell.existsOn(1)).toEqual(["host-1"]);
    expect(await migration()).toMatchObject({ status: "error", ended: false });
    await cell.delete(1);
    await cell.become(1, "DELETED");
    expect(cell.existsOn(1)).toEqual([]);
  });
});
