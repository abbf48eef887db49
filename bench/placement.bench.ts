import { dropDatabase, ensureDatabase } from "../adapters/postgres/client/databases.ts";
import { type EmbeddedPostgres, startEmbedded } from "../adapters/postgres/embedded/embedded.ts";
import { familyCpuMs } from "./anatomy/process-usage.ts";
import { AGGREGATE, fill, flatCloud, nestedCloud, TRAIT, uuidFromWords, wideHost } from "./placement/clouds.ts";
import { loadBerth, loadPeer } from "./placement/load-cloud.ts";
import { claimRequest, PlacementClient } from "./placement/placement-client.ts";
import { type MeasuredServer, peerIsInstalled, startBerth, startPeer } from "./placement/servers.ts";

/**
 * Measures the Placement API over HTTP, with everything on this machine, load generator included. Where Debian's placement-api is
 * installed, it gets the same requests on the same Postgres for comparison. Figures are medians of five. A measurement that would take the
 * peer too long uses a smaller cloud there, or is left out, and the output says so. `BENCH_PEER=0` skips the peer, and `BENCH_HUGE=0` the
 * 100,000 providers. `BENCH_ONLY=claims,nested` runs only these sections: creation, flat, claims, lone, nested,
 * wide, huge.
 */
const RUNS = 5;
/** A lone client claims this many times less often than 32 clients. */
const LONE_SHARE = 10;
const only = process.env["BENCH_ONLY"]?.split(",");
const isWanted = (section: string) => only === undefined || only.includes(section);
const withPeer = process.env["BENCH_PEER"] !== "0" && peerIsInstalled();

type Figures = Map<string, number>;
type Cloud = Parameters<typeof fill>[1];
interface Side {
  readonly start: (databaseUrl: string) => Promise<MeasuredServer>;
  /** Writes a cloud directly into the database, without HTTP. */
  readonly load: (databaseUrl: string, cloud: Cloud) => Promise<void>;
  readonly figures: Figures;
  /** Number of providers whose creation is measured, and number of claims. */
  readonly creations: number;
  readonly claims: number;
  /** The groups requested of one host, by the number of its children. */
  readonly groups: Readonly<Record<number, readonly number[]>>;
  /** The numbers of trees in the largest nested cloud. */
  readonly trees: readonly number[];
  readonly isHuge: boolean;
}
interface Bench {
  readonly client: PlacementClient;
  readonly server: MeasuredServer;
  /** CPU milliseconds of Postgres until now. */
  readonly postgresCpuMs: () => number;
  readonly side: Side;
  /** Writes a cloud directly into this database, without HTTP. */
  readonly load: (cloud: Cloud) => Promise<void>;
}

const FLAT = "resources=VCPU:1,MEMORY_MB:512,DISK_GB:10";

export async function run(): Promise<void> {
  const postgres = await startEmbedded({ settings: { max_wal_size: "4GB" } });
  try {
    const ours: Side = {
      start: startBerth,
      load: loadBerth,
      figures: new Map(),
      creations: 10_000,
      claims: 50_000,
      groups: { 8: [3, 4, 5, 8], 16: [8], 48: [8, 48] },
      trees: [1_000, 10_000],
      isHuge: process.env["BENCH_HUGE"] !== "0",
    };
    const peer: Side = {
      start: startPeer,
      load: loadPeer,
      figures: new Map(),
      creations: 500,
      claims: 300,
      groups: { 8: [3, 4, 5] },
      trees: [1_000],
      isHuge: false,
    };
    await measureSide(postgres, ours);
    if (withPeer) await measureSide(postgres, peer);
    printTable(ours.figures, peer.figures);
  } finally {
    await postgres.stop();
  }
}

async function measureSide(postgres: EmbeddedPostgres, side: Side): Promise<void> {
  const section = async (name: string, work: (bench: Bench) => Promise<void>) => {
    if (isWanted(name)) await onFreshServer(postgres, side, work);
  };
  await section("flat", flatFigures);
  await section("creation", creationFigures);
  await section("claims", claimFigures);
  await section("lone", loneFigures);
  for (const trees of side.trees) await section("nested", (bench) => nestedFigures(bench, trees));
  for (const [children, counts] of Object.entries(side.groups))
    await section("wide", (bench) => wideFigures(bench, Number(children), counts));
  if (side.isHuge) await section("huge", hugeFigures);
}

let databases = 0;

async function onFreshServer(
  postgres: EmbeddedPostgres,
  side: Side,
  work: (bench: Bench) => Promise<void>,
): Promise<void> {
  databases += 1;
  const name = `bench_${databases}`;
  const url = postgres.localUrl(name);
  await ensureDatabase(postgres.url("postgres"), name);
  const server = await side.start(url);
  const client = new PlacementClient(server.url, 32);
  try {
    await client.must("PUT", `/traits/${TRAIT}`);
    const postgresCpuMs = () => familyCpuMs(postgres.pid);
    await work({ client, server, postgresCpuMs, side, load: (cloud) => side.load(url, cloud) });
  } finally {
    client.close();
    await server.stop();
    await dropDatabase(postgres.url("postgres"), name);
  }
}

async function flatFigures({ client, server, side, load }: Bench): Promise<void> {
  const { figures } = side;
  const cloud = flatCloud(10_000, "flat");
  await load(cloud.slice(0, 1_000));
  figures.set(...(await candidates(client, "1,000 flat, limit=1000", `${FLAT}&limit=1000`)));
  await load(cloud.slice(1_000));
  figures.set(...(await candidates(client, "10,000 flat, limit=1000", `${FLAT}&limit=1000`)));
  const filters = `required=${TRAIT}&member_of=${AGGREGATE}`;
  figures.set(...(await candidates(client, "… with required= and member_of=", `${FLAT}&limit=1000&${filters}`)));
  figures.set(...(await candidates(client, "10,000 flat, limit=10", `${FLAT}&limit=10`)));
  figures.set("memory at 10,000 providers (MiB)", server.memoryMib());
}

async function creationFigures({ client, side }: Bench): Promise<void> {
  const created = await fill(client, flatCloud(side.creations, "created"));
  side.figures.set("providers created, with inventories, traits, aggregates (/s)", created);
}

async function claimFigures({ client, side, load }: Bench): Promise<void> {
  const { figures } = side;
  await load(flatCloud(10_000, "flat"));
  const resources = { VCPU: 1, MEMORY_MB: 512, DISK_GB: 10 };
  const spread = (at: number) => claimRequest(uuidFromWords("flat", (at * 7_919) % 10_000), resources);
  figures.set("PUT /allocations, 32 connections (/s)", await medianRate(client, side.claims, spread));
  const hot = uuidFromWords("hot");
  await load([[{ uuid: hot, parent: null, inventories: { VCPU: 1_000_000 }, traits: [] }]]);
  const onHot = () => claimRequest(hot, { VCPU: 1 });
  figures.set("PUT /allocations, one hot provider (/s)", await medianRate(client, side.claims / 2, onHot));
}

/** One client that waits for each answer, as a scheduler of Nova does. */
async function loneFigures(bench: Bench): Promise<void> {
  const { client, side, load } = bench;
  const { figures } = side;
  await load(flatCloud(10_000, "flat"));
  const resources = { VCPU: 1, MEMORY_MB: 512, DISK_GB: 10 };
  const round = Math.ceil(side.claims / LONE_SHARE / RUNS);
  const claimAt = (at: number) => claimRequest(uuidFromWords("flat", (at * 7_919) % 10_000), resources);
  const put = (at: number) => client.sendClaim(client.prepare(...claimAt(at)));
  const puts = await oneAfterTheOther(bench, round, put);
  figures.set("PUT /allocations, one client, p50 (ms)", median(puts.times));
  setCpu(figures, "PUT /allocations", puts.cpuMs);
  const cycles = await oneAfterTheOther(bench, round, (at) => cycle(client, `${FLAT}&limit=10`, at));
  figures.set("candidates, choice and PUT /allocations, one client (/s)", median(cycles.rates));
  setCpu(figures, "candidates, choice and PUT /allocations", cycles.cpuMs);
}

function setCpu(figures: Figures, what: string, cpuMs: LoneCalls["cpuMs"]): void {
  for (const [part, ms] of Object.entries(cpuMs)) figures.set(`  CPU of ${what}: ${part} (ms)`, ms);
}

interface LoneCalls {
  readonly times: readonly number[];
  /** Calls a second, by round. */
  readonly rates: readonly number[];
  /** CPU milliseconds of a call, which hardly depend on other load of the machine. */
  readonly cpuMs: Readonly<Record<"client" | "server" | "Postgres", number>>;
}

/** Makes the calls of a round to warm up, and of five more for the record. */
async function oneAfterTheOther(
  { server, postgresCpuMs }: Bench,
  round: number,
  call: (at: number) => Promise<unknown>,
): Promise<LoneCalls> {
  const [times, rates]: [number[], number[]] = [[], []];
  const usedMs = () => {
    const { user, system } = process.cpuUsage();
    return { client: (user + system) / 1_000, server: server.cpuMs(), Postgres: postgresCpuMs() };
  };
  for (let at = 0; at < round; at += 1) await call(at);
  const before = usedMs();
  for (let run = 1; run <= RUNS; run += 1) {
    const begun = performance.now();
    for (let at = 0; at < round; at += 1) {
      const start = performance.now();
      await call(run * round + at);
      times.push(performance.now() - start);
    }
    rates.push((round / (performance.now() - begun)) * 1_000);
  }
  const after = usedMs();
  const perCall = (part: keyof typeof after) => (after[part] - before[part]) / (RUNS * round);
  return {
    times,
    rates,
    cpuMs: { client: perCall("client"), server: perCall("server"), Postgres: perCall("Postgres") },
  };
}

/** Asks for candidates, chooses one of them, and claims it. */
async function cycle(client: PlacementClient, query: string, at: number): Promise<void> {
  const { allocation_requests: ways } = JSON.parse(await client.must("GET", `/allocation_candidates?${query}`));
  const { allocations } = ways[at % ways.length];
  const [method, path, body] = claimRequest("", {});
  await client.must(method, path, { ...(body as object), allocations });
}

async function nestedFigures({ client, side, load }: Bench, trees: number): Promise<void> {
  await load(nestedCloud(trees, "nested"));
  const groups = `resources=DISK_GB:10&resources1=VCPU:4,MEMORY_MB:4096&required1=HW_NUMA_ROOT&resources2=SRIOV_NET_VF:1&required2=${TRAIT}`;
  const query = `${groups}&group_policy=none&same_subtree=1,2&limit=1000`;
  const what = `${trees.toLocaleString("en-US")} trees of 5, two groups, same_subtree`;
  side.figures.set(...(await candidates(client, what, query)));
}

async function wideFigures({ client, side, load }: Bench, children: number, counts: readonly number[]): Promise<void> {
  await load(wideHost(children, `wide-${children}`));
  for (const count of counts) {
    const groups = Array.from({ length: count }, (_, at) => `resources${at + 1}=VGPU:1`).join("&");
    const what = `${count} groups over ${children} like children, limit=1000`;
    side.figures.set(...(await candidates(client, what, `${groups}&group_policy=isolate&limit=1000`)));
  }
}

async function hugeFigures({ client, server, side, load }: Bench): Promise<void> {
  await load(flatCloud(100_000, "huge"));
  side.figures.set(...(await candidates(client, "100,000 flat, limit=100", `${FLAT}&limit=100`)));
  side.figures.set("memory at 100,000 providers (MiB)", server.memoryMib());
}

async function candidates(client: PlacementClient, what: string, query: string): Promise<[what: string, ms: number]> {
  return [`candidates, ${what} (ms)`, await p50(client, `/allocation_candidates?${query}`)];
}

/** The median of five rounds of claims after one to warm up. The requests of a round are prepared before it. */
async function medianRate(
  client: PlacementClient,
  count: number,
  claim: (at: number) => ReturnType<typeof claimRequest>,
): Promise<number> {
  const rates: number[] = [];
  const round = Math.ceil(count / RUNS);
  for (let run = 0; run <= RUNS; run += 1) {
    const requests = Array.from({ length: round }, (_, at) => client.prepare(...claim(run * round + at)));
    const rate = await client.rate(round, (at) => client.sendClaim(requests[at]!));
    if (run > 0) rates.push(rate);
  }
  return median(rates);
}

/** The median of five rounds after one to warm up. A round is 20 requests, or a single one when a request takes long. */
async function p50(client: PlacementClient, path: string): Promise<number> {
  const first = await client.time(path);
  const round = first > 200 ? 1 : 20;
  for (let at = 1; at < round; at += 1) await client.time(path);
  const times: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    for (let at = 0; at < round; at += 1) times.push(await client.time(path));
    if (first > 20_000) break;
  }
  return median(times);
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

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
