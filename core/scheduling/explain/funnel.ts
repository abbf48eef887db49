import { type Refusal, type RefusalCount, sumRefusals } from "../../candidates/refusal.ts";

/** The steps that are no host filter; those are called by their names, and come before `STEP_COMBINATION`. */
export const STEP_HOST = "host";
export const STEP_PLACEMENT = "placement";
export const STEP_COMBINATION = "combination";

/** One step of the search for hosts: how many it left, and for which reasons it removed the others. */
export interface FunnelStep {
  readonly step: string;
  readonly left: number;
  /** Most frequent first. */
  readonly removed: readonly RefusalCount[];
}

/** What became of the provider trees of one cell. Each tree is counted once, at the first step that it failed. */
export interface CellFunnel {
  readonly cell: string;
  readonly trees: number;
  /** In the order in which hosts are asked. */
  readonly steps: readonly FunnelStep[];
}

/** Of all cells together. */
export interface Funnel {
  readonly trees: number;
  readonly steps: readonly FunnelStep[];
  readonly cells: readonly CellFunnel[];
}

/** The step at which a host gets a refusal. */
export function stepOf(refusal: Refusal): string {
  switch (refusal.kind) {
    case "no-host":
    case "host-down":
    case "host-disabled":
    case "host-excluded":
    case "other-host":
      return STEP_HOST;
    case "traits":
    case "aggregates":
    case "other-tree":
    case "lacks":
      return STEP_PLACEMENT;
    case "filtered":
      return refusal.filter;
    case "no-combination":
    case "gave-up":
    case "not-searched":
      return STEP_COMBINATION;
    default:
      return refusal satisfies never;
  }
}

/** The funnel of one cell from what was counted there. `filters`: those that had something to say, in order. */
export function funnelOf(
  cell: string,
  trees: number,
  filters: readonly string[],
  refusals: readonly RefusalCount[],
): CellFunnel {
  let left = trees;
  const steps = [STEP_HOST, STEP_PLACEMENT, ...filters, STEP_COMBINATION].map((step) => {
    const removed = sumRefusals(refusals.filter(({ refusal }) => stepOf(refusal) === step));
    for (const count of removed) left -= count.trees;
    return { step, left, removed };
  });
  return { cell, trees, steps };
}

/** Adds up the funnels of several cells. A filter that has nothing to say in one of them leaves all there. */
export function sumFunnels(cells: readonly CellFunnel[]): Funnel {
  const names = new Set(cells.flatMap(({ steps }) => steps.map(({ step }) => step)));
  // Whatever filter only a later cell has comes before the end, too.
  const hasEnd = names.delete(STEP_COMBINATION);
  const order = hasEnd ? [...names, STEP_COMBINATION] : [...names];
  const trees = cells.reduce((sum, cell) => sum + cell.trees, 0);
  let left = trees;
  const steps = order.map((step) => {
    const counts = cells.flatMap((cell) => cell.steps.find((one) => one.step === step)?.removed ?? []);
    const removed = sumRefusals(counts);
    for (const count of removed) left -= count.trees;
    return { step, left, removed };
  });
  return { trees, steps, cells };
}

/** Every reason of a funnel, most frequent first. */
export function refusalsOf({ steps }: Pick<Funnel, "steps">): RefusalCount[] {
  return sumRefusals(steps.flatMap(({ removed }) => removed));
}
