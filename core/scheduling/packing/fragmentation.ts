import { ImaginedStreams } from "./imagined-streams.ts";
import { LearningSchedule } from "./learning-schedule.ts";
import type { MachinePark } from "./machine-park.ts";
import type { PackingPolicy } from "./packing-policy.ts";
import { RecentTasks } from "./recent-tasks.ts";
import { SlotPrices } from "./slot-prices.ts";
import type { Waste } from "./state-ratings.ts";
import type { TaskShape } from "./task-shape.ts";
import { WasteGradient } from "./waste-gradient.ts";

/** Number of recent tasks that the measure of waste considers, since older ones no longer predict what will come. */
export const REMEMBERED = 1024;
const STREAMS = 16;
const STREAM_TASKS = 32;
/** Number of recent tasks that the demand for slots considers: a large shape that comes once in a thousand tasks still counts. */
export const DEMAND_REMEMBERED = 4096;
/** Number of tasks after which slots are priced again. */
const REPRICE_EVERY = 16;

/**
 * Berth's own policy: a task goes where the GPU that becomes useless and the slots that are used up cost least.
 *
 * Useless GPU: the policy imagines that pieces of the recent past come again, each to one machine alone. The part of the machine's GPUs
 * that is then still free is waste. A machine wastes much when it is short of CPU for its GPUs, or when its GPUs are divided so that the
 * usual tasks leave holes. Slots: few machines have room for a large task. They stay free while that costs little, so that large tasks are
 * not refused while most of the park is empty. Slots for tasks without GPUs are kept, too, so that these do not need the former.
 *
 * The policy knows nothing of the workload except the tasks that have arrived. It considers CPU and GPUs, but not memory.
 */
export function fragmentation(park: MachinePark): PackingPolicy {
  const past = new RecentTasks(REMEMBERED);
  const demand = new RecentTasks(DEMAND_REMEMBERED);
  const learning = new LearningSchedule(REMEMBERED);
  const kinds = kindsOf(park);
  let waste: Waste = () => 0;
  let repriceAt = 0;
  const gradient = new WasteGradient(
    park,
    (state) => waste(state),
    (saved, before, after) => saved - slots.lost(before, after),
  );
  const slots = new SlotPrices((state) => gradient.stateAt(state));

  function learn(): void {
    waste = learnedWaste(past);
    gradient.forget();
    slots.expect({ shapes: demand.shapes(), tasks: demand.seen }, kinds, gradient.states());
    repriceAt = 0;
  }

  function reprice(): void {
    repriceAt = demand.seen + REPRICE_EVERY;
    slots.reprice({ cpuMilli: sumOf(park.cpuFree), gpuMilli: sumOf(park.gpuFreeSum) }, demand.meanAmounts());
    gradient.forgetRatings();
  }

  return {
    arrive(task) {
      past.add(task);
      demand.add(task);
      if (learning.isDue(past.seen)) learn();
      if (demand.seen >= repriceAt) reprice();
    },
    score: (task, machine) => gradient.score(task, machine),
    chooseGpu: (task, machine) => gradient.chooseGpu(task, machine),
    placed(_, machine) {
      const before = gradient.states()[machine]!;
      gradient.changed(machine);
      slots.changed(before, gradient.states()[machine]!);
    },
  };
}

/** The measure of waste learned from the recent past. Without any past, nothing is wasted. */
export function learnedWaste(past: RecentTasks): Waste {
  if (past.seen === 0) return () => 0;
  const streams = new ImaginedStreams(past.streams(STREAMS, STREAM_TASKS));
  return (state) => streams.expectedLeftover(state);
}

/** A policy that only reduces a measure of waste, which it learns from the recent tasks at intervals. */
export function packByWaste(park: MachinePark, learn: (past: RecentTasks) => Waste): PackingPolicy {
  const past = new RecentTasks(REMEMBERED);
  const learning = new LearningSchedule(REMEMBERED);
  let waste: Waste = () => 0;
  const gradient = new WasteGradient(park, (state) => waste(state));
  return {
    arrive(task) {
      past.add(task);
      if (!learning.isDue(past.seen)) return;
      waste = learn(past);
      gradient.forget();
    },
    score: (task, machine) => gradient.score(task, machine),
    chooseGpu: (task, machine) => gradient.chooseGpu(task, machine),
    placed: (_, machine) => gradient.changed(machine),
  };
}

function sumOf(amounts: Int32Array): number {
  return amounts.reduce((sum, amount) => sum + amount, 0);
}

/** One task for each kind of machine, which takes a whole empty machine of that kind. */
function kindsOf(park: MachinePark): TaskShape[] {
  const kinds = new Map<string, TaskShape>();
  for (let machine = 0; machine < park.count; machine += 1) {
    const cpuMilli = park.cpuFree[machine]!;
    const gpus = park.gpuCount[machine]!;
    const model = park.models[machine]!;
    if (gpus === 0) continue;
    const shape = { index: -1, cpuMilli, memoryMib: 0, gpus, gpuMilli: 1000, gpuModels: [model] };
    kinds.set([cpuMilli, gpus, model].join(), shape);
  }
  return [...kinds.values()];
}
