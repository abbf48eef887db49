import { expectedFragment } from "./fragmentation-gradient-descent.ts";
import { ImaginedStreams } from "./imagined-streams.ts";
import type { MachinePark } from "./machine-park.ts";
import type { PackingPolicy } from "./packing-policy.ts";
import { RecentTasks } from "./recent-tasks.ts";
import type { Waste } from "./state-ratings.ts";
import { WasteGradient } from "./waste-gradient.ts";

/** How far back it remembers, in tasks: what is older no longer says what will come. */
const REMEMBERED = 1024;
/** It looks at the past anew when all that it remembers is new, in the beginning when half as many as before have come. */
const RELEARN_GROWTH = 1.5;
const RELEARN_FIRST = 20;
const STREAMS = 16;
const STREAM_TASKS = 32;
/** How much the next task counts beside the long run. */
const NEXT_TASK_WEIGHT = 0.1;

/**
 * Our own: a task goes where the GPUs that stay of no use grow least. It imagines that pieces of the recent past come again, each
 * to one machine alone, and takes for useless what of its GPUs is still free then: a machine short of CPU for its GPUs, or
 * whose GPUs are cut so that what usually comes leaves holes, wastes much. Since small tasks fill what big ones no longer fit
 * into, what the next task that wants GPUs could not use counts, too, a little: that keeps room for the big ones together.
 *
 * It knows nothing of the workload but the tasks that arrived so far, and looks at CPU and GPUs, not at memory.
 */
export function fragmentation(park: MachinePark): PackingPolicy {
  return packByWaste(park, learnedWaste);
}

/** The measure of waste that the recent past teaches; before there is any, nothing is wasted. */
export function learnedWaste(past: RecentTasks): Waste {
  if (past.seen === 0) return () => 0;
  const streams = new ImaginedStreams(past.streams(STREAMS, STREAM_TASKS));
  const demand = past.gpuDemand();
  return (state) => streams.expectedLeftover(state) + NEXT_TASK_WEIGHT * expectedFragment(state, demand);
}

/** Descends along a measure of waste that is learned anew from the recent tasks now and then. */
export function packByWaste(park: MachinePark, learn: (past: RecentTasks) => Waste): PackingPolicy {
  const past = new RecentTasks(REMEMBERED);
  let waste: Waste = () => 0;
  let relearnAt = 0;
  const gradient = new WasteGradient(park, (state) => waste(state));
  return {
    arrive(task) {
      past.add(task);
      if (past.seen < relearnAt) return;
      relearnAt = Math.min(past.seen * RELEARN_GROWTH + RELEARN_FIRST, past.seen + REMEMBERED);
      waste = learn(past);
      gradient.forget();
    },
    score: (task, machine) => gradient.score(task, machine),
    chooseGpu: (task, machine) => gradient.chooseGpu(task, machine),
    placed: (_, machine) => gradient.changed(machine),
  };
}
