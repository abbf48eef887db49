import type { GroupRules } from "../request.ts";

/** The providers that serve each group, as slots of the view. */
export interface ServedGroups {
  readonly root: number;
  readonly mappings: readonly { readonly suffix: string; readonly slots: readonly number[] }[];
}

/** Whether the request has rules between its groups. */
export function hasGroupRules({ sameSubtree = [], apart = [] }: GroupRules): boolean {
  return sameSubtree.length > 0 || apart.length > 0;
}

/**
 * Whether an assignment keeps the rules between its groups. `parent` is indexed by slot and is -1 for a root. Cost: groups × depth for each
 * rule.
 */
export function keepsGroupRules(
  { sameSubtree = [], apart = [] }: GroupRules,
  { root, mappings }: ServedGroups,
  parent: Int32Array,
): boolean {
  const slotsOf = (suffixes: readonly string[]) =>
    mappings.flatMap(({ suffix, slots }) => (suffix !== "" && suffixes.includes(suffix) ? slots : []));
  return (
    sameSubtree.every((suffixes) => isOneSubtree(slotsOf(suffixes), parent)) &&
    apart.every((suffixes) => {
      const below = slotsOf(suffixes).filter((slot) => slot !== root);
      return new Set(below).size === below.length;
    })
  );
}

function isOneSubtree(slots: readonly number[], parent: Int32Array): boolean {
  return slots.length <= 1 || slots.some((top) => slots.every((slot) => isAtOrAbove(top, slot, parent)));
}

function isAtOrAbove(top: number, slot: number, parent: Int32Array): boolean {
  for (let one = slot; one >= 0; one = parent[one]!) if (one === top) return true;
  return false;
}
