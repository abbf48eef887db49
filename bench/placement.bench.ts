import { dropDatabase, ensureDatabase } from "../adapters/postgres/databases.ts";
import { type EmbeddedPostgres, startEmbedded } from "../adapters/postgres/embedded.ts";
import { PlacementClient } from "./placement/client.ts";
import { AGGREGATE, fill, flatCloud, nestedCloud, TRAIT, uuidOf, wideHost } from "./placement/clouds.ts";
import { type MeasuredServer, peerIsInstalled, startBerth, startPeer } from "./placement/servers.ts";

/**
 * The Placement API over HTTP, everything on this machine, load generator included; beside it Debian's placement-api on the same
 * Postgres with the same requests, where it is installed. Medians of five; what takes the peer too long is measured on a smaller
 * cloud there, or left out, and says so. `BENCH_PEER=0` leaves it out, `BENCH_HUGE=0` the 100,000 providers.
 */
const RUNS = 5;
const withPeer = process.env["BENCH_PEER"] !== "0" && peerIsInstalled();
const withHuge = process.env["BENCH_HUGE"] !== "0";

type Figures = Map<string, number>;
type Start = (databaseUrl: string) => Promise<MeasuredServer>;
interface Side {
  readonly start: Start;
  readonly figures: Figures;
  /** Leave out what would take this side minutes. */
  readonly patient: boolean;
}

const FLAT = "resources=VCPU:1,MEMORY_MB:512,DISK_GB:10";

export async function run(): Promise<void> {
  const postgres = await startEmbedded({ settings: { max_wal_size: "4GB" } });
  try {
    const ours: Figures = new Map();
    const peers: Figures = new Map();
    await measureSide(postgres, { start: startBerth, figures: ours, patient: true });
    if (withPeer) await measureSide(postgres, { start: startPeer, figures: peers, patient: false });
    printTable(ours, peers);
  } finally {
    await postgres.stop();
  }
}

async function measureSide(postgres: EmbeddedPostgres, side: Side): Promise<void> {
  await onFreshServer(postgres, side, (client, server) => flatFigures(client, server, side));
  await onFreshServer(postgres, side, (client) => nestedFigures(client, side, 1_000));
  if (side.patient) await onFreshServer(postgres, side, (client) => nestedFigures(client, side, 10_000));
  for (const children of side.patient ? [8, 16, 48] : [8]) {
    await onFreshServer(postgres, side, (client) => wideFigures(client, side, children));
  }
  if (side.patient && withHuge)
    await onFreshServer(postgres, side, (client, server) => hugeFigures(client, server, side.figures));
}

let databases = 0;

async function onFreshServer(
  postgres: EmbeddedPostgres,
  side: Side,
  work: (client: PlacementClient, server: MeasuredServer) => Promise<void>,
): Promise<void> {
  databases += 1;
  const name = `bench_${databases}`;
  await ensureDatabase(postgres.url("postgres"), name);
  const server = await side.start(postgres.url(name));
  const client = new PlacementClient(server.url, 32);
  try {
    await client.must("PUT", `/traits/${TRAIT}`);
    await work(client, server);
  } finally {
    await client.close();
    await server.stop();
    await dropDatabase(postgres.url("postgres"), name);
  }
}

async function flatFigures(client: PlacementClient, server: MeasuredServer, { figures }: Side): Promise<void> {
  await fill(client, flatCloud(1_000, "flat"));
  figures.set(
    "candidates, 1,000 flat, limit=1000 (ms)",
    await p50(client, `/allocation_candidates?${FLAT}&limit=1000`),
  );
  const rest = flatCloud(10_000, "flat").slice(1_000);
  figures.set("providers created, with inventories, traits, aggregates (/s)", await fill(client, rest));
  figures.set(
    "candidates, 10,000 flat, limit=1000 (ms)",
    await p50(client, `/allocation_candidates?${FLAT}&limit=1000`),
  );
  figures.set(
    "… with required= and member_of= (ms)",
    await p50(client, `/allocation_candidates?${FLAT}&limit=1000&required=${TRAIT}&member_of=${AGGREGATE}`),
  );
  figures.set("candidates, 10,000 flat, limit=10 (ms)", await p50(client, `/allocation_candidates?${FLAT}&limit=10`));
  figures.set("memory at 10,000 providers (MiB)", server.memoryMib());
  const claims = Number(figures.get("candidates, 10,000 flat, limit=10 (ms)")) < 50 ? 6_000 : 300;
  figures.set(
    "PUT /allocations, 32 connections (/s)",
    await client.rate(claims, (at) =>
      client.claim(uuidOf("flat", (at * 7_919) % 10_000), { VCPU: 1, MEMORY_MB: 512, DISK_GB: 10 }),
    ),
  );
  const hot = uuidOf("hot");
  await client.must("POST", "/resource_providers", { name: "hot", uuid: hot });
  await client.must("PUT", `/resource_providers/${hot}/inventories`, {
    resource_provider_generation: 0,
    inventories: { VCPU: { total: 1_000_000 } },
  });
  figures.set(
    "PUT /allocations, one hot provider (/s)",
    await client.rate(claims / 2, () => client.claim(hot, { VCPU: 1 })),
  );
}

async function nestedFigures(client: PlacementClient, { figures }: Side, trees: number): Promise<void> {
  await fill(client, nestedCloud(trees, "nested"));
  const groups = `resources=DISK_GB:10&resources1=VCPU:4,MEMORY_MB:4096&required1=HW_NUMA_ROOT&resources2=SRIOV_NET_VF:1&required2=${TRAIT}`;
  const path = `/allocation_candidates?${groups}&group_policy=none&same_subtree=1,2&limit=1000`;
  figures.set(
    `candidates, ${trees.toLocaleString("en-US")} trees of 5, two groups, same_subtree (ms)`,
    await p50(client, path),
  );
}

async function wideFigures(client: PlacementClient, { figures, patient }: Side, children: number): Promise<void> {
  await fill(client, wideHost(children, `wide-${children}`));
  const groups = (count: number) => Array.from({ length: count }, (_, at) => `resources${at + 1}=VGPU:1`).join("&");
  for (const count of patient ? [3, 4, 5, 8, ...(children === 48 ? [48] : [])] : [3, 4, 5]) {
    if (count < 8 && children > 8) continue;
    const path = `/allocation_candidates?${groups(count)}&group_policy=isolate&limit=1000`;
    figures.set(`candidates, ${count} groups over ${children} like children, limit=1000 (ms)`, await p50(client, path));
  }
}

async function hugeFigures(client: PlacementClient, server: MeasuredServer, figures: Figures): Promise<void> {
  await fill(client, flatCloud(100_000, "huge"));
  figures.set(
    "candidates, 100,000 flat, limit=100 (ms)",
    await p50(client, `/allocation_candidates?${FLAT}&limit=100`),
  );
  figures.set("memory at 100,000 providers (MiB)", server.memoryMib());
}

/** The median of five rounds; a round is 20 requests, or one where one takes long. */
async function p50(client: PlacementClient, path: string): Promise<number> {
  const first = await client.time(path);
  const round = first > 300 ? 1 : 20;
  const times: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    for (let at = 0; at < round; at += 1) times.push(await client.time(path));
    if (first > 20_000) break;
  }
  return times.sort((a, b) => a - b)[times.length >> 1]!;
}

function printTable(ours: Figures, peers: Figures): void {
  const show = (figure: number | undefined) =>
    figure === undefined ? "-" : figure.toLocaleString("en-US", { maximumSignificantDigits: 3 });
  process.stdout.write(`  ${"".padEnd(66)}${"Berth".padStart(10)}${"peer".padStart(10)}${"ratio".padStart(9)}\n`);
  for (const [what, mine] of ours) {
    const peer = peers.get(what);
    const better = peer === undefined ? undefined : what.endsWith("(/s)") ? mine / peer : peer / mine;
    process.stdout.write(
      `  ${what.padEnd(66)}${show(mine).padStart(10)}${show(peer).padStart(10)}${(better === undefined ? "-" : `${show(better)}×`).padStart(9)}\n`,
    );
  }
  if (!withPeer) process.stdout.write("  (peer: Debian's placement-api is not installed, or BENCH_PEER=0)\n");
}
