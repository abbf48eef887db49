import { HostChooser } from "../../core/scheduling/choose-hosts.ts";
import { seededRandom } from "../../core/scheduling/seeded-random.ts";
import { measure, report } from "../measure.ts";
import { MixedCloud, QUERIES, specOf } from "./mixed-cloud.ts";
import { allRules } from "./rules.ts";

const HOSTS = 10_000;

/** Why no host will do, of every host: the slowest question that there is. */
export async function reportWhyNot(): Promise<void> {
  const cloud = new MixedCloud(HOSTS, seededRandom(3));
  const { filters, weighers } = allRules("scheduler-1");
  const spec = { ...specOf(3, "asked"), availabilityZone: "nowhere" };
  const tookMs = await measure(() => {
    const startedMs = performance.now();
    const options = { seed: 1, alternates: 2, weighers, filters, spec, spread: 5, spreadTolerance: 0.05 };
    const choice = new HostChooser().choose(QUERIES[3]!, [cloud], options);
    if (choice.kind === "chosen") throw new Error("no host is in that zone");
    return performance.now() - startedMs;
  });
  report(`why not, of each of ${HOSTS} hosts, from a standing start`, tookMs, "ms");
}
