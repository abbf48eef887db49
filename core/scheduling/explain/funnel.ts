import { type Refusal, type RefusalCount, sumRefusals } from "../../candidates/refusal.ts";

/** The steps that are not host filters. Host filters are steps under their own names, and come before `STEP_COMBINATION`. */
export const STEP_HOST = "host";
export const STEP_PLACEMENT = "placement";
export const STEP_COMBINATION = "combination";

/** One step of the search for hosts: how many trees it left, and why it removed the others. */
export interface FunnelStep {
  readonly step: string;
  readonly left: number;
  /** The reasons, with the most frequent first. */
  readonly removed: readonly RefusalCount[];
}

/** How many provider trees of one cell each step removed. Each tree is counted once, at the first step that it failed. */
export interface CellFunnel {
  readonly cell: string;
  readonly trees: number;
  /** The steps in the order in which they are applied. */
  readonly steps: readonly FunnelStep[];
}

/** The funnel of all cells together. */
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

/** Builds the funnel of one cell from its counts. `filters` names the filters that applied to the request, in order. */
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

/** Adds up the funnels of several cells. In a cell where a filter does not apply, it leaves all trees. */
export function sumFunnels(cells: readonly CellFunnel[]): Funnel {
  const names = new Set(cells.flatMap(({ steps }) => steps.map(({ step }) => step)));
  // A filter that only a later cell has must also come before the last step.
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

/** Every reason of a funnel, with the most frequent first. */
export function refusalsOf({ steps }: Pick<Funnel, "steps">): RefusalCount[] {
  return sumRefusals(steps.flatMap(({ removed }) => removed));
}
