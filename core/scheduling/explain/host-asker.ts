import { scanRoots } from "../../candidates/best/scan-trees.ts";
import { BoundRequest, CODE_GAVE_UP, CODE_NO_COMBINATION } from "../../candidates/bound/bound-request.ts";
import type { Refusal } from "../../candidates/refusal.ts";
import { ANY_TREE } from "../../candidates/request.ts";
import { boundlessSearch } from "../../candidates/search-budget.ts";
import type { BoundFilter } from "../filters/host-filters.ts";
import { searchOf } from "../host-request.ts";
import type { CellHosts } from "../ranking/cell-ranking.ts";
import { placeOnTree } from "../ranking/place-on-tree.ts";
import type { CellAsk } from "./examine-cell.ts";
import { STEP_COMBINATION, STEP_HOST, STEP_PLACEMENT, stepOf } from "./funnel.ts";
import { type Lack, lacksOf } from "./lacks.ts";

/** The result of one step for a host; `refusal` is null when the host passes. */
export interface HostVerdict {
  readonly step: string;
  readonly refusal: Refusal | null;
}

export interface HostAnswer {
  readonly cell: string;
  readonly host: string;
  /** The result of every step in order, including steps after the first failed one, as far as they can be judged then. */
  readonly verdicts: readonly HostVerdict[];
  /** The resources of which its providers have too little. */
  readonly lacks: readonly Lack[];
}

/**
 * Reports what each step says about a single host, which answers "why not this one". It is bound to the current state of a cell and a
 * request, so use it before the view changes.
 *
 * Cost: a few microseconds a host, regardless of the size of the cell.
 */
export class HostAsker {
  readonly #cell: CellHosts;
  readonly #filters: readonly BoundFilter[];
  /** The request as the search compiles it, and the same request without its conditions on hosts. */
  readonly #whole: BoundRequest;
  readonly #anywhere: BoundRequest;
  readonly #one = new Int32Array(1);

  constructor(cell: CellHosts, { hostRequest, bound, excludedHosts }: CellAsk) {
    this.#cell = cell;
    this.#filters = [...bound.kind, ...bound.request];
    const asked = searchOf(hostRequest);
    this.#whole = new BoundRequest(cell.view, { ...asked, trees: { ...asked.trees, excludedHosts } });
    this.#anywhere = new BoundRequest(cell.view, { ...asked, trees: ANY_TREE });
  }

  /** Examines one host. `root` is the slot of its root provider in the cell's view. */
  ask(root: number): HostAnswer {
    const { view, name } = this.#cell;
    const byHost = this.#prefilter(this.#whole, root);
    const isOfHost = byHost !== null && stepOf(byHost) === STEP_HOST;
    const byPlacement = isOfHost ? this.#prefilter(this.#anywhere, root) : byHost;
    const facts = this.#cell.facts?.at(root);
    const byFilters = this.#filters.map(({ name: filter, check }): HostVerdict => {
      const why = facts ? check(facts) : null;
      return { step: filter, refusal: why === null ? null : { kind: "filtered", filter, why } };
    });
    return {
      cell: name,
      host: view.hosts.nameOf(root) ?? view.slots.nameOf(root),
      verdicts: [
        { step: STEP_HOST, refusal: isOfHost ? byHost : null },
        { step: STEP_PLACEMENT, refusal: byPlacement },
        ...byFilters,
        ...(byPlacement === null ? [{ step: STEP_COMBINATION, refusal: this.#combine(root) }] : []),
      ],
      lacks: lacksOf(this.#anywhere, root),
    };
  }

  #prefilter(request: BoundRequest, root: number): Refusal | null {
    request.refused.fill(0);
    this.#one[0] = root;
    const passes = scanRoots(request, this.#one, { from: 0, to: 1 }, new Int32Array(1)) === 1;
    return passes ? null : (request.refusals()[0]?.refusal ?? null);
  }

  #combine(root: number): Refusal | null {
    const way = placeOnTree(this.#anywhere, root, boundlessSearch());
    if (way === CODE_NO_COMBINATION) return { kind: "no-combination" };
    return way === CODE_GAVE_UP ? { kind: "gave-up" } : null;
  }
}

/** The first refusal of a host, or null when it passes every step. */
export function firstRefusal({ verdicts }: Pick<HostAnswer, "verdicts">): Refusal | null {
  return verdicts.find(({ refusal }) => refusal !== null)?.refusal ?? null;
}
