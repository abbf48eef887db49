import { cpus } from "node:os";
import type { Pool } from "pg";
import { ensureDatabase } from "../adapters/postgres/databases.ts";
import { startEmbedded } from "../adapters/postgres/embedded.ts";
import { migrate } from "../adapters/postgres/migrate.ts";
import { createPool } from "../adapters/postgres/pool.ts";
import { PostgresLedger } from "../adapters/postgres/postgres-ledger.ts";
import { type AllocationChange, type AllocationOutcome, claim } from "../core/ledger/allocation-change.ts";
import { type ConsumerUuid, consumerUuid, type ProviderUuid, providerUuid, resourceClass } from "../core/ledger/ids.ts";
import type { ProviderTree } from "../core/ledger/provider-tree.ts";
import { Batcher } from "../runtime/batcher.ts";

/**
 * Durable claims per second (fsync on, load generator included): 10,000 hosts of three classes, each claim one new consumer
 * with three items. Every point runs for a fixed time, five times; its median is shown.
 */
const HOSTS = 10_000;
const RUN_MS = Number(process.env.BENCH_RUN_MS ?? 3_000);
const RUNS = Number(process.env.BENCH_RUNS ?? 5);
const CLASSES = ["VCPU", "MEMORY_MB", "DISK_GB"].map(resourceClass);
const OWNER = { projectId: "project", userId: "user", type: "INSTANCE" };

interface Point {
  readonly name: string;
  readonly connections: number;
  /** Most claims of one batch. */
  readonly batchMax: number;
  /** Claims waiting for their answer at any moment. */
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

/** Claims per second over one run. Throws if one was refused: there is room for all. */
async function measure(pool: Pool, point: Point): Promise<number> {
  const ledger = new PostgresLedger(pool);
  const batcher = new Batcher<AllocationChange, AllocationOutcome>({
    run: (changes) => ledger.applyAllocations(changes),
    maxItems: point.batchMax,
    concurrency: point.connections,
  });
  const started = performance.now();
  const end = started + RUN_MS;
  let claimed = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() < end) {
      const outcome = await batcher.submit(nextClaim(point.hosts));
      if (outcome.kind !== "committed") throw new Error(`a claim was refused: ${JSON.stringify(outcome)}`);
      claimed += 1;
    }
  };
  await Promise.all(Array.from({ length: point.inFlight }, worker));
  return (claimed * 1_000) / (performance.now() - started);
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

const server = await startEmbedded();
try {
  await ensureDatabase(server.url("postgres"), "bench_claims");
  await migrate(server.url("bench_claims"), "cell");
  const pool = createPool({ url: server.url("bench_claims"), applicationName: "bench", connectionsMax: 2 });
  const loaded = performance.now();
  const all = trees();
  for (let start = 0; start < HOSTS; start += 1_000) {
    await new PostgresLedger(pool).putTrees(all.slice(start, start + 1_000));
  }
  const loadMs = Math.round(performance.now() - loaded);
  const { rows } = await pool.query<{ version: string; fsync: string; synchronous_commit: string }>(
    `select current_setting('server_version') as version, current_setting('fsync') as fsync,
       current_setting('synchronous_commit') as synchronous_commit`,
  );
  const [cpu] = cpus();
  console.log(
    `${cpus().length} × ${cpu?.model.trim()}, Node ${process.version}, Postgres ${rows[0]?.version}, ` +
      `fsync ${rows[0]?.fsync}, synchronous_commit ${rows[0]?.synchronous_commit}`,
  );
  console.log(
    `${HOSTS} hosts × ${CLASSES.length} classes, put in ${loadMs} ms; medians of ${RUNS} runs of ${RUN_MS} ms\n`,
  );
  let baseline: number | undefined;
  for (const point of POINTS) {
    const runs: number[] = [];
    for (let run = 0; run < RUNS; run += 1) runs.push(await measure(pool, point));
    const rate = median(runs);
    baseline ??= rate;
    const ratio = `${(rate / baseline).toFixed(1)} ×`;
    console.log(
      `${point.name.padEnd(44)} ${Math.round(rate).toLocaleString("en").padStart(8)} claims/s ${ratio.padStart(8)}`,
    );
  }
  await pool.end();
} finally {
  await server.stop();
}
