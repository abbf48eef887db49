import { afterEach, beforeEach, expect, test } from "vitest";
import type { OperationKind } from "../../core/tasks/operation-kinds.ts";
import { overriding } from "../../runtime/overriding.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { hostName } from "../contract/cell-fixtures.ts";
import { volumeOf } from "../rigs/begin-operation.ts";
import { HOST, openCell, operated, startServer } from "../rigs/cell-of-one-server.ts";
import { eventually } from "../rigs/eventually.ts";
import type { SmallCell } from "../rigs/small-cell.ts";

const VOLUME = volumeOf(1);

let cell: SmallCell;
let disk: MemoryDisk;
beforeEach(async () => {
  cell = await openCell();
  disk = { records: [] };
});
afterEach(() => cell.close());

const start = (options: Parameters<typeof startServer>[1] = {}) => startServer(cell, { disk, ...options });
const done = (kind: OperationKind, hosts: readonly number[] = []) => operated(cell, kind, hosts);
const has = async () => [(await cell.server(1)).spec.volumes, cell.volumesOn(1)];
const ATTACHED = [[VOLUME], [`${hostName(0)} ${VOLUME.volumeId}`]];
const DETACHED = [[], []];

test.each(["ACTIVE", "PAUSED", "SHUTOFF"] as const)(
  "a volume is attached to a server in %s and detached",
  async (status) => {
    await start();
    if (status !== "ACTIVE") await done(status === "PAUSED" ? "pause" : "stop");
    expect((await done("attach-volume")).status).toBe(status);
    expect(await has()).toEqual(ATTACHED);
    expect((await done("attach-volume")).status).toBe(status);
    expect(await has()).toEqual(ATTACHED);
    expect((await done("detach-volume")).status).toBe(status);
    expect(await has()).toEqual(DETACHED);
  },
);

test("a server keeps its volume through stops, rescues and moves, and the volume is detached where it has come to", async () => {
  await start();
  await cell.startAgent({ id: "agent-1", hosts: [1], conductors: [1] });
  await cell.hostsUp(2);
  await done("attach-volume");
  for (const kind of ["stop", "start", "rescue", "unrescue", "hard-reboot"] as const) {
    await done(kind);
    expect(await has(), kind).toEqual(ATTACHED);
  }
  expect((await done("live-migrate", [1])).host).toBe("host-1");
  await eventually("one guest", () => cell.existsOn(1).join() === "host-1");
  expect(await has()).toEqual([[VOLUME], [`${hostName(1)} ${VOLUME.volumeId}`]]);
  await done("detach-volume");
  expect(await has()).toEqual(DETACHED);
});

test("a volume that the host connects but reports as failed is disconnected again", async () => {
  await start({ fake: { attach_failures: 1, detach_failures: 2 } });
  expect(await done("attach-volume")).toMatchObject({
    status: "ACTIVE",
    fault: { message: "the guest has no free slot" },
  });
  expect(await has()).toEqual(DETACHED);
  await done("attach-volume");
  expect(await has()).toEqual(ATTACHED);
});

test("a volume that the host cannot disconnect stays the server's", async () => {
  await start({ fake: { detach_failures: 1 } });
  await done("attach-volume");
  expect(await done("detach-volume")).toMatchObject({ fault: { message: "the guest does not release the volume" } });
  expect(await has()).toEqual(ATTACHED);
  await done("detach-volume");
  expect(await has()).toEqual(DETACHED);
});

test("a host whose driver cannot do it refuses volumes, and servers that have one", async () => {
  const without = (driver: Driver): Driver => overriding<Driver>(driver, { capabilities: new Set(["suspend"]) });
  await start({ before: without });
  const fault = { message: "the host's driver cannot attach volumes" };
  expect(await done("attach-volume")).toMatchObject({ status: "ACTIVE", taskState: null, fault });
  expect(await has()).toEqual(DETACHED);
  await cell.startAgent({ id: "agent-1", hosts: [1], conductors: [1] });
  await cell.hostsUp(2);
  await done("live-migrate", [1]);
  await done("attach-volume");
  expect(await done("live-migrate", [0])).toMatchObject({ status: "ACTIVE", host: "host-1" });
  expect(await has()).toEqual([[VOLUME], [`${hostName(1)} ${VOLUME.volumeId}`]]);
});

test("an agent that dies between connecting a volume and its answer connects it once more after its restart", async () => {
  const agent = await start();
  const attach = agent.driver.attachVolume.bind(agent.driver);
  agent.driver.attachVolume = async (...order) => {
    await attach(...order);
    void agent.agent.close();
    await new Promise(() => {});
  };
  await cell.operate({ server: 1, kind: "attach-volume" });
  await eventually("the volume", () => cell.volumesOn(1).length === 1);
  cell.forget(agent.driver);
  const next = await cell.startAgent({ ...HOST, disk });
  await cell.rest(1);
  expect(await has()).toEqual(ATTACHED);
  // A further process learns from the journal that the guest has the volume.
  await next.agent.close();
  cell.forget(next.driver);
  await cell.startAgent({ ...HOST, disk });
  await eventually("the volume", () => cell.volumesOn(1).length === 1);
});

test("an attachment waits for a host that is silent, and is finished by another conductor", async () => {
  const agent = await start();
  agent.cutOff();
  await cell.operate({ server: 1, kind: "attach-volume" });
  await eventually("the host to be down", async () => (await cell.store.hosts()).every((host) => !host.up));
  expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", taskState: "attaching_volume" });
  agent.reconnect();
  await cell.rest(1);
  expect(await has()).toEqual(ATTACHED);
});

test("a server that is deleted while a volume is attached leaves no guest that has it", async () => {
  await start({ fake: { attach_ms: 2_000 } });
  await cell.operate({ server: 1, kind: "attach-volume" });
  await cell.delete(1);
  await cell.become(1, "DELETED");
  await eventually("the guest to go", () => cell.existsOn(1).length === 0);
  expect(cell.volumesOn(1)).toEqual([]);
});
