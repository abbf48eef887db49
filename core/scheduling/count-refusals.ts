import { CODE_GAVE_UP, CODE_NO_COMBINATION, CompiledRequest } from "../candidates/compiled-request.ts";
import type { RefusalCount } from "../candidates/refusal.ts";
import { scanTrees } from "../candidates/scan-trees.ts";
import { type BoundFilter, type BoundFilters, refusedBy } from "./filters/host-filters.ts";
import type { PlacementQuery } from "./placement-query.ts";
import { type CellRanking, candidateRequestOf } from "./ranking/cell-ranking.ts";
import { placeOnTree } from "./ranking/place-on-tree.ts";

/**
 * Why no host of a cell will do, counted: the first reason of each host, in the order in which a host is asked.
 *
 * Cost: some 20 ns a host, and a microsecond for each that the ledger alone does not refuse.
 */
export function countRefusals(
  ranking: CellRanking,
  query: PlacementQuery,
  { kind, request: own }: BoundFilters,
  excludedHosts: ReadonlySet<string>,
): RefusalCount[] {
  const { view, facts } = ranking.cell;
  const asked = candidateRequestOf(query);
  const request = new CompiledRequest(view, { ...asked, trees: { ...asked.trees, excludedHosts } });
  const roots = new Int32Array(view.slots.rootCount);
  const count = scanTrees(request, 0, roots.length, roots);
  const filtered = new Map<string, RefusalCount>();
  const filters: readonly BoundFilter[] = [...kind, ...own];
  for (let index = 0; index < count; index += 1) {
    const root = roots[index]!;
    const host = filters.length > 0 ? facts?.at(root) : undefined;
    const verdict = host ? refusedBy(filters, host) : null;
    if (verdict) {
      const { filter, reason } = verdict;
      const key = `${filter} ${reason}`;
      const trees = 1 + (filtered.get(key)?.trees ?? 0);
      filtered.set(key, { refusal: { kind: "filtered", filter, why: reason }, trees });
      continue;
    }
    const code = ranking.misfits.get(root) ?? placeOnTree(request, root);
    if (code === CODE_NO_COMBINATION || code === CODE_GAVE_UP) request.refuse(code);
  }
  return [...request.refusals(), ...filtered.values()];
}
