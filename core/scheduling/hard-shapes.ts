import { DEFAULT_SEARCH_LIMITS, type SearchBudget, type SearchLimits } from "../candidates/search-budget.ts";
import type { HostRequest } from "./host-request.ts";

/** Maximum number of shapes that are remembered. */
const SHAPES_MAX = 1_000;
/** Maximum number of halvings: the smallest share of the limits for a shape is 2 to the power of minus this. */
const HALVINGS_MAX = 5;

/**
 * Shapes of queries whose searches were given up. A shape is what the groups ask for without the amounts, which a client could vary at
 * will. Each search of a shape that is given up halves the limits of the next one, and each one that completes doubles them again.
 */
export class HardShapes {
  readonly #limits: SearchLimits;
  /** By shape: how often its limits were halved. The shape that was given up most recently comes last. */
  readonly #halvings = new Map<string, number>();
  readonly #shapes = new WeakMap<HostRequest, string>();

  constructor(limits: SearchLimits = DEFAULT_SEARCH_LIMITS) {
    this.#limits = limits;
  }

  limitsFor(hostRequest: HostRequest): SearchLimits {
    if (this.#halvings.size === 0) return this.#limits;
    const share = 2 ** -(this.#halvings.get(this.#shapeOf(hostRequest)) ?? 0);
    const { steps, ms, stepsPerSlice } = this.#limits;
    return { steps: Math.ceil(steps * share), ms: ms * share, stepsPerSlice };
  }

  /** Learns from how a decision's search ended. */
  learn(hostRequest: HostRequest, search: SearchBudget): void {
    if (search.spentBy === null && this.#halvings.size === 0) return;
    const shape = this.#shapeOf(hostRequest);
    const halvings = (this.#halvings.get(shape) ?? 0) + (search.spentBy === null ? -1 : 1);
    this.#halvings.delete(shape);
    if (halvings > 0) this.#halvings.set(shape, Math.min(HALVINGS_MAX, halvings));
    for (const oldest of this.#halvings.keys()) {
      if (this.#halvings.size <= SHAPES_MAX) break;
      this.#halvings.delete(oldest);
    }
  }

  #shapeOf(hostRequest: HostRequest): string {
    const known = this.#shapes.get(hostRequest);
    if (known !== undefined) return known;
    const groups = hostRequest.groups.map(({ suffix, resources, requiredTraits }) =>
      [suffix === "" ? "all" : "one", ...[...resources.keys()].sort(), ...[...requiredTraits].sort()].join(),
    );
    const shape = [hostRequest.groupPolicy, ...groups.sort()].join(";");
    this.#shapes.set(hostRequest, shape);
    return shape;
  }
}
