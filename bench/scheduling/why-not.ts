import { assert } from "../../core/assert.ts";
import { placedDecision, refusedDecision } from "../../core/scheduling/explain/decision.ts";
import { type Explanation, explainRequest } from "../../core/scheduling/explain/explain-request.ts";
import { bytesOf, trimDecision } from "../../core/scheduling/explain/trim-decision.ts";
import { HostChooser } from "../../core/scheduling/host-chooser.ts";
import { seededRandom } from "../../core/scheduling/seeded-random.ts";
import { measure, report } from "../measure.ts";
import { MixedCloud, QUERIES, specOf } from "./mixed-cloud.ts";
import { allRules } from "./rules.ts";

const HOSTS = 10_000;
const EFFORT = { tries: 3, lostRaces: 2, looks: 1, viewLagMs: 12.345 };

/** Measures the slowest question, why none of the hosts is suitable, and the memory that the answer takes. */
export async function reportWhyNot(): Promise<void> {
  const cloud = new MixedCloud(HOSTS, seededRandom(3));
  const { filters, weighers } = allRules("scheduler-1");
  const hostRequest = QUERIES[3]!;
  const common = { seed: 1, alternates: 2, weighers, filters, spread: 5, spreadTolerance: 0.05 };
  const nowhere = { ...common, spec: { ...specOf(3, "asked"), availabilityZone: "nowhere" } };
  const tookMs = await measure(() => {
    const startedMs = performance.now();
    const choice = new HostChooser().choose(hostRequest, [cloud], nowhere);
    if (choice.kind === "chosen") throw new Error("no host is in that zone");
    return performance.now() - startedMs;
  });
  report(`why not, of each of ${HOSTS} hosts, from a standing start`, tookMs, "ms");
  let explained: Explanation | null = null;
  const explainMs = await measure(() => {
    const startedMs = performance.now();
    const ask = { hostsMax: 5, missesMax: 5, count: 1, host: "host-7" };
    explained = explainRequest([cloud], { hostRequest, options: nowhere, ...ask });
    return performance.now() - startedMs;
  });
  report(`explain with nearest misses and one host asked about, over ${HOSTS} hosts`, explainMs, "ms");
  assert(explained !== null, "it was explained");
  const { funnel, misses } = explained as Explanation;
  const refused = refusedDecision({ funnels: funnel.cells, misses, unseen: [] }, EFFORT);
  report("record of a refusal", await measure(() => bytesOf(trimDecision(refused))), "bytes");
  const choice = new HostChooser().choose(hostRequest, [cloud], { ...common, spec: specOf(3, "asked") });
  assert(choice.kind === "chosen", "the cloud is half empty");
  const placed = placedDecision({ ...choice, weights: choice.weights() }, EFFORT);
  report("record of a placement", await measure(() => bytesOf(trimDecision(placed))), "bytes");
}
