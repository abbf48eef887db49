import { seededRandom } from "../core/scheduling/seeded-random.ts";
import { measuredOf, report } from "./measure.ts";
import { reportSize } from "./scheduling/decisions.ts";
import { MixedCloud } from "./scheduling/mixed-cloud.ts";
import { RaceWorld } from "./scheduling/race-world.ts";

const CELLS = 100;
const HOSTS_OF_CELL = 10_000;
/** At this share of the VCPUs, there are about two servers for each host. */
const FILL = 0.032;
const SCHEDULERS = [1, 8, 32];
const UTILISATIONS = [0.7, 0.98];
/** Each scheduler of a race holds a view of its own in this process, so 32 views of a million hosts would need some 50 GiB. */
const RACE_HOSTS = 32_000;
const RACE_REQUESTS = 4_000;
const RACE_ROUNDS = 3;

/** Measures one scheduler over a million hosts in a hundred cells, with about two million servers, and the races between schedulers. */
export async function run(): Promise<void> {
  let servers = 0;
  await reportSize(`${CELLS} × ${HOSTS_OF_CELL} hosts`, () => {
    const random = seededRandom(1);
    const cells = Array.from(
      { length: CELLS },
      (_, cell) => new MixedCloud(HOSTS_OF_CELL, random, { name: `cell-${cell}`, fill: FILL }),
    );
    servers = cells.reduce((sum, cell) => sum + cell.servers, 0);
    return cells;
  });
  process.stdout.write(`  with ${servers.toLocaleString("en-US")} servers\n`);
  for (const utilisation of UTILISATIONS) for (const schedulers of SCHEDULERS) reportRaces(schedulers, utilisation);
}

function reportRaces(schedulers: number, utilisation: number): void {
  const lost = Array.from({ length: RACE_ROUNDS }, (_, round) => {
    const random = seededRandom(round + 1);
    const { claims, refused } = new RaceWorld({ schedulers, hosts: RACE_HOSTS, utilisation, random }).run(
      RACE_REQUESTS,
    );
    return (100 * refused) / claims;
  });
  const what = `lost races, ${schedulers} schedulers, ${RACE_HOSTS} hosts at ${Math.round(utilisation * 100)} %`;
  report(what, measuredOf(lost), "%");
}
