import { scanTrees } from "../../candidates/best/scan-trees.ts";
import { BoundRequest } from "../../candidates/bound/bound-request.ts";
import type { RefusalCount } from "../../candidates/refusal.ts";
import type { SearchBudget } from "../../candidates/search-budget.ts";
import { type BoundFilter, type BoundFilters, refusedBy } from "../filters/host-filters.ts";
import { type HostRequest, searchOf } from "../host-request.ts";
import type { CellHosts } from "../ranking/cell-ranking.ts";
import { placeOnTree } from "../ranking/place-on-tree.ts";
import { type CellFunnel, funnelOf } from "./funnel.ts";

/** The request for which a cell's hosts are examined. */
export interface CellAsk {
  readonly hostRequest: HostRequest;
  readonly bound: BoundFilters;
  /** Hosts that must not be chosen. */
  readonly excludedHosts: ReadonlySet<string>;
}

export interface CellExamination {
  readonly funnel: CellFunnel;
  /** Valid until the view changes. */
  readonly request: BoundRequest;
  /** By slot of the root: 1 if the request fits there. */
  readonly fits: Uint8Array;
}

/**
 * Counts why the hosts of a cell do not serve: the first reason of each host, in the order of the steps. `rejected` holds codes of roots
 * whose groups are known not to fit together. `search` is the budget for finding that out about the others; a host for which it does not
 * suffice counts as not searched.
 *
 * Cost: some 20 ns a host, and a microsecond for each host that the ledger alone does not refuse.
 */
export function examineCell(
  cell: CellHosts,
  { hostRequest, bound, excludedHosts }: CellAsk,
  search: SearchBudget,
  rejected: ReadonlyMap<number, number> = new Map(),
): CellExamination {
  const { view, facts } = cell;
  const asked = searchOf(hostRequest);
  const request = new BoundRequest(view, { ...asked, trees: { ...asked.trees, excludedHosts } });
  const roots = new Int32Array(view.slots.rootCount);
  const passed = roots.subarray(0, scanTrees(request, 0, roots.length, roots));
  const filters: readonly BoundFilter[] = [...bound.kind, ...bound.request];
  const filtered = new Map<string, RefusalCount>();
  const fits = new Uint8Array(view.slots.capacity);
  for (const root of passed) {
    const host = filters.length > 0 ? facts?.at(root) : undefined;
    const verdict = host ? refusedBy(filters, host) : null;
    if (verdict) {
      const { filter, reason } = verdict;
      const key = `${filter} ${reason}`;
      const trees = 1 + (filtered.get(key)?.trees ?? 0);
      filtered.set(key, { refusal: { kind: "filtered", filter, why: reason }, trees });
    } else {
      const code = fitsForSure(request, root) ? null : (rejected.get(root) ?? placeOnTree(request, root, search));
      if (typeof code === "number") request.refuse(code);
      else fits[root] = 1;
    }
  }
  const refusals = [...request.refusals(), ...filtered.values()];
  const names = filters.map(({ name }) => name);
  return {
    funnel: funnelOf(cell.name, view.slots.rootCount, names, refusals),
    request,
    fits,
  };
}

/** Whether the scan alone proves that the request fits, which is the case for a flat tree without numbered groups. */
function fitsForSure({ numbered, view }: BoundRequest, root: number): boolean {
  return numbered.length === 0 && view.slots.descendants(root).length === 0;
}
