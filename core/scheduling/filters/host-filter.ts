import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { CellFacts, HostFacts } from "../host-facts.ts";
import type { SpecPart } from "../spec-parts.ts";

/**
 * Decides whether one host may serve a request, where the ledger alone cannot decide. Each rule has its own file, under Nova's name, and a
 * setting lists the enabled ones in order.
 *
 * `decidedBy` says what the verdict depends on beside the host, so that verdicts can be remembered:
 * - `kind`: only on what equal requests have in common (flavor, image, zone, project, ports), never on the server itself
 * - `request`: also on this one request (hints, its server group, its named host)
 */
export interface HostFilter {
  readonly name: string;
  readonly decidedBy: "kind" | "request";
  /**
   * The parts of the spec that a filter of kind `kind` reads; all parts by default. The fewer it reads, the more requests share a ranking.
   */
  readonly reads?: readonly SpecPart[];
  /**
   * True when the ledger search already excludes every host that the filter would refuse, so that the filter need not run after a search.
   */
  readonly isPrefilter?: boolean;
  /**
   * True when `bind` returns null for all cells or for none, whatever the cells are, so that one cell shows whether the filter applies to a
   * request. A cloud's own filter is asked for each cell.
   */
  readonly isForAllCells?: boolean;
  /** Binds the filter to the current state of a request and a cell. Returns null when it does not apply to this request. */
  bind(spec: ServerSpec, cell: FilteredCell): HostCheck | null;
}

export interface FilteredCell {
  readonly name: string;
  readonly view: LedgerView;
  readonly facts: CellFacts;
}

/** Returns null when the host passes, and otherwise the reason, in a few words that many hosts share ("in another availability zone"). */
export type HostCheck = (host: HostFacts) => string | null;
