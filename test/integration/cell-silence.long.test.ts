import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { consumerUuid } from "../../core/ledger/ids.ts";
import type { FakeScript } from "../../services/compute-agent/fake-script.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import type { ConductorSettings } from "../../services/conductor/settings.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { type AgentProcess, SmallCell } from "../rigs/small-cell.ts";

/** The product's own waits, of a second and more, dominate these tests. */
const SPEED = 8;

let cell: SmallCell;
let agents: AgentProcess[];
let disks: MemoryDisk[];
beforeEach(async () => {
  cell = await new SmallCell({ speed: SPEED }).open();
  agents = [];
  disks = [];
});
afterEach(() => cell.close());

/** Three hosts of 4 VCPUs, each with its own agent, and server 1 on the first. A host is down soon after its agent falls silent. */
async function start(scripts: Readonly<Record<number, FakeScript>> = {}, settings: Partial<ConductorSettings> = {}) {
  await cell.startConductor(1, { unseenMs: 500 * SPEED, ...settings });
  for (const host of [0, 1, 2]) {
    disks[host] = { records: [] };
    await startAgent(host, scripts[host]);
  }
  await cell.hostsUp(3);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await runs(0);
}

async function startAgent(host: number, fake?: FakeScript): Promise<void> {
  const disk = disks[host];
  const options = { id: `agent-${host}`, hosts: [host], vcpus: 4, ...(disk && { disk }), ...(fake && { fake }) };
  agents[host] = await cell.startAgent(options);
}

const agentOf = (host: number): AgentProcess => {
  const agent = agents[host];
  if (agent === undefined) throw new Error(`host ${host} has no agent`);
  return agent;
};

/** The host's agent dies when its driver gets this order, before or after carrying it out. Its answer is never received. */
function diesAt(host: number, what: "start" | "destroy", when: "before" | "after"): void {
  const { agent, driver } = agentOf(host);
  const really = driver[what].bind(driver);
  driver[what] = async (guest, signal) => {
    if (when === "after") await really(guest, signal);
    void agent.close();
    await new Promise(() => {});
  };
}

/** The guest vanishes from the host's hypervisor without its agent's knowledge. */
async function vanish(host: number, attemptId: string | null): Promise<void> {
  const guest = { host: `host-${host}`, serverUuid: serverId(1), attemptId: attemptId ?? "" };
  await agentOf(host).driver.destroy(guest, new AbortController().signal);
}

/** The host's agent is back with its disk, or with another `disk`, as after a reinstallation. */
async function returns(host: number, disk = disks[host]): Promise<void> {
  cell.forget(agentOf(host).driver);
  disks[host] = disk ?? { records: [] };
  await startAgent(host);
}

const runs = (host: number) => eventually(`it to run on host-${host}`, () => cell.runsOn(1).join() === `host-${host}`);
const only = (host: number) =>
  eventually(`it to exist on host-${host} alone`, () => cell.existsOn(1).join() === `host-${host}`);
const migration = async () => {
  const [found] = await cell.store.migrations({ serverUuid: serverId(1), limit: 1 });
  if (found === undefined) throw new Error("there is no migration");
  return found;
};
const noted = (text: string) =>
  eventually(`a note of "${text}"`, async () => (await migration()).note.includes(text), { withinMs: 20_000 });
const fence = (host: number) => cell.store.hostAdmin().setForcedDown(`host-${host}`, true);
const usedOn = async (host: number): Promise<number> => {
  const { providers } = await cell.ledger.dump();
  const provider = providers.find(({ name }) => name === `host-${host}`);
  return [...(provider?.inventories.values() ?? [])][0]?.used ?? 0;
};

describe("a revert whose destination dies right after it destroyed the guest", () => {
  const interrupted = async () => {
    await start();
    await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 2 });
    await cell.become(1, "VERIFY_RESIZE");
    diesAt(1, "destroy", "after");
    await cell.operate({ server: 1, kind: "revert" });
    await noted("host-1 was ordered to destroy its guest of the server, but is silent");
    expect(await cell.server(1)).toMatchObject({ status: "VERIFY_RESIZE", taskState: "resize_reverting" });
    expect(cell.existsOn(1)).toEqual(["host-0"]);
  };

  test("does not end there: it waits, shows so, and continues when the host is back", async () => {
    await interrupted();
    await returns(1);
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-0", taskState: null });
    await runs(0);
    await only(0);
    expect(await migration()).toMatchObject({ status: "reverted", ended: true, note: "" });
  });

  test("continues when an operator has forced the host down", async () => {
    await interrupted();
    await fence(1);
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-0", taskState: null });
    await runs(0);
  });
});

test("a revert whose destination cannot destroy its guest keeps trying, and says so", async () => {
  await start({ 1: { destroy_failures: 7 } });
  await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 2 });
  await cell.become(1, "VERIFY_RESIZE");
  await cell.operate({ server: 1, kind: "revert" });
  await noted("host-1 was ordered to destroy its guest of the server, but cannot: the device is busy");
  expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-0" });
  await runs(0);
  await only(0);
});

describe("a revert whose source", () => {
  test("has lost the old guest is refused with the reason, and the new guest is kept", async () => {
    await start();
    const { attemptId } = await cell.server(1);
    await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 2 });
    await cell.become(1, "VERIFY_RESIZE");
    await runs(1);
    await vanish(0, attemptId);
    await cell.operate({ server: 1, kind: "revert" });
    await noted("Not reverted: there is no such guest");
    expect(await cell.rest(1)).toMatchObject({ status: "VERIFY_RESIZE", host: "host-1" });
    expect(cell.existsOn(1)).toEqual(["host-1"]);
    expect(await migration()).toMatchObject({ status: "finished", ended: false });
    await cell.operate({ server: 1, kind: "confirm" });
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-1" });
    await runs(1);
  });

  test("is away is refused, and may be requested again", async () => {
    await start();
    await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 2 });
    await cell.become(1, "VERIFY_RESIZE");
    await runs(1);
    await agentOf(0).agent.close();
    await cell.operate({ server: 1, kind: "revert" });
    await noted("Not reverted: host-0 is not connected");
    expect(cell.existsOn(1).sort()).toEqual(["host-0", "host-1"]);
    await returns(0);
    await cell.hostsUp(3);
    await cell.rest(1);
    await cell.operate({ server: 1, kind: "revert" });
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-0" });
    await only(0);
  });
});

describe("a confirmation", () => {
  test("of a server whose new guest is missing is refused with the reason, and the old guest is kept", async () => {
    await start();
    await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 2 });
    await cell.become(1, "VERIFY_RESIZE");
    await runs(1);
    const { attemptId } = await cell.server(1);
    await vanish(1, attemptId);
    await cell.operate({ server: 1, kind: "confirm" });
    await noted("Not confirmed: there is no such guest");
    expect(await cell.rest(1)).toMatchObject({ status: "VERIFY_RESIZE", host: "host-1" });
    expect(cell.existsOn(1)).toEqual(["host-0"]);
    expect(await usedOn(0)).toBe(1);
    await cell.operate({ server: 1, kind: "revert" });
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-0" });
    await runs(0);
  });

  test("that no user asked for is refused in the same way", async () => {
    await start({}, { confirmAfterMs: 1_000 * SPEED });
    await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 2 });
    const { attemptId } = await cell.become(1, "VERIFY_RESIZE");
    await runs(1);
    await vanish(1, attemptId);
    await noted("Not confirmed: there is no such guest");
    expect(cell.existsOn(1)).toEqual(["host-0"]);
  });

  test("whose destination is away is refused, and may be requested again", async () => {
    await start();
    await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 2 });
    await cell.become(1, "VERIFY_RESIZE");
    await runs(1);
    await agentOf(1).agent.close();
    await cell.operate({ server: 1, kind: "confirm" });
    await noted("Not confirmed: host-1 is not connected");
    expect(cell.existsOn(1).sort()).toEqual(["host-0", "host-1"]);
    await returns(1);
    await cell.hostsUp(3);
    await cell.rest(1);
    await cell.operate({ server: 1, kind: "confirm" });
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-1" });
    await only(1);
  });
});

describe.each(["live-migrate", "rebuild"] as const)("a %s whose destination dies before its first answer", (kind) => {
  const to = kind === "rebuild" ? 0 : 1;
  const interrupted = async (when: "before" | "after") => {
    await start();
    diesAt(to, "start", when);
    await cell.operate({ server: 1, kind, hosts: [to], vcpus: 1 });
    await noted(`host-${to} was ordered to start the server, but is silent`);
    expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", host: `host-${to}` });
    expect((await cell.server(1)).taskState).not.toBe(null);
    expect(cell.existsOn(1)).toContain("host-0");
    if (kind === "live-migrate") expect(await usedOn(0)).toBe(1);
  };

  test("keeps the source's guest while it waits, and ends when the destination answers", async () => {
    await interrupted("after");
    await returns(to);
    await eventually("the end", async () => (await cell.server(1)).taskState === null, { withinMs: 20_000 });
    expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", host: `host-${to}` });
    await runs(to);
    await only(to);
    expect(await migration()).toMatchObject({ status: "completed", note: "" });
  });

  test("returns to the source when the destination never got the guest, or an operator has forced it down", async () => {
    await interrupted("before");
    if (kind === "live-migrate") await returns(to, { records: [] });
    else await fence(to);
    await eventually("the end", async () => (await cell.server(1)).taskState === null, { withinMs: 20_000 });
    expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
    expect(await migration()).toMatchObject({ status: "error", note: "" });
    if (kind === "rebuild") expect(cell.existsOn(1)).toContain("host-0");
    else await runs(0);
  });
});

describe("an evacuation whose destination dies before its first answer", () => {
  const isUp = (host: number) =>
    eventually(`host-${host} to be up`, async () =>
      (await cell.store.hosts()).some(({ name, up }) => name === `host-${host}` && up),
    );
  /** The source is repaired meanwhile, and its fence is revoked. */
  const interrupted = async (when: "before" | "after") => {
    await start();
    await agentOf(0).agent.close();
    await fence(0);
    diesAt(1, "start", when);
    await cell.operate({ server: 1, kind: "evacuate", hosts: [1] });
    await noted("host-1 was ordered to start the server, but is silent");
    await returns(0);
    await cell.store.hostAdmin().setForcedDown("host-0", false);
    await isUp(0);
    expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", host: "host-1", taskState: "rebuild_spawning" });
    expect(cell.existsOn(1)).toContain("host-0");
    expect(cell.runsOn(1)).not.toContain("host-0");
    expect(await usedOn(0)).toBe(1);
  };
  const rests = async (host: number) => {
    await eventually("the end", async () => (await cell.server(1)).taskState === null, { withinMs: 20_000 });
    expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", host: `host-${host}` });
    await runs(host);
  };

  test.each(["before", "after"] as const)(
    "keeps the old guest until the new host reports that it runs (%s)",
    async (when) => {
      await interrupted(when);
      await returns(1);
      await rests(1);
      await only(1);
      expect(await migration()).toMatchObject({ status: "done", note: "" });
      await eventually("the old room to be free", async () => (await usedOn(0)) === 0);
    },
  );

  test("returns to its source when the new host has lost the guest", async () => {
    await interrupted("before");
    await returns(1, { records: [] });
    await rests(0);
    await only(0);
    expect(await migration()).toMatchObject({ status: "error", note: "" });
  });

  test("returns to its source when an operator has forced the new host down", async () => {
    await interrupted("before");
    await fence(1);
    await rests(0);
    expect(await usedOn(0)).toBe(1);
  });
});

describe("the allocation of a guest that could not be destroyed is kept until the guest is gone", () => {
  test("after a delete whose driver is stuck", async () => {
    await start({ 0: { destroy_failures: 8 } });
    await cell.delete(1);
    await cell.become(1, "DELETED");
    expect(cell.existsOn(1)).toEqual(["host-0"]);
    expect(await usedOn(0)).toBe(1);
    expect(await cell.ledger.allocationsOf(consumerUuid(serverId(1)))).toEqual([]);
    await eventually("the guest to be gone", () => cell.existsOn(1).length === 0, { withinMs: 30_000 });
    await eventually("its room to be free", async () => (await usedOn(0)) === 0, { withinMs: 30_000 });
  });

  test("after a delete whose host is away", async () => {
    await start();
    await agentOf(0).agent.close();
    await cell.delete(1);
    await cell.become(1, "DELETED");
    expect(await usedOn(0)).toBe(1);
    await returns(0);
    await eventually("its room to be free", async () => (await usedOn(0)) === 0, { withinMs: 30_000 });
    expect(cell.existsOn(1)).toEqual([]);
  });

  test("after a live migration whose source is stuck", async () => {
    await start({ 0: { destroy_failures: 8 } });
    await cell.operate({ server: 1, kind: "live-migrate", hosts: [1], vcpus: 1 });
    await runs(1);
    await eventually("the end", async () => (await cell.server(1)).taskState === null, { withinMs: 20_000 });
    expect(cell.existsOn(1).sort()).toEqual(["host-0", "host-1"]);
    expect([await usedOn(0), await usedOn(1)]).toEqual([1, 1]);
    await only(1);
    await eventually("its room to be free", async () => (await usedOn(0)) === 0, { withinMs: 30_000 });
  });
});
