import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { BoundPlacementGroup, BoundPlacementRequest, IndexedAmount } from "../bound/bound-placement-request.ts";
import { hasRoom } from "../bound/requested-amount.ts";
import type { SharingProviders } from "./sharing-providers.ts";

/**
 * One choice that a candidate has to make: the provider of a numbered group, or of one class of the group without suffix. Each class of
 * that group is a separate choice, which keeps the search lazy: their product is never listed.
 */
export interface Variable {
  readonly group: BoundPlacementGroup;
  readonly granular: boolean;
  /** Amounts that the chosen provider has to give. */
  readonly amounts: readonly IndexedAmount[];
  /** Slots that could serve, each considered alone. */
  readonly options: readonly number[];
}

/** The choices in the tree of this root, or null when a group has no provider there. Cost: linear in the tree and its sharing providers. */
export function treeVariables(
  view: LedgerView,
  request: BoundPlacementRequest,
  sharing: SharingProviders,
  root: number,
): readonly Variable[] | null {
  const descendants = view.slots.descendants(root);
  const tree = descendants.length === 0 ? [root] : [root, ...descendants];
  const lenders = sharing.servingTree(root, tree);
  const variables: Variable[] = [];
  for (const group of request.groups) {
    if (group.suffix !== "") {
      const options = granularOptions(view, group, tree, lenders);
      if (options.length === 0) return null;
      variables.push({ group, granular: true, amounts: group.amounts, options });
      continue;
    }
    for (const requested of group.amounts) {
      const options = classOptions(view, group, requested, { root, tree, lenders });
      if (options.length === 0) return null;
      variables.push({ group, granular: false, amounts: [requested], options });
    }
  }
  return variables;
}

/** Providers that can serve a numbered group alone, with all its classes, traits and aggregates. */
function granularOptions(
  view: LedgerView,
  group: BoundPlacementGroup,
  tree: readonly number[],
  lenders: readonly number[],
): readonly number[] {
  const own: number[] = [];
  if (group.findsNothing) return own;
  for (const slot of tree) if (servesAlone(view, group, slot)) own.push(slot);
  for (const slot of lenders) if (servesAlone(view, group, slot)) own.push(slot);
  return own;
}

function servesAlone({ slots }: LedgerView, group: BoundPlacementGroup, slot: number): boolean {
  for (const requested of group.amounts) if (!hasRoom(requested, slot)) return false;
  return (
    // Upstream ignores in_tree for a group without resources.
    (group.treeRoot < 0 || group.amounts.length === 0 || slots.root[slot] === group.treeRoot) &&
    group.traitsServe(slots.traitSet[slot]!) &&
    group.isMember(slots.aggregateSet[slot]!) &&
    !group.isForbiddenMember(slots.aggregateSet[slot]!)
  );
}

/**
 * Providers that could give one class of the group without suffix. Here membership of the tree's root counts for the whole tree, a provider
 * with a forbidden trait is excluded, and the required traits may be spread over the group's providers.
 */
function classOptions(
  view: LedgerView,
  group: BoundPlacementGroup,
  requested: IndexedAmount,
  place: { readonly root: number; readonly tree: readonly number[]; readonly lenders: readonly number[] },
): readonly number[] {
  const { slots } = view;
  const { root, tree, lenders } = place;
  if (group.treeRoot >= 0 && group.treeRoot !== root) return [];
  const rootSet = slots.aggregateSet[root]!;
  if (group.isForbiddenMember(rootSet)) return [];
  const rootIsMember = group.isMember(rootSet);
  const serves = (slot: number, isMember: boolean): boolean =>
    hasRoom(requested, slot) &&
    !group.traitsForbidden(slots.traitSet[slot]!) &&
    !group.isForbiddenMember(slots.aggregateSet[slot]!) &&
    (isMember || group.isMember(slots.aggregateSet[slot]!));
  const found: number[] = [];
  for (const slot of tree) if (serves(slot, rootIsMember)) found.push(slot);
  if (group.treeRoot < 0) for (const slot of lenders) if (serves(slot, false)) found.push(slot);
  return found;
}
