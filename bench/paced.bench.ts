import { MeasuredCloud } from "./anatomy/measured-cloud.ts";
import { measurePacedBoots, type PacedBoots } from "./anatomy/paced-boots.ts";
import { measuredOf, report } from "./measure.ts";

/** Boots a second. */
const PACES = (process.env.BERTH_BENCH_PACES ?? "10,50,150,300").split(",").map(Number);
const SECONDS = 4;
const SERVERS_MIN = 50;
const ROUNDS = 3;
/** V8 compiles what is called often meanwhile. */
const WARM_UP_ROUNDS = 4;
const WARM_UP_SERVERS = 1_500;

/**
 * How long a boot takes at the pace at which a cloud's users ask for servers: few a second, when each boot is nearly alone, up to as many
 * as the machine can take, when servers wait for each other and share commits. The whole curve counts, since most clouds are idle most of the
 * time. With `BERTH_BENCH_BASE`, the `bin/berth` of another tree, the same is measured there, in turns with this tree.
 */
export async function run(): Promise<void> {
  const base = process.env.BERTH_BENCH_BASE;
  const clouds = [await MeasuredCloud.start()];
  try {
    if (base !== undefined) clouds.push(await MeasuredCloud.start(base));
    for (let round = 0; round < WARM_UP_ROUNDS; round += 1)
      for (const cloud of clouds) await cloud.bootAndDelete(WARM_UP_SERVERS);
    for (const perSecond of PACES) {
      const rounds: PacedBoots[][] = clouds.map(() => []);
      const servers = Math.max(SERVERS_MIN, perSecond * SECONDS);
      for (let round = 0; round < ROUNDS; round += 1)
        for (const [index, cloud] of clouds.entries())
          rounds[index]!.push(await measurePacedBoots(cloud, { perSecond, servers, seed: round }));
      for (const [index, of] of rounds.entries()) print(perSecond, of, index === 0 ? "" : ", base");
    }
  } finally {
    await Promise.all(clouds.map((cloud) => cloud.close()));
  }
}

function print(perSecond: number, rounds: readonly PacedBoots[], suffix: string): void {
  const share = (at: number) =>
    measuredOf(rounds.map(({ activeMs }) => activeMs[Math.floor(at * (activeMs.length - 1))]!));
  report(`${perSecond} boots/s: POST to ACTIVE, p50${suffix}`, share(0.5), "ms");
  report(`${perSecond} boots/s: POST to ACTIVE, p99${suffix}`, share(0.99), "ms");
  report(
    `${perSecond} boots/s: CPU of a boot and its delete, with what idles beside them${suffix}`,
    measuredOf(rounds.map((round) => round.cpuMs)),
    "ms",
  );
}
