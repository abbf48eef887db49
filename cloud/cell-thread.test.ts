import type { Worker } from "node:worker_threads";
import { afterEach, beforeEach, expect, it } from "vitest";
import { MemoryBroker } from "../adapters/memory/bus/memory-broker.ts";
import { cellPermissionsOfApi, cellStreams, conductorPermissions } from "../adapters/nats/streams.ts";
import { dropDatabase } from "../adapters/postgres/client/databases.ts";
import { preciseNow, systemClock } from "../runtime/clock.ts";
import { createLogger } from "../runtime/logger.ts";
import { FAKE_METADATA_KEY } from "../services/compute-agent/fake-script.ts";
import { generateHosts } from "../services/compute-agent/host-config.ts";
import { freshDatabase, type TestDatabase } from "../test/rigs/databases.ts";
import { eventually } from "../test/rigs/eventually.ts";
import { CellThread } from "./cell-thread.ts";
import { startCloud } from "./embedded-cloud.ts";

const CELL = "c1";
let database: TestDatabase;
let broker: MemoryBroker;
let thread: CellThread;
let worker: Worker;
let failures: unknown[];

beforeEach(async () => {
  failures = [];
  database = await freshDatabase("cell");
  broker = new MemoryBroker(systemClock);
  await broker.connect(cellPermissionsOfApi(CELL)).ensureStreams(cellStreams(CELL));
  process.once("worker", (made) => {
    worker = made;
  });
  thread = new CellThread({ logLevel: "silent", observer: null, fail: (error) => failures.push(error) });
});
afterEach(async () => {
  await thread.close();
  broker.close();
  // Throws when a connection was left open.
  await database.drop();
});

function open(journal: string | null) {
  const plan = { name: CELL, databaseUrl: database.url, hosts: generateHosts("h", 3), conductors: 2, breakable: false };
  return thread.open(plan, journal, () => broker.connect(conductorPermissions(CELL)));
}

it("carries a cell's services until they are closed", async () => {
  const services = open(null);
  expect(services.ready).toBe(false);
  await services.start();
  await eventually("the hosts in the ledger", () => services.ready);
  expect([...(await services.runningGuests()).entries()]).toEqual([
    ["h-1", []],
    ["h-2", []],
    ["h-3", []],
  ]);
  await services.close();
  expect(failures).toEqual([]);
});

it("says why a cell cannot start", async () => {
  const services = open("/dev/null/no.journal");
  // The code distinguishes a user's mistake from a fault of this program.
  await expect(services.start()).rejects.toMatchObject({
    message: expect.stringContaining("/dev/null"),
    code: "EEXIST",
  });
  await services.close();
});

it("accepts no calls once it is closed, and does not report that as a failure", async () => {
  const services = open(null);
  await services.start();
  await services.close();
  await thread.close();
  await expect(services.runningGuests()).rejects.toThrow("was closed");
  await services.close();
  expect(failures).toEqual([]);
});

it("rejects waiting calls when it is closed", async () => {
  const services = open(null);
  const waiting = expect(services.runningGuests()).rejects.toThrow("was closed");
  await thread.close();
  await waiting;
  expect(failures).toEqual([]);
});

it("reports once that a thread died, rejects waiting calls, and can then be closed without further work", async () => {
  const services = open(null);
  await services.start();
  const waiting = expect(services.runningGuests()).rejects.toThrow("has ended");
  await worker.terminate();
  await waiting;
  await eventually("the word of it", () => failures.length > 0);
  expect(() => services.ready).toThrow("has ended");
  await services.close();
  await thread.close();
  expect(failures).toHaveLength(1);
});

it("reports the commits and guests of the cells of a whole cloud, and the failure of an agent", async () => {
  const api = await freshDatabase("api");
  const observed: string[] = [];
  let began = Number.POSITIVE_INFINITY;
  const cloud = await startCloud({
    ...{ databaseUrl: api.url, dataDir: null, schedulers: 1, conductors: 1, underLoad: true },
    listen: { host: "127.0.0.1", port: 0 },
    cells: [{ name: "c", hosts: generateHosts("h", 2) }],
    logger: createLogger({ name: "test", level: "silent" }),
    observer: {
      claimed: () => observed.push("claimed"),
      attemptFailed: () => observed.push("attemptFailed"),
      active: (_uuid, atMs) => observed.push(`active ${began < atMs && atMs <= preciseNow()}`),
      failed: (_uuid, reason) => observed.push(`failed: ${reason}`),
    },
    fail: (error) => failures.push(error),
  });
  const post = (path: string, body: unknown) =>
    fetch(`${cloud.apiUrl}/v2.1${path}`, {
      ...{ method: "POST", headers: { "content-type": "application/json" } },
      body: JSON.stringify(body),
    });
  const create = (script: unknown) =>
    post("/servers", {
      server: {
        ...{ name: "one", flavorRef: "s", imageRef: "" },
        metadata: { [FAKE_METADATA_KEY]: JSON.stringify(script) },
      },
    });
  try {
    await post("/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 0 } });
    began = preciseNow();
    expect((await create({ outcome: "reschedule", first: 1 })).status).toBe(202);
    await eventually("the server", () => observed.length === 4);
    // The first claim is the scheduler's, the second is the alternate's.
    expect(observed).toEqual(["claimed", "claimed", "attemptFailed", "active true"]);
    const guests = [...(await cloud.cells[0]!.runningGuests()).values()];
    expect(guests.map((each) => each.length).toSorted()).toEqual([0, 1]);
    expect(failures).toEqual([]);
    expect((await create({ outcome: "crash" })).status).toBe(202);
    await eventually("the end of the agent", () => failures.length > 0);
    expect(String(failures[0])).toContain("told to crash its agent");
  } finally {
    await cloud.close();
    await dropDatabase(api.url, `${new URL(api.url).pathname.slice(1)}_cell_c`);
    await api.drop();
  }
});
