import { afterEach, beforeEach, expect, it } from "vitest";
import { MemoryBroker } from "../../adapters/memory/memory-bus.ts";
import { cellPermissionsOfApi, cellStreams, conductorPermissions } from "../../adapters/nats/streams.ts";
import { dropDatabase } from "../../adapters/postgres/databases.ts";
import { systemClock } from "../../runtime/clock.ts";
import { createLogger } from "../../runtime/logger.ts";
import { FAKE_METADATA_KEY } from "../../services/compute-agent/fake-script.ts";
import { generateHosts } from "../../services/compute-agent/host-config.ts";
import { freshDatabase, type TestDatabase } from "../../test/databases.ts";
import { eventually } from "../../test/eventually.ts";
import { preciseNow } from "../replay/target.ts";
import { CellThread } from "./cell-thread.ts";
import { startCloud } from "./embedded-cloud.ts";

const CELL = "c1";
let database: TestDatabase;
let broker: MemoryBroker;
let thread: CellThread;
let failures: unknown[];

beforeEach(async () => {
  failures = [];
  database = await freshDatabase("cell");
  broker = new MemoryBroker(systemClock);
  await broker.connect(cellPermissionsOfApi(CELL)).ensureStreams(cellStreams(CELL));
  thread = new CellThread({ logLevel: "silent", observer: null, fail: (error) => failures.push(error) });
});
afterEach(async () => {
  await thread.close();
  broker.close();
  // Throws when a connection was left open.
  await database.drop();
});

function open(journal: string | null) {
  const plan = { name: CELL, databaseUrl: database.url, hosts: generateHosts("h", 3), conductors: 2 };
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
  await expect(services.start()).rejects.toThrow(/\/dev\/null/);
  await services.close();
});

it("takes no calls once it is closed, and does not call that a failure", async () => {
  const services = open(null);
  await services.start();
  await services.close();
  await thread.close();
  await expect(services.runningGuests()).rejects.toThrow("was closed");
  await services.close();
  expect(failures).toEqual([]);
});

it("tells a whole cloud what its cells commit, what runs in them, and when an agent cannot go on", async () => {
  const api = await freshDatabase("api");
  const observed: string[] = [];
  const cloud = await startCloud({
    ...{ databaseUrl: api.url, dataDir: null, schedulers: 1, conductors: 1, threaded: true },
    listen: { host: "127.0.0.1", port: 0 },
    cells: [{ name: "c", hosts: generateHosts("h", 2) }],
    logger: createLogger({ name: "test", level: "silent" }),
    observer: {
      claimed: () => observed.push("claimed"),
      attemptFailed: () => observed.push("attemptFailed"),
      active: (_uuid, atMs) => observed.push(`active ${Math.abs(preciseNow() - atMs) < 60_000}`),
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
        ...{ name: "one", flavorRef: "s", imageRef: "", networks: "none" },
        metadata: { [FAKE_METADATA_KEY]: JSON.stringify(script) },
      },
    });
  try {
    await post("/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 0 } });
    expect((await create({ outcome: "reschedule", first: 1 })).status).toBe(202);
    await eventually("the server", () => observed.length === 4);
    // The scheduler's claim, then the alternate's.
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
}, 60_000);
