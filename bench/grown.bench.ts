import { withClient } from "../adapters/postgres/client/databases.ts";
import { MeasuredCloud, sumOf, type UsageByPart, usedPer } from "./anatomy/measured-cloud.ts";
import type { Usage } from "./anatomy/process-usage.ts";
import { fillAllocations, fillServers } from "./lists/fill-servers.ts";
import { measuredOf, ROUNDS, report } from "./measure.ts";

const SERVERS = Number(process.env["BERTH_BENCH_SERVERS"] ?? 1_000_000);
const BOOTS = 1_500;
const WARM_UP_ROUNDS = 2;
/** Smaller differences of a part are not shown. */
const DIFFERENCE_MS_MIN = 0.01;

interface Round {
  readonly parts: UsageByPart;
  readonly bootsPerSecond: number;
}

/**
 * Boots and deletes in a cloud that has many servers and in an empty one, in turns: the CPU of a boot and its delete over all processes, and
 * how many there are a second. `BERTH_BENCH_SERVERS` sets the number of servers. They are written by SQL, with their requests and
 * allocations, on hosts that no service knows, and the api and the scheduler are started again, so that their views have them.
 */
export async function run(): Promise<void> {
  const clouds: (readonly [what: string, cloud: MeasuredCloud])[] = [["an empty cloud", await MeasuredCloud.start()]];
  try {
    const grown = await MeasuredCloud.start();
    clouds.push([`${SERVERS.toLocaleString("en-US")} servers`, grown]);
    await fillServers({ api: grown.apiDatabaseUrl, cell: grown.databaseUrl, cellName: "cell-1" }, SERVERS);
    await fillAllocations(grown.databaseUrl, SERVERS);
    // The pages of the filling would be written by boots that need room for others.
    for (const url of [grown.apiDatabaseUrl, grown.databaseUrl])
      await withClient(url, (client) => client.query("checkpoint"));
    await grown.startTierAgain();
    const rounds = clouds.map((): Round[] => []);
    for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1)
      for (const [at, [, cloud]] of clouds.entries()) {
        const figures = await measureRound(cloud);
        if (round >= 0) rounds[at]!.push(figures);
      }
    for (const [at, [what]] of clouds.entries()) {
      report(`CPU of a boot and its delete, ${what}`, measuredOf(rounds[at]!.map(({ parts }) => cpuOf(parts))), "ms");
      report(`boots, each with its delete, ${what}`, measuredOf(rounds[at]!.map((one) => one.bootsPerSecond)), "/s");
    }
    printDifference(rounds[0]!, rounds[1]!);
  } finally {
    await Promise.all(clouds.map(([, cloud]) => cloud.close()));
  }
}

async function measureRound(cloud: MeasuredCloud): Promise<Round> {
  const before = await cloud.usage();
  const startMs = performance.now();
  await cloud.bootAndDelete(BOOTS);
  const tookMs = performance.now() - startMs;
  return { parts: usedPer(BOOTS, before, await cloud.usage()), bootsPerSecond: (BOOTS * 1_000) / tookMs };
}

function cpuOf(parts: UsageByPart): number {
  return [...parts.values()].reduce<Usage | undefined>(sumOf, undefined)?.cpuMs ?? 0;
}

/** Prints the parts whose CPU differs. */
function printDifference(empty: readonly Round[], grown: readonly Round[]): void {
  const medianOf = (rounds: readonly Round[], part: string) =>
    measuredOf(rounds.map(({ parts }) => parts.get(part)?.cpuMs ?? 0)).median;
  const parts = new Set([...empty, ...grown].flatMap((round) => [...round.parts.keys()]));
  for (const part of parts) {
    const [before, now] = [medianOf(empty, part), medianOf(grown, part)];
    if (Math.abs(now - before) < DIFFERENCE_MS_MIN) continue;
    process.stdout.write(`  ${part.padEnd(52)} ${before.toFixed(3)} → ${now.toFixed(3)} ms\n`);
  }
}
