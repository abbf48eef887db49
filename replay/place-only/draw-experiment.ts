import type { Machine, TraceTask } from "../trace.ts";
import { GoRandom } from "./go-random.ts";

/**
 * How many random numbers the published program uses between its tasks and its machines. Found by comparison: with 10, the curves of all
 * seeds agree.
 */
const NUMBERS_BETWEEN = 10;

/** The tasks of an experiment, in order, and the machines to place them on. */
export interface Experiment {
  readonly tasks: readonly TraceTask[];
  /** The order matters, because the first of equally good machines is taken. */
  readonly machines: readonly Machine[];
}

/**
 * Draws tasks by the protocol of the published experiments, with the same result for the same seed. The list is shuffled. Then further
 * tasks are drawn from the list until all tasks request `inflate` times all GPUs; if the list requests more, randomly drawn tasks are left
 * out instead. The order of the machines is also drawn.
 */
export function drawExperiment(
  list: readonly TraceTask[],
  machines: readonly Machine[],
  { inflate, seed }: { readonly inflate: number; readonly seed: number },
): Experiment {
  const random = new GoRandom(seed);
  // The published program draws one number here, for its log.
  random.int63();
  const named = [...list].sort(byName);
  const tasks = [...named];
  random.shuffle(tasks);
  const wanted = inflate * machines.reduce((sum, { gpus }) => sum + gpus * 1000, 0);
  let asked = tasks.reduce((sum, task) => sum + gpuMilliOf(task), 0);
  if (asked > wanted) {
    while (asked > wanted) {
      const [left] = tasks.splice(random.below(tasks.length), 1);
      asked -= gpuMilliOf(left!);
    }
  } else if (asked > 0 && asked < wanted) {
    for (;;) {
      const task = named[random.below(named.length)]!;
      // The comparison uses the share of a single GPU, as the published program does, so the last task may ask for more than is wanted.
      if (asked + task.gpuMilli > wanted) break;
      asked += gpuMilliOf(task);
      tasks.push(task);
    }
  }
  for (let spent = 0; spent < NUMBERS_BETWEEN; spent += 1) random.int63();
  return { tasks, machines: drawOrder([...machines].sort(byName), random) };
}

/** Assigns the machines their places as `rand.Perm` does. */
function drawOrder(machines: readonly Machine[], random: GoRandom): Machine[] {
  const places: number[] = [];
  for (let index = 0; index < machines.length; index += 1) {
    const other = random.below(index + 1);
    places[index] = places[other] ?? index;
    places[other] = index;
  }
  const ordered: Machine[] = [];
  for (const [index, machine] of machines.entries()) ordered[places[index]!] = machine;
  return ordered;
}

function gpuMilliOf({ gpus, gpuMilli }: TraceTask): number {
  return gpus * gpuMilli;
}

function byName(one: { readonly name: string }, other: { readonly name: string }): number {
  return one.name < other.name ? -1 : 1;
}
