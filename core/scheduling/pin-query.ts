import type { ProviderUuid } from "../ledger/ids.ts";
import type { PlacementQuery } from "./placement-query.ts";

/**
 * The query as one that only the tree of this root provider can serve: the unnumbered group says so, or each numbered one
 * where there is none. A group that names a tree already keeps it.
 */
export function pinQuery(query: PlacementQuery, root: ProviderUuid): PlacementQuery {
  const hasUnnumbered = query.groups.some((group) => group.suffix === "");
  const groups = query.groups.map((group) =>
    group.inTree === null && (group.suffix === "" || !hasUnnumbered) ? { ...group, inTree: root } : group,
  );
  return { ...query, groups };
}
