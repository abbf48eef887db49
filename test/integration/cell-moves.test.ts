import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { overriding } from "../../runtime/overriding.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import type { FakeScript } from "../../services/compute-agent/fake-script.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { conductorId, serverId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

/** Four hosts of 4 VCPUs, each with its own agent and script, and server 1 on the first. */
async function start(scripts: Readonly<Record<number, FakeScript>> = {}, vcpus = 1): Promise<void> {
  await cell.startConductor(1);
  for (const host of [0, 1, 2, 3]) {
    const fake = scripts[host];
    await cell.startAgent({ id: `agent-${host}`, hosts: [host], vcpus: 4, ...(fake ? { fake } : {}) });
  }
  await cell.hostsUp(4);
  await cell.boot(1, [0], { vcpus });
  await cell.become(1, "ACTIVE");
  await eventually("the guest to run", () => cell.runsOn(1).length === 1);
}

const held = () => cell.holds(serverId(1));
const runs = (host: number) => eventually(`it to run on host-${host}`, () => cell.runsOn(1).join() === `host-${host}`);
const only = (host: number) =>
  eventually(`it to exist on host-${host} alone`, () => cell.existsOn(1).join() === `host-${host}`);

describe("a resize", () => {
  test("waits for its confirmation on the new host, and holds the old allocation until then", async () => {
    await start();
    const migration = await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 3 });
    const resized = await cell.become(1, "VERIFY_RESIZE");
    expect(resized).toMatchObject({ host: "host-1", taskState: null, fault: null });
    expect(resized.spec.flavor?.vcpus).toBe(3);
    expect([await held(), await cell.holds(migration)]).toEqual([{ "host-1": 3 }, { "host-0": 1 }]);
    await runs(1);
    expect(cell.existsOn(1).sort()).toEqual(["host-0", "host-1"]);

    await cell.operate({ server: 1, kind: "confirm" });
    expect((await cell.become(1, "ACTIVE")).host).toBe("host-1");
    expect([await held(), await cell.holds(migration)]).toEqual([{ "host-1": 3 }, {}]);
    await only(1);
    const [record] = await cell.store.migrations({ serverUuid: serverId(1), limit: 10 });
    expect(record).toMatchObject({ kind: "resize", status: "confirmed", sourceHost: "host-0", destHost: "host-1" });
  });

  test("that is reverted is at its source, unchanged", async () => {
    await start();
    const migration = await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 3 });
    await cell.become(1, "VERIFY_RESIZE");
    await cell.operate({ server: 1, kind: "revert" });
    const reverted = await cell.become(1, "ACTIVE");
    expect(reverted).toMatchObject({ host: "host-0", fault: null });
    expect(reverted.spec.flavor?.vcpus).toBe(1);
    expect([await held(), await cell.holds(migration)]).toEqual([{ "host-0": 1 }, {}]);
    await runs(0);
    await only(0);
  });

  test("on the same host needs only the difference to be free", async () => {
    await start({}, 3);
    const migration = await cell.operate({ server: 1, kind: "resize", hosts: [0], vcpus: 4 });
    await cell.become(1, "VERIFY_RESIZE");
    expect([await held(), await cell.holds(migration)]).toEqual([{ "host-0": 4 }, {}]);
    await cell.operate({ server: 1, kind: "revert" });
    await cell.become(1, "ACTIVE");
    expect(await held()).toEqual({ "host-0": 3 });
    const smaller = await cell.operate({ server: 1, kind: "resize", hosts: [0], vcpus: 1 });
    await cell.become(1, "VERIFY_RESIZE");
    expect([await held(), await cell.holds(smaller)]).toEqual([{ "host-0": 1 }, { "host-0": 2 }]);
    await cell.operate({ server: 1, kind: "confirm" });
    await cell.become(1, "ACTIVE");
    expect([await held(), await cell.holds(smaller)]).toEqual([{ "host-0": 1 }, {}]);
    await only(0);
  });

  test("whose first two destinations fail goes to the third", async () => {
    await start({ 1: { outcome: "reschedule", reason: "no disk" }, 2: { start_failures: 100 } });
    const migration = await cell.operate({ server: 1, kind: "resize", hosts: [1, 2, 3], vcpus: 2 });
    expect((await cell.become(1, "VERIFY_RESIZE")).host).toBe("host-3");
    expect([await held(), await cell.holds(migration)]).toEqual([{ "host-3": 2 }, { "host-0": 1 }]);
    await runs(3);
    const attempts = (await cell.store.attempts(serverId(1))).filter((attempt) => attempt.taskId === migration);
    expect(attempts).toMatchObject([
      { host: "host-1", result: "failed", reason: "no disk" },
      { host: "host-2", result: "failed", reason: "the guest's firmware is broken" },
      { host: "host-3", result: "success" },
    ]);
  });

  test("that finds no destination leaves the server running at its source, with the reason", async () => {
    await start({ 1: { outcome: "reschedule", reason: "no disk" }, 0: { hand_off_failures: 1 } });
    const migration = await cell.operate({ server: 1, kind: "resize", hosts: [1, 2], vcpus: 2 });
    const back = await cell.rest(1);
    expect(back).toMatchObject({ status: "ACTIVE", host: "host-0" });
    expect(back.fault?.message).toBe("No valid host: host-1: no disk; host-2: the copy was interrupted");
    expect(back.spec.flavor?.vcpus).toBe(1);
    expect([await held(), await cell.holds(migration)]).toEqual([{ "host-0": 1 }, {}]);
    await runs(0);
    await only(0);
    const [record] = await cell.store.migrations({ serverUuid: serverId(1), limit: 10 });
    expect(record).toMatchObject({ status: "error", ended: true });
  });

  test("of a server that is shut off does not start it", async () => {
    await start();
    await cell.operate({ server: 1, kind: "stop" });
    await cell.become(1, "SHUTOFF");
    await cell.operate({ server: 1, kind: "migrate", hosts: [1] });
    await cell.become(1, "VERIFY_RESIZE");
    await cell.operate({ server: 1, kind: "confirm" });
    expect((await cell.become(1, "SHUTOFF")).host).toBe("host-1");
    expect(cell.runsOn(1)).toEqual([]);
    await cell.operate({ server: 1, kind: "start" });
    await cell.become(1, "ACTIVE");
    await runs(1);
  });
});

describe("a live migration", () => {
  test("leaves nothing at the source", async () => {
    await start();
    const migration = await cell.operate({ server: 1, kind: "live-migrate", hosts: [2] });
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-2" });
    expect([await held(), await cell.holds(migration)]).toEqual([{ "host-2": 1 }, {}]);
    await runs(2);
    await only(2);
  });

  test("that is aborted leaves the server running at its source", async () => {
    await start({ 0: { hand_off_ms: 3_600_000 } });
    const migration = await cell.operate({ server: 1, kind: "live-migrate", hosts: [2] });
    await eventually("the copying", async () => (await cell.store.positions([migration]))[0]?.stage === "handing-over");
    expect(await cell.store.signal([{ taskId: migration, signal: "abort" }])).toEqual(["signalled"]);
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
    await runs(0);
    await only(0);
    const [record] = await cell.store.migrations({ serverUuid: serverId(1), limit: 10 });
    expect(record).toMatchObject({ status: "cancelled", ended: true });
    expect([await held(), await cell.holds(migration)]).toEqual([{ "host-0": 1 }, {}]);
  });

  test("that is forced is completed at once", async () => {
    await start({ 0: { hand_off_ms: 3_600_000 } });
    const migration = await cell.operate({ server: 1, kind: "live-migrate", hosts: [2] });
    await eventually("the copying", async () => (await cell.store.positions([migration]))[0]?.stage === "handing-over");
    await cell.store.signal([{ taskId: migration, signal: "force" }]);
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-2" });
    await runs(2);
  });
});

describe("other operations", () => {
  test("power, pause and reboot leave the server in the requested state", async () => {
    await start();
    for (const [kind, status] of [
      ["pause", "PAUSED"],
      ["unpause", "ACTIVE"],
      ["suspend", "SUSPENDED"],
      ["resume", "ACTIVE"],
      ["suspend", "SUSPENDED"],
      ["hard-reboot", "ACTIVE"],
      ["reboot", "ACTIVE"],
      ["stop", "SHUTOFF"],
      ["hard-reboot", "ACTIVE"],
      ["rescue", "RESCUE"],
      ["unrescue", "ACTIVE"],
      ["stop", "SHUTOFF"],
      ["rescue", "RESCUE"],
      ["unrescue", "ACTIVE"],
    ] as const) {
      await cell.operate({ server: 1, kind });
      expect((await cell.rest(1)).status).toBe(status);
      expect(cell.runsOn(1)).toEqual(status === "ACTIVE" || status === "RESCUE" ? ["host-0"] : []);
      expect(cell.rescuedOn(1)).toEqual(status === "RESCUE" ? ["host-0"] : []);
    }
  });

  test("a failed power operation changes only the fault", async () => {
    await start({ 0: { power_failures: 1 } });
    await cell.operate({ server: 1, kind: "stop" });
    const after = await cell.rest(1);
    expect(after).toMatchObject({ status: "ACTIVE", fault: { message: "the hypervisor refused to stop the guest" } });
    expect(cell.runsOn(1)).toEqual(["host-0"]);
  });

  test("a server that is shelved and offloaded holds nothing, and is unshelved on another host", async () => {
    await start({ 1: { outcome: "reschedule" } });
    await cell.operate({ server: 1, kind: "shelve-offload" });
    expect(await cell.become(1, "SHELVED_OFFLOADED")).toMatchObject({ host: null });
    expect([await held(), cell.existsOn(1)]).toEqual([{}, []]);
    await cell.operate({ server: 1, kind: "unshelve", hosts: [1, 3], vcpus: 2 });
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-3" });
    expect(await held()).toEqual({ "host-3": 2 });
    await runs(3);
  });

  test("an unshelve without a destination leaves the server shelved", async () => {
    await start({ 1: { outcome: "reschedule" } });
    await cell.operate({ server: 1, kind: "shelve-offload" });
    await cell.become(1, "SHELVED_OFFLOADED");
    await cell.operate({ server: 1, kind: "unshelve", hosts: [1] });
    expect(await cell.rest(1)).toMatchObject({ status: "SHELVED_OFFLOADED", host: null });
    expect([await held(), cell.existsOn(1)]).toEqual([{}, []]);
  });

  test("a rebuild makes a new guest on the same host", async () => {
    await start();
    const before = await cell.server(1);
    await cell.operate({ server: 1, kind: "rebuild", hosts: [0] });
    const after = await cell.rest(1);
    expect(after).toMatchObject({ status: "ACTIVE", host: "host-0", fault: null });
    expect(after.attemptId).not.toBe(before.attemptId);
    await runs(0);
    await only(0);
    expect(await held()).toEqual({ "host-0": 1 });
  });
});

describe("a move whose destination listens for the hand-over", () => {
  test.each(["stays", "is restarted", "dials late"])(
    "is finished by another conductor, which asks for the address (its agent %s)",
    async (agent) => {
      const first = await cell.startConductor(1);
      const disk: MemoryDisk = { records: [] };
      const told: string[] = [];
      const noting = (driver: FakeDriver): Driver =>
        overriding<Driver>(driver, {
          handOff: (order, signal) => {
            told.push(order.listensAt);
            return driver.handOff(order, signal);
          },
        });
      await cell.startAgent({ id: "agent-0", hosts: [0], conductors: [1, 2], before: noting });
      const destination = await cell.startAgent({ id: "agent-1", hosts: [1], conductors: [1, 2], disk });
      await cell.hostsUp(2);
      await cell.boot(1, [0]);
      await cell.become(1, "ACTIVE");
      await eventually("the guest to run", () => cell.runsOn(1).length === 1);
      // The hand-over is committed, and the conductor never learns that.
      const isCommitted = Promise.withResolvers<void>();
      first.gate.change("commitStep", () => {
        isCommitted.resolve();
        return new Promise(() => {});
      });
      await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
      await isCommitted.promise;
      if (agent === "is restarted") await destination.agent.close();
      if (agent === "dials late") destination.cutOff();
      await first.kill();
      if (agent === "is restarted") await cell.startAgent({ id: "agent-1", hosts: [1], conductors: [1, 2], disk });
      // It looks for the destination as long as its grace lasts, and without the address the source would refuse the hand-over.
      await cell.startConductor(2, { hostGraceMs: 10_000 });
      const isTaken = async () => (await cell.store.ownedTasks(conductorId(2))).length > 0;
      if (agent === "dials late") await eventually("the move to be taken over", isTaken);
      destination.reconnect();
      await runs(1);
      expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1" });
      expect(told).toEqual([expect.stringMatching(/^fake:..host-1\//)]);
    },
  );

  test("still asks the source when the destination does not answer, and goes to the next one", async () => {
    const first = await cell.startConductor(1);
    const agents = [];
    for (const host of [0, 1, 2])
      agents.push(await cell.startAgent({ id: `agent-${host}`, hosts: [host], conductors: [1, 2] }));
    await cell.hostsUp(3);
    await cell.boot(1, [0]);
    await cell.become(1, "ACTIVE");
    const isCommitted = Promise.withResolvers<void>();
    first.gate.change("commitStep", () => {
      isCommitted.resolve();
      return new Promise(() => {});
    });
    const migration = await cell.operate({ server: 1, kind: "live-migrate", hosts: [1, 2] });
    await isCommitted.promise;
    agents[1]?.cutOff();
    await first.kill();
    await cell.startConductor(2);
    await runs(2);
    const attempts = (await cell.store.attempts(serverId(1))).filter((attempt) => attempt.taskId === migration);
    expect(attempts).toMatchObject([
      { host: "host-1", result: "failed", reason: expect.stringContaining("listens") },
      { host: "host-2" },
    ]);
  });
});

test("people see how far the hand-over of a move has come", async () => {
  await start({ 0: { hand_off_ms: 30_000 } });
  const migration = await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
  const shown = async () => (await cell.store.migrations({ uuids: [migration], limit: 1 }))[0]?.progress ?? null;
  const progress = await eventually("the amounts", shown);
  expect(progress.memory.total).toBeGreaterThan(0);
  expect(progress.memory.processed + progress.memory.remaining).toBe(progress.memory.total);
  await cell.store.signal([{ taskId: migration, signal: "force" }]);
  await runs(1);
});
