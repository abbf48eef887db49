import { lowestOf } from "../filters/aggregate-metadata.ts";
import type { CellFacts } from "../host-facts.ts";
import type { WeighedBy } from "./weigher.ts";

/**
 * A weigher's multiplier for each host of a cell when the metadata of any aggregate sets it: the lowest value of a host's aggregates, or
 * the global multiplier. Null when all hosts have the global one. Source: Nova's get_weight_multiplier.
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

/** Whether a weigher counts for any host of these cells. An aggregate may replace a multiplier of 0 for its hosts. */
export function countsAnywhere(
  { option, multiplier }: Pick<WeighedBy, "option" | "multiplier">,
  cells: readonly { readonly facts?: CellFacts | undefined }[],
): boolean {
  if (multiplier !== 0) return true;
  return option !== undefined && cells.some(({ facts }) => facts?.hasMetadata(option) === true);
}
