import type { Pool } from "pg";
import { ensureDatabase } from "../adapters/postgres/client/databases.ts";
import { createPool } from "../adapters/postgres/client/pool.ts";
import { startEmbedded } from "../adapters/postgres/embedded/embedded.ts";
import { PostgresLedger } from "../adapters/postgres/ledger/postgres-ledger.ts";
import { migrate } from "../adapters/postgres/schema/migrate.ts";
import { type AllocationChange, type AllocationOutcome, claim } from "../core/ledger/allocation-change.ts";
import { type ConsumerUuid, consumerUuid, type ProviderUuid, providerUuid, resourceClass } from "../core/ledger/ids.ts";
import type { ProviderTree } from "../core/ledger/provider-tree.ts";
import type { Ledger } from "../core/stores/cell/ledger-port.ts";
import { Batcher } from "../runtime/batcher.ts";
import { measure, report } from "./measure.ts";

const HOSTS = 10_000;
const TREES_BATCH = 1_000;
const RUN_MS = 3_000;
const CLASSES = ["VCPU", "MEMORY_MB", "DISK_GB"].map(resourceClass);
const OWNER = { projectId: "project", userId: "user", type: "INSTANCE" };

interface Point {
  readonly name: string;
  readonly connections: number;
  /** Maximum number of claims in one batch. */
  readonly batchMax: number;
  /** Number of claims that wait for their answer at any moment. */
  readonly inFlight: number;
  readonly hosts: number;
}

const POINTS: readonly Point[] = [
  { name: "one by one, 1 connection", connections: 1, batchMax: 1, inFlight: 1, hosts: HOSTS },
  { name: "batches of 50, 1 connection", connections: 1, batchMax: 50, inFlight: 100, hosts: HOSTS },
  { name: "batches of 200, 1 connection", connections: 1, batchMax: 200, inFlight: 400, hosts: HOSTS },
  { name: "batches of 50, 2 connections", connections: 2, batchMax: 50, inFlight: 150, hosts: HOSTS },
  { name: "batches of 200, 2 connections", connections: 2, batchMax: 200, inFlight: 600, hosts: HOSTS },
  { name: "batches of 200, 1 connection, one hot host", connections: 1, batchMax: 200, inFlight: 400, hosts: 1 },
];

const host = (index: number): ProviderUuid => providerUuid(`a0000000-0000-4000-8000-${hex(index)}`);
let consumers = 0;
const nextConsumer = (): ConsumerUuid =>
  consumerUuid(`c${hex(consumers++ * 2_654_435_761).slice(0, 7)}-0000-4000-8000-${hex(consumers)}`);

function hex(value: number): string {
  return (value % 2 ** 48).toString(16).padStart(12, "0");
}

function trees(): ProviderTree[] {
  const inventory = { total: 2 ** 30, reserved: 0, minUnit: 1, maxUnit: 2 ** 30, stepSize: 1, allocationRatio: 1 };
  return Array.from({ length: HOSTS }, (_, index) => ({
    root: host(index),
    providers: [
      {
        uuid: host(index),
        name: `host-${index}`,
        parent: null,
        expected: "any",
        inventories: new Map(CLASSES.map((name) => [name, inventory])),
        traits: new Set(),
      },
    ],
  }));
}

function nextClaim(hosts: number): AllocationChange {
  const provider = host(Math.floor(Math.random() * hosts));
  return claim(
    nextConsumer(),
    OWNER,
    CLASSES.map((name) => ({ provider, resourceClass: name, amount: 1 })),
  );
}

/** Claims per second over one run. Throws if a claim was refused, because there is room for all of them. */
async function claimsPerSecond(ledger: Ledger, point: Point): Promise<number> {
  const batcher = new Batcher<AllocationChange, AllocationOutcome>({
    run: (changes) => ledger.applyAllocations(changes),
    maxItems: point.batchMax,
    concurrency: point.connections,
  });
  const started = performance.now();
  let claimed = 0;
  const claimUntilEnd = async (): Promise<void> => {
    while (performance.now() < started + RUN_MS) {
      const outcome = await batcher.submit(nextClaim(point.hosts));
      if (outcome.kind !== "committed") throw new Error(`a claim was refused: ${JSON.stringify(outcome)}`);
      claimed += 1;
    }
  };
  await Promise.all(Array.from({ length: point.inFlight }, claimUntilEnd));
  return (claimed * 1_000) / (performance.now() - started);
}

/**
 * Measures durable claims per second through the batching path, with fsync, load generator included: 10,000 hosts of three classes, where
 * each claim is a new consumer with three items. Points run for three seconds. The ratios compare with claims that are made one by one.
 */
export async function run(): Promise<void> {
  const server = await startEmbedded();
  try {
    await ensureDatabase(server.url("postgres"), "bench_claims");
    const url = server.url("bench_claims");
    await migrate(url, "cell");
    const pool = createPool({ url, applicationName: "bench", connectionsMax: 2 });
    try {
      await measurePoints(pool);
    } finally {
      await pool.end();
    }
  } finally {
    await server.stop();
  }
}

async function measurePoints(pool: Pool): Promise<void> {
  const ledger = new PostgresLedger(pool);
  const started = performance.now();
  const all = trees();
  for (let at = 0; at < HOSTS; at += TREES_BATCH) await ledger.putTrees(all.slice(at, at + TREES_BATCH));
  process.stdout.write(
    `  ${HOSTS} trees put in ${Math.round(performance.now() - started)} ms; ${await durability(pool)}\n`,
  );
  let baseline: number | undefined;
  for (const point of POINTS) {
    const measured = await measure(() => claimsPerSecond(ledger, point));
    baseline ??= measured.median;
    report(point.name, measured, `claims/s ${(measured.median / baseline).toFixed(1).padStart(6)} ×`);
  }
}

/** Postgres' settings for durability, without which the figures would mean nothing. */
async function durability(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ settings: string }>(
    `select string_agg(name || ' ' || setting, ', ' order by name) as settings
     from pg_settings where name in ('fsync', 'synchronous_commit', 'server_version')`,
  );
  return rows[0]?.settings ?? "";
}
