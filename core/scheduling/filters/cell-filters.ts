import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { CellFacts } from "../host-facts.ts";
import type { HostFilter } from "./host-filter.ts";
import { type BoundFilters, bindFilters } from "./host-filters.ts";

/** A cell whose hosts are filtered. Without facts no filter applies to them. */
interface OneCell {
  readonly name: string;
  readonly view: LedgerView;
  readonly facts?: CellFacts | undefined;
}

const NOTHING_BOUND: BoundFilters = { kind: [], request: [] };
const NO_NAMES: readonly string[] = [];

/** Binds the filters to one request and the hosts of a cell. Without a spec or facts there are no filters to apply. */
export function boundTo(cell: OneCell, spec: ServerSpec | null, filters: readonly HostFilter[]): BoundFilters {
  if (!spec || filters.length === 0) return NOTHING_BOUND;
  const { name, view, facts } = cell;
  return facts ? bindFilters(filters, spec, { name, view, facts }) : NOTHING_BOUND;
}

/**
 * The filters of one request over several cells. They are bound to a cell when its hosts are examined, because a decision examines hosts of
 * few cells. Use it before any view changes.
 */
export class CellFilters {
  readonly #filters: readonly HostFilter[];
  readonly #spec: ServerSpec | null;
  readonly #cells: readonly OneCell[];
  readonly #bound: (BoundFilters | undefined)[] = [];

  constructor(filters: readonly HostFilter[], spec: ServerSpec | null, cells: readonly OneCell[]) {
    this.#filters = filters;
    this.#spec = spec;
    this.#cells = cells;
  }

  /** The filters bound to the cell with this index. */
  of(cell: number): BoundFilters {
    let bound = this.#bound[cell];
    if (bound === undefined) {
      bound = boundTo(this.#cells[cell]!, this.#spec, this.#filters);
      this.#bound[cell] = bound;
    }
    return bound;
  }

  /**
   * Names of the filters of kind `kind` that apply to the request in any cell. Cost: a filter that may apply in some cells only is bound to
   * one cell after the other until it applies; the others are bound once.
   */
  kindNames(): readonly string[] {
    const first = this.#cells.findIndex(({ facts }) => facts !== undefined);
    if (this.#spec === null || this.#spec.forcedHost !== "" || first < 0) return NO_NAMES;
    const names = this.of(first).kind.map(({ name }) => name);
    for (const filter of this.#filters) {
      const isDecided = filter.decidedBy !== "kind" || filter.isForAllCells === true || names.includes(filter.name);
      if (!isDecided && this.#appliesAfter(first, filter, this.#spec)) names.push(filter.name);
    }
    return names;
  }

  #appliesAfter(first: number, filter: HostFilter, spec: ServerSpec): boolean {
    for (let index = first + 1; index < this.#cells.length; index += 1) {
      const { name, view, facts } = this.#cells[index]!;
      if (facts && filter.bind(spec, { name, view, facts }) !== null) return true;
    }
    return false;
  }
}
