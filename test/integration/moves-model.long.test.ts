import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { PostgresHostAdminStore } from "../../adapters/postgres/cell/postgres-host-admin-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { seededRandom } from "../../core/scheduling/seeded-random.ts";
import { OPERATION_KINDS } from "../../core/tasks/operation-kinds.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { emptyCellTables } from "../rigs/empty-cell.ts";
import { HOST_COUNT, OperationWorldModel } from "../rigs/operation-world.ts";
import type { WorldBody } from "../rigs/operation-world-body.ts";
import fc from "../rigs/property.ts";
import { readCellFacts } from "../rigs/read-cell-facts.ts";

const MEMORY_RUNS = Number(process.env.BERTH_TEST_RUNS ?? 2_000);
const POSTGRES_RUNS = Number(process.env.BERTH_TEST_RUNS ?? 10);
const SERVERS = 3;

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "moves model test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

function memoryBody(): WorldBody {
  const clock = new ManualClock(1_000_000);
  const ledger = new MemoryLedger();
  const store = new MemoryCellStore({ clock, ledger });
  return {
    store,
    ledger,
    admin: store.hostAdmin(),
    pass: async () => clock.advance(10_000),
    facts: async () => ({ ledger: await ledger.dump(), ...store.facts() }),
  };
}

function postgresBody(): WorldBody {
  return {
    store: new PostgresCellStore(pool),
    ledger: new PostgresLedger(pool),
    admin: new PostgresHostAdminStore(pool),
    pass: async () => void (await pool.query("update agents set seen_at = now() - interval '10 seconds'")),
    facts: async () => {
      const { cell: _, runningGuests: __, ...facts } = await readCellFacts("c", database.url);
      return facts;
    },
  };
}

const anything = fc.record({
  seed: fc.integer(),
  /** The number of orders to hosts that fail, of 100. */
  failures: fc.constantFrom(0, 10, 40),
  calm: fc.constantFrom(2, 8, 20),
});
/** In this world, a server is unshelved to a host that still has its old guest, and moves away again before the host is compared. */
const backAndAwayAgain = { seed: 20010621, failures: 10, calm: 2 };
/**
 * In these worlds, an operator states which volume a guest uses, a volume is replaced for the second time, an operator asks to connect or replace a volume that the server does not
 * have, and the order to connect one arrives after that to disconnect it.
 */
const replacedVolumes = [
  { seed: -1396671917, failures: 0, calm: 2 },
  { seed: 1039225321, failures: 40, calm: 20 },
  { seed: -807077789, failures: 0, calm: 8 },
  { seed: 1152423037, failures: 40, calm: 8 },
  { seed: 465255787, failures: 0, calm: 2 },
];

/** Lets users, operators and accidents act at random for a while, checks the laws when nothing is in progress, and then deletes every server. */
async function live(
  body: WorldBody,
  { seed, failures, calm }: { readonly seed: number; readonly failures: number; readonly calm: number },
  checkEvery: number,
): Promise<void> {
  const draw = seededRandom(seed);
  const random = (limit: number): number => Math.floor(draw() * limit);
  const world = new OperationWorldModel(body, random);
  await world.open(SERVERS);
  world.failures = failures;
  for (let step = 0; step < 150; step += 1) {
    if (random(calm) === 0) await disturb(world, random);
    else if (!(await world.step())) await world.sweep();
    if (step % checkEvery === 0) expect(await world.violations(), `seed ${seed}, step ${step}`).toEqual([]);
  }
  await world.drain();
  expect(await world.restViolations(), `seed ${seed}, at rest`).toEqual([]);
  for (let server = 0; server < SERVERS; server += 1) await world.delete(server);
  await world.drain();
  const { servers, ledger } = await body.facts();
  expect(servers.map((server) => server.status)).toEqual(Array(SERVERS).fill("DELETED"));
  expect(ledger.consumers, `seed ${seed}, after all is deleted`).toEqual([]);
  expect(world.hosts.flatMap((host) => host.guests())).toEqual([]);
}

async function disturb(world: OperationWorldModel, random: (limit: number) => number): Promise<void> {
  const server = random(SERVERS);
  const hosts = Array.from({ length: 1 + random(3) }, () => random(HOST_COUNT));
  const kind = OPERATION_KINDS[random(OPERATION_KINDS.length)] ?? "resize";
  switch (random(17)) {
    case 0:
      return world.crash();
    case 1:
      return world.hostDies(random(HOST_COUNT));
    case 2:
    case 3:
      return world.hostReturns(random(HOST_COUNT));
    case 4:
      return random(6) === 0 ? world.delete(server) : world.signal(server, random(3) === 0 ? "force" : "abort");
    case 5:
      return world.sweep();
    case 6:
      return world.fence(random(HOST_COUNT));
    case 7:
      await world.patch(server, random(2) === 0 ? 1 : -1);
      return;
    default:
      await world.request({ server, kind, hosts, vcpus: 1 + random(3) });
  }
}

test("whatever fails, crashes or comes back during moves, the laws hold and each server can be deleted", async () => {
  await fc.assert(
    fc.asyncProperty(anything, (world) => live(memoryBody(), world, 1)),
    { numRuns: MEMORY_RUNS, examples: [backAndAwayAgain, ...replacedVolumes].map((world) => [world]) },
  );
});

test("the same holds with a cell's database in Postgres", async () => {
  await fc.assert(
    fc.asyncProperty(anything, async (world) => {
      await emptyCellTables(pool);
      await live(postgresBody(), world, 25);
    }),
    { numRuns: POSTGRES_RUNS, examples: [[backAndAwayAgain]] },
  );
});
