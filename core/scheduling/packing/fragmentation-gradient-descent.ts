import type { MachinePark } from "./machine-park.ts";
import type { PackingPolicy } from "./packing-policy.ts";
import type { MachineState } from "./state-ratings.ts";
import { allowsModel, type TaskShape } from "./task-shape.ts";
import { WasteGradient } from "./waste-gradient.ts";

/** The typical shapes of a workload are the most frequent ones that together make up this share of its tasks. */
const TYPICAL_SHARE = 0.95;

export interface TypicalTask {
  readonly shape: TaskShape;
  /** This shape's share of all typical tasks. */
  readonly share: number;
}

/**
 * The FGD policy of "Beware of Fragmentation" (USENIX ATC 2023), which knows the whole workload beforehand. It prefers the machine where
 * the expected fragmentation grows least, in whole per cent.
 */
export function fragmentationGradientDescent(park: MachinePark, workload: readonly TaskShape[]): PackingPolicy {
  const typical = typicalTasks(workload);
  const gradient = new WasteGradient(
    park,
    (state) => expectedFragment(state, typical),
    (saved) => Math.trunc((1 / (1 + Math.exp(-saved / 1000))) * 100),
  );
  return {
    score: (task, machine) => gradient.score(task, machine),
    chooseGpu: (task, machine) => gradient.chooseGpu(task, machine),
    placed: (_, machine) => gradient.changed(machine),
  };
}

/** The typical tasks of a workload, with memory ignored. */
export function typicalTasks(workload: readonly TaskShape[]): TypicalTask[] {
  const counts = new Map<string, { shape: TaskShape; count: number }>();
  for (const shape of workload) {
    const key = [shape.cpuMilli, shape.gpuMilli, shape.gpus, ...shape.gpuModels].join();
    const found = counts.get(key) ?? { shape, count: 0 };
    found.count += 1;
    counts.set(key, found);
  }
  const ranked = [...counts.values()].sort((one, other) => other.count - one.count || bigger(one.shape, other.shape));
  let covered = 0;
  const typical = ranked.filter(({ count }) => {
    const needed = covered < TYPICAL_SHARE * workload.length;
    if (needed) covered += count;
    return needed;
  });
  const part = covered / workload.length;
  return typical.map(({ shape, count }) => ({ shape, share: count / workload.length / part }));
}

/** Orders shapes that are equally frequent, since the last digits of a sum depend on the order. */
function bigger(one: TaskShape, other: TaskShape): number {
  const models = (shape: TaskShape): string => shape.gpuModels.join("|");
  return (
    other.cpuMilli - one.cpuMilli ||
    other.gpuMilli - one.gpuMilli ||
    other.gpus - one.gpus ||
    (models(one) < models(other) ? 1 : -1)
  );
}

/**
 * How much free GPU a task drawn from the typical ones could not use: all of it when the task does not fit or needs no GPU, otherwise what
 * lies on GPUs with too little. The sums follow the cases of the paper.
 */
export function expectedFragment(state: MachineState, typical: readonly TypicalTask[]): number {
  let lacksBoth = 0;
  let lacksGpu = 0;
  let lacksCpu = 0;
  let wantsNone = 0;
  let wantsNoneLacksCpu = 0;
  let noAccess = 0;
  for (const { shape, share } of typical) {
    const hasCpu = state.cpuFree >= shape.cpuMilli;
    const all = share * state.gpuFreeSum;
    if (shape.gpus === 0) {
      if (hasCpu) wantsNone += all;
      else wantsNoneLacksCpu += all;
    } else if (!allowsModel(shape, state.model)) noAccess += all;
    else {
      const { gpus, stranded } = fittingGpus(state, shape);
      if (gpus < shape.gpus) {
        if (hasCpu) lacksGpu += all;
        else lacksBoth += all;
      } else if (hasCpu) lacksGpu += share * stranded;
      else lacksCpu += all;
    }
  }
  return lacksBoth + lacksGpu + lacksCpu + wantsNone + wantsNoneLacksCpu + noAccess;
}

function fittingGpus({ gpuFree }: MachineState, shape: TaskShape): { gpus: number; stranded: number } {
  let gpus = 0;
  let stranded = 0;
  for (const free of gpuFree) {
    if (free >= shape.gpuMilli) gpus += 1;
    else stranded += free;
  }
  return { gpus, stranded };
}
