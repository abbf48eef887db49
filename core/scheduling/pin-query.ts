import type { ProviderUuid } from "../ledger/ids.ts";
import type { PlacementQuery } from "./placement-query.ts";

/**
 * Restricts the query to the tree of this root provider, through the unnumbered group or, without one, through each numbered group. A group
 * that already names a tree keeps it.
 */
export function pinQuery(query: PlacementQuery, root: ProviderUuid): PlacementQuery {
  const hasUnnumbered = query.groups.some((group) => group.suffix === "");
  const groups = query.groups.map((group) =>
    group.inTree === null && (group.suffix === "" || !hasUnnumbered) ? { ...group, inTree: root } : group,
  );
  return { ...query, groups };
}
