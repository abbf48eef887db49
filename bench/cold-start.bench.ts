import { randomUUID } from "node:crypto";
import { ensureDatabase, withClient } from "../adapters/postgres/client/databases.ts";
import { createPool } from "../adapters/postgres/client/pool.ts";
import { type EmbeddedPostgres, startEmbedded } from "../adapters/postgres/embedded/embedded.ts";
import { LedgerFollower } from "../adapters/postgres/follower/ledger-follower.ts";
import { PostgresLedger } from "../adapters/postgres/ledger/postgres-ledger.ts";
import { migrate } from "../adapters/postgres/schema/migrate.ts";
import { claim } from "../core/ledger/allocation-change.ts";
import { consumerUuid, type ProviderUuid, providerUuid } from "../core/ledger/ids.ts";
import { LedgerView } from "../core/ledger/ledger-view.ts";
import { LiveCellFacts, viewWithFacts } from "../core/scheduling/live-cell-facts.ts";
import { systemClock } from "../runtime/clock.ts";
import { fillCell } from "./full-cell.ts";
import { type Measured, measuredOf, report } from "./measure.ts";
import { CLASSES } from "./scheduling/mixed-cloud.ts";

const CELLS = 4;
const HOSTS = Number(process.env.BERTH_BENCH_HOSTS ?? 100_000);
const SERVERS = Number(process.env.BERTH_BENCH_SERVERS ?? HOSTS);
const ROUNDS = 5;
const SEEN_MS = 120_000;
/** Number of claims that are made one after the other in each cell, with a pause after each transaction. */
const CLAIMS = 4_000;
const BATCH = 10;
const PAUSE_MS = 10;
const OWNER = { projectId: "bench", userId: "bench", type: "INSTANCE" };

/** One cell of the cloud, and how to make claims there. */
interface ClaimedCell {
  readonly name: string;
  readonly url: string;
  readonly ledger: PostgresLedger;
  readonly providers: readonly ProviderUuid[];
  close(): Promise<void>;
}

/** Measures how long a scheduler that starts loads its views of a large cloud, and how far the views are behind the commits afterwards. */
export async function run(): Promise<void> {
  const server = await startEmbedded();
  const cells: ClaimedCell[] = [];
  try {
    for (let cell = 0; cell < CELLS; cell += 1) cells.push(await makeCell(server, cell));
    const starts: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) starts.push(await withViews(cells, async () => {}));
    report(`views of ${HOSTS} hosts and ${SERVERS} servers in ${CELLS} cells loaded`, measuredOf(starts), "ms");
    await withViews(cells, async (followers) => reportLags(await lagsOf(cells, followers)));
  } finally {
    await Promise.all(cells.map((cell) => cell.close()));
    await server.stop();
  }
}

async function makeCell(server: EmbeddedPostgres, cell: number): Promise<ClaimedCell> {
  const name = `bench_start_${cell}`;
  await ensureDatabase(server.url("postgres"), name);
  const url = server.url(name);
  await migrate(url, "cell");
  await fillCell(url, { cell, servers: SERVERS / CELLS, hosts: HOSTS / CELLS });
  const { rows } = await withClient(url, (client) =>
    client.query<{ uuid: string }>("select uuid from resource_providers"),
  );
  const pool = createPool({ url, applicationName: "bench", connectionsMax: 1 });
  const providers = rows.map((row) => providerUuid(row.uuid));
  return { name, url, ledger: new PostgresLedger(pool), providers, close: () => pool.end() };
}

/** Follows all cells as a scheduler does, with their servers, until `use` has ended. Returns how long it took until all were loaded, in milliseconds. */
async function withViews(
  cells: readonly ClaimedCell[],
  use: (followers: readonly LedgerFollower[]) => Promise<void>,
): Promise<number> {
  const startedMs = performance.now();
  const followers = cells.map(({ name, url: databaseUrl }) => {
    const view = new LedgerView();
    const events = { loaded: () => {}, lost: () => {} };
    const target = viewWithFacts(view, new LiveCellFacts(name, view));
    return new LedgerFollower({ cell: name, databaseUrl, view: target, servers: true, clock: systemClock, events });
  });
  try {
    for (const follower of followers) follower.start();
    await Promise.all(followers.map((follower) => follower.waitUntilSeen(SEEN_MS)));
    const tookMs = performance.now() - startedMs;
    await use(followers);
    return tookMs;
  } finally {
    await Promise.all(followers.map((follower) => follower.close()));
  }
}

/** Milliseconds from each commit until a view showed it, while all cells commit claims. */
async function lagsOf(cells: readonly ClaimedCell[], followers: readonly LedgerFollower[]): Promise<readonly number[]> {
  const lags: number[] = [];
  const stops = followers.map((follower) => follower.onApplied(() => lags.push(follower.lagMs ?? 0)));
  const startedMs = performance.now();
  await Promise.all(cells.map(makeClaims));
  const seconds = (performance.now() - startedMs) / 1_000;
  await Promise.all(followers.map((follower) => follower.waitUntilSeen(SEEN_MS)));
  for (const stop of stops) stop();
  const perSecond = Math.round((CLAIMS * CELLS) / seconds);
  process.stdout.write(`  ${perSecond} claims/s in all cells, ${lags.length} transactions\n`);
  return lags;
}

async function makeClaims({ ledger, providers }: ClaimedCell): Promise<void> {
  for (let made = 0; made < CLAIMS; made += BATCH) {
    const changes = Array.from({ length: BATCH }, (_, index) => {
      const provider = providers[((made + index) * 7_919) % providers.length]!;
      const items = CLASSES.map((name) => ({ provider, resourceClass: name, amount: 1 }));
      return claim(consumerUuid(randomUUID()), OWNER, items);
    });
    const outcomes = await ledger.applyAllocations(changes);
    if (outcomes.some(({ kind }) => kind !== "committed")) throw new Error("there is room for all claims");
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

function reportLags(lags: readonly number[]): void {
  const sorted = lags.toSorted((a, b) => a - b);
  const at = (share: number): Measured => {
    const value = sorted[Math.floor((sorted.length - 1) * share)]!;
    return { median: value, min: sorted[0]!, max: sorted.at(-1)! };
  };
  report("lag of the views behind commits, p50", at(0.5), "ms");
  report("lag of the views behind commits, p99", at(0.99), "ms");
}
