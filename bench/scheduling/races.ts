import { seededRandom } from "../../core/scheduling/seeded-random.ts";
import type { Measured } from "../measure.ts";
import { RaceWorld } from "./race-world.ts";

export const SCHEDULERS = [1, 2, 4, 8, 32] as const;
export const UTILISATIONS = [0.5, 0.7, 0.9, 0.98] as const;
const ROUNDS = 5;
const HOSTS = 10_000;
const REQUESTS = 2_000;

export interface RacePoint {
  readonly schedulers: number;
  readonly utilisation: number;
  /** Percentage of claims that were refused. */
  readonly lost: Measured;
  /** How many percent more hosts are in use at the end than with one scheduler. */
  readonly moreHosts: Measured;
}

/** Runs every number of schedulers at every utilisation, five times each. */
export function runRaces(): RacePoint[] {
  const points: RacePoint[] = [];
  for (const utilisation of UTILISATIONS) {
    const alone: number[] = [];
    for (const schedulers of SCHEDULERS) {
      const lost: number[] = [];
      const moreHosts: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        const world = new RaceWorld({ schedulers, hosts: HOSTS, utilisation, random: seededRandom(round + 1) });
        const { claims, refused, hostsInUse } = world.run(REQUESTS);
        if (schedulers === 1) alone.push(hostsInUse);
        lost.push((100 * refused) / claims);
        moreHosts.push(100 * (hostsInUse / alone[round]! - 1));
      }
      points.push({ schedulers, utilisation, lost: middle(lost), moreHosts: middle(moreHosts) });
    }
  }
  return points;
}

function middle(figures: readonly number[]): Measured {
  const sorted = figures.toSorted((a, b) => a - b);
  return { median: sorted[sorted.length >> 1]!, min: sorted[0]!, max: sorted.at(-1)! };
}

export function printRaces(points: readonly RacePoint[]): void {
  const line = (head: string, figure: (point: RacePoint) => number, utilisation: number) => {
    const cells = points
      .filter((point) => point.utilisation === utilisation)
      .map((point) => `${figure(point).toFixed(2)} %`.padStart(9));
    process.stdout.write(`  ${head.padEnd(40)}${cells.join("")}\n`);
  };
  const heads = SCHEDULERS.map((count) => `${count}`.padStart(9)).join("");
  process.stdout.write(`  ${"packing; schedulers:".padEnd(40)}${heads}\n`);
  for (const utilisation of UTILISATIONS) {
    const at = `at ${Math.round(utilisation * 100)} % of the VCPUs`;
    line(`lost races ${at}`, ({ lost }) => lost.median, utilisation);
    line(
      `hosts in use more than with one, ${Math.round(utilisation * 100)} %`,
      ({ moreHosts }) => moreHosts.median,
      utilisation,
    );
  }
}
