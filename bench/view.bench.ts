import { randomUUID } from "node:crypto";
import { ensureDatabase, withClient } from "../adapters/postgres/client/databases.ts";
import { createPool } from "../adapters/postgres/client/pool.ts";
import { startEmbedded } from "../adapters/postgres/embedded/embedded.ts";
import { LedgerFollower } from "../adapters/postgres/follower/ledger-follower.ts";
import { PostgresLedger } from "../adapters/postgres/ledger/postgres-ledger.ts";
import { migrate } from "../adapters/postgres/schema/migrate.ts";
import { claim } from "../core/ledger/allocation-change.ts";
import { consumerUuid, type ProviderUuid, providerUuid, resourceClass } from "../core/ledger/ids.ts";
import { LedgerView } from "../core/ledger/ledger-view.ts";
import { systemClock } from "../runtime/clock.ts";
import { measure, report } from "./measure.ts";

const HOSTS = 10_000;
const CLAIMS = 5_000;
const BATCH = 250;
const STRICT_READS = 500;
const SEEN_MS = 30_000;

const OWNER = { projectId: "bench", userId: "bench", type: "INSTANCE" };
const CLASSES = ["VCPU", "MEMORY_MB", "DISK_GB"].map(resourceClass);

/** Measures how fast a ledger view loads, catches up after a burst of claims, and answers a strict read when nothing happens. */
export async function run(): Promise<void> {
  const server = await startEmbedded();
  try {
    await ensureDatabase(server.url("postgres"), "bench_view");
    const databaseUrl = server.url("bench_view");
    await migrate(databaseUrl, "cell");
    const providers = await insertHosts(databaseUrl);
    report(`load of ${HOSTS} hosts, ${CLASSES.length} classes each`, await measure(() => loadMs(databaseUrl)), "ms");
    const follower = followerOf(databaseUrl);
    const pool = createPool({ url: databaseUrl, applicationName: "bench" });
    try {
      await follower.waitUntilSeen(SEEN_MS);
      const ledger = new PostgresLedger(pool);
      report(`catch-up after ${CLAIMS} claims`, await measure(() => catchUpMs(follower, ledger, providers)), "ms");
      report("strict read on an idle cell", await measure(() => strictReadMs(follower)), "ms");
    } finally {
      await follower.close();
      await pool.end();
    }
  } finally {
    await server.stop();
  }
}

function followerOf(databaseUrl: string): LedgerFollower {
  const events = { loaded: () => {}, lost: () => {} };
  const view = new LedgerView();
  const follower = new LedgerFollower({ cell: "bench", databaseUrl, view, clock: systemClock, events });
  follower.start();
  return follower;
}

async function loadMs(databaseUrl: string): Promise<number> {
  const startedMs = performance.now();
  const follower = followerOf(databaseUrl);
  await follower.waitUntilSeen(SEEN_MS);
  const tookMs = performance.now() - startedMs;
  await follower.close();
  return tookMs;
}

/** Time from the answer to the last claim until the view shows it. Claims go in batches on two connections. */
async function catchUpMs(
  follower: LedgerFollower,
  ledger: PostgresLedger,
  providers: readonly ProviderUuid[],
): Promise<number> {
  const batches = Array.from({ length: CLAIMS / BATCH }, () =>
    Array.from({ length: BATCH }, () => {
      const provider = providers[Math.floor(Math.random() * providers.length)]!;
      const items = CLASSES.map((name) => ({ provider, resourceClass: name, amount: 1 }));
      return claim(consumerUuid(randomUUID()), OWNER, items);
    }),
  );
  const work = async (): Promise<void> => {
    for (let batch = batches.pop(); batch !== undefined; batch = batches.pop()) await ledger.applyAllocations(batch);
  };
  await Promise.all([work(), work()]);
  const startedMs = performance.now();
  await follower.waitUntilSeen(SEEN_MS);
  return performance.now() - startedMs;
}

async function strictReadMs(follower: LedgerFollower): Promise<number> {
  const startedMs = performance.now();
  for (let read = 0; read < STRICT_READS; read += 1) await follower.waitUntilSeen(SEEN_MS);
  return (performance.now() - startedMs) / STRICT_READS;
}

async function insertHosts(databaseUrl: string): Promise<ProviderUuid[]> {
  return withClient(databaseUrl, async (client) => {
    await client.query(`insert into resource_classes (name) select unnest($1::text[]) on conflict do nothing`, [
      CLASSES,
    ]);
    const { rows } = await client.query<{ uuid: string }>(
      `with hosts as (
         insert into resource_providers (id, uuid, name, root_id) overriding system value
         select n, gen_random_uuid(), 'host-' || n, n from generate_series(1000001, 1000000 + $1::int) n returning id, uuid),
       offers as (
         insert into inventories (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
         select hosts.id, c.id, 1000000, 0, 1, 1000000, 1, 1 from hosts, resource_classes c where c.name = any ($2))
       select uuid from hosts`,
      [HOSTS, CLASSES],
    );
    return rows.map((row) => providerUuid(row.uuid));
  });
}
