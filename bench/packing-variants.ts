import { fragmentation, packByWaste } from "../core/scheduling/packing/fragmentation.ts";
import {
  expectedFragment,
  fragmentationGradientDescent,
  typicalTasks,
} from "../core/scheduling/packing/fragmentation-gradient-descent.ts";
import { ImaginedStreams } from "../core/scheduling/packing/imagined-streams.ts";
import type { MachinePark } from "../core/scheduling/packing/machine-park.ts";
import type { PackingPolicy } from "../core/scheduling/packing/packing-policy.ts";
import type { RecentTasks } from "../core/scheduling/packing/recent-tasks.ts";
import type { MachineState, Waste } from "../core/scheduling/packing/state-ratings.ts";
import { gpuMilliSum, shapesOf, type TaskShape } from "../core/scheduling/packing/task-shape.ts";
import { seededRandom } from "../core/scheduling/seeded-random.ts";
import { placeDrawn } from "../replay/place-only/run-experiment.ts";
import { readTrace } from "../replay/read-trace.ts";

// `node bench/packing-variants.ts TRACE_DIR LIST` prints the results at 130 % of the ideas that docs/packing.md describes, as the mean of
// seeds 42 to 44. Takes a minute or two.

const SEEDS = [42, 43, 44];
const INFLATE = 1.3;

function streams(count: number, length: number, nextWeight: number): (past: RecentTasks) => Waste {
  return (past) => {
    const imagined = new ImaginedStreams(past.streams(count, length));
    const demand = past.gpuDemand();
    return (state) => imagined.expectedLeftover(state) + nextWeight * expectedFragment(state, demand);
  };
}

/** Estimates the free GPU share that remains if a machine is filled with tasks of one shape, as the mean over the tasks seen. */
function copies(past: RecentTasks): Waste {
  const typical = typicalTasks(past.all().filter(({ gpus }) => gpus > 0));
  return (state) =>
    typical.reduce((sum, { shape, share }) => sum + share * (state.gpuFreeSum - filledBy(shape, state)), 0);
}

function filledBy(shape: TaskShape, { cpuFree, gpuFree, gpusWhole }: MachineState): number {
  const byGpu =
    shape.gpus > 1
      ? Math.floor(gpusWhole / shape.gpus)
      : gpuFree.reduce((sum, free) => sum + Math.floor(free / shape.gpuMilli), 0);
  return Math.min(byGpu, Math.floor(cpuFree / Math.max(1, shape.cpuMilli))) * gpuMilliSum(shape);
}

function fgdWithDrawnEquals(park: MachinePark, workload: readonly TaskShape[]): PackingPolicy {
  const fgd = fragmentationGradientDescent(park, workload);
  const random = seededRandom(1);
  return { ...fgd, score: (task, machine) => fgd.score(task, machine) + random() / 2 };
}

function learnt(learn: (past: RecentTasks) => Waste): (park: MachinePark) => PackingPolicy {
  return (park) => packByWaste(park, learn);
}

const [directory = ".", list = "default"] = process.argv.slice(2);
const trace = readTrace(directory, { hosts: "openb_node_list_gpu_node.csv", tasks: `openb_pod_list_${list}.csv` });
const workload = shapesOf(trace.tasks);
const variants: Readonly<Record<string, (park: MachinePark) => PackingPolicy>> = {
  "FGD, as published": (park) => fragmentationGradientDescent(park, workload),
  "FGD, equals drawn at random": (park) => fgdWithDrawnEquals(park, workload),
  "FGD's measure over the tasks seen": learnt((past) => {
    const typical = typicalTasks(past.all());
    return (state) => expectedFragment(state, typical);
  }),
  "the same, by GPU asked for": learnt((past) => {
    const demand = past.gpuDemand();
    return (state) => expectedFragment(state, demand);
  }),
  "filling with one shape": learnt(copies),
  "8 streams of 32": learnt(streams(8, 32, 0)),
  "16 streams of 32": learnt(streams(16, 32, 0)),
  "16 streams of 128": learnt(streams(16, 128, 0)),
  "16 of 32, next task 0.1": learnt(streams(16, 32, 0.1)),
  "16 of 32, next task 0.5": learnt(streams(16, 32, 0.5)),
  "16 of 32, priced slots (fragmentation)": fragmentation,
};
for (const [name, policyOf] of Object.entries(variants)) {
  const ends = SEEDS.map((seed) => placeDrawn(trace, { seed, inflate: INFLATE }, policyOf).allocated.at(-1) ?? 0);
  const mean = ends.reduce((sum, end) => sum + end, 0) / ends.length;
  process.stdout.write(`${name.padEnd(42)}${mean.toFixed(2)}\n`);
}
