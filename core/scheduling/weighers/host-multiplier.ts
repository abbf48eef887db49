import { lowestOf } from "../filters/aggregate-metadata.ts";
import type { CellFacts } from "../host-facts.ts";
import type { WeighedBy } from "./weigher.ts";

/**
 * How much a weigher counts for each host of a cell, where metadata of any aggregate says so: the lowest of a host's aggregates,
 * else the global multiplier. Null: for all hosts the global one. As Nova's get_weight_multiplier.
 */
export function hostMultiplier(
  { option, multiplier }: Pick<WeighedBy, "option" | "multiplier">,
  facts: CellFacts | undefined,
): ((root: number) => number) | null {
  if (option === undefined || !facts?.hasMetadata(option)) return null;
  return (root) => {
    const host = facts.at(root);
    return host ? lowestOf(host.aggregates, option, multiplier) : multiplier;
  };
}

/** Whether a weigher counts for any host of these cells: a multiplier of 0 may be another one for the hosts of an aggregate. */
export function countsAnywhere(
  { option, multiplier }: Pick<WeighedBy, "option" | "multiplier">,
  cells: readonly { readonly facts?: CellFacts | undefined }[],
): boolean {
  if (multiplier !== 0) return true;
  return option !== undefined && cells.some(({ facts }) => facts?.hasMetadata(option) === true);
}
