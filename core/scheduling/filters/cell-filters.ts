import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { CellFacts } from "../host-facts.ts";
import type { HostFilter } from "./host-filter.ts";
import { type BoundFilter, type BoundFilters, bindFilters } from "./host-filters.ts";

/** A cell whose hosts are filtered. Without facts no filter applies to them. */
interface OneCell {
  readonly name: string;
  readonly view: LedgerView;
  readonly facts?: CellFacts | undefined;
}

const NOTHING_BOUND: BoundFilters = { kind: [], request: [] };
const NONE_BOUND: readonly BoundFilter[] = [];
const NO_FILTERS: readonly HostFilter[] = [];

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
  /** Index of the first cell with facts, or -1 when no filter applies in any cell. */
  readonly #first: number;
  /** By cell: the bound filters of each kind. */
  readonly #kind: (readonly BoundFilter[] | undefined)[] = [];
  readonly #request: (readonly BoundFilter[] | undefined)[] = [];
  /** All filters except those of which one cell has shown that they apply in none. Undefined until they are needed. */
  #applying: readonly HostFilter[] | undefined;

  constructor(filters: readonly HostFilter[], spec: ServerSpec | null, cells: readonly OneCell[]) {
    this.#filters = filters;
    this.#spec = spec;
    this.#cells = cells;
    const isFiltered = spec !== null && spec.forcedHost === "";
    this.#first = isFiltered ? cells.findIndex(({ facts }) => facts !== undefined) : -1;
  }

  /** The filters bound to the cell with this index. */
  of(cell: number): BoundFilters {
    return { kind: this.kindOf(cell), request: this.requestOf(cell) };
  }

  /** The filters whose verdicts equal requests share while the host does not change. */
  kindOf(cell: number): readonly BoundFilter[] {
    this.#kind[cell] ??= this.#bind(cell, "kind");
    return this.#kind[cell];
  }

  /** The filters whose verdicts are valid for this request only. */
  requestOf(cell: number): readonly BoundFilter[] {
    this.#request[cell] ??= this.#bind(cell, "request");
    return this.#request[cell];
  }

  /**
   * Names of the filters of kind `kind` that apply to the request in any cell. Cost: a filter that may apply in some cells only is bound to
   * one cell after the other until it applies; the others are bound once.
   */
  kindNames(): readonly string[] {
    const names: string[] = [];
    for (const filter of this.#findApplying()) {
      if (filter.decidedBy !== "kind") continue;
      if (filter.isForAllCells === true || this.#appliesAnywhere(filter)) names.push(filter.name);
    }
    return names;
  }

  #bind(cell: number, decidedBy: HostFilter["decidedBy"]): readonly BoundFilter[] {
    if (this.#first < 0) return NONE_BOUND;
    const { name, view, facts } = this.#cells[cell]!;
    if (!facts) return NONE_BOUND;
    const bound: BoundFilter[] = [];
    for (const filter of this.#findApplying()) {
      const check = filter.decidedBy === decidedBy ? filter.bind(this.#spec!, { name, view, facts }) : null;
      if (check) bound.push({ name: filter.name, check });
    }
    return bound;
  }

  #findApplying(): readonly HostFilter[] {
    this.#applying ??= this.#first < 0 ? NO_FILTERS : this.#filters.filter((filter) => this.#mayApply(filter));
    return this.#applying;
  }

  #mayApply(filter: HostFilter): boolean {
    return filter.isForAllCells !== true || this.#appliesIn(this.#first, filter);
  }

  #appliesAnywhere(filter: HostFilter): boolean {
    for (let cell = this.#first; cell < this.#cells.length; cell += 1) if (this.#appliesIn(cell, filter)) return true;
    return false;
  }

  #appliesIn(cell: number, filter: HostFilter): boolean {
    const { name, view, facts } = this.#cells[cell]!;
    return facts !== undefined && filter.bind(this.#spec!, { name, view, facts }) !== null;
  }
}
