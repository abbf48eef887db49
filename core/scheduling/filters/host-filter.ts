import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { LedgerView } from "../../ledger/view.ts";
import type { CellFacts, HostFacts } from "../host-facts.ts";
import type { SpecPart } from "../ranking/spec-parts.ts";

/**
 * Says whether one host may serve a request, where the ledger alone cannot say it. One rule a file, under Nova's name; a
 * setting lists the enabled ones in order.
 *
 * `decidedBy` tells what its verdict depends on beside the host, so that verdicts can be remembered:
 * - `kind`: on what equal requests have in common (flavor, image, zone, project, ports), never on the server itself
 * - `request`: also on this one request (hints, its server group, its named host)
 */
export interface HostFilter {
  readonly name: string;
  readonly decidedBy: "kind" | "request";
  /** Of kind `kind`: what it looks at of the spec; everything unless given. The less, the more requests share a ranking. */
  readonly reads?: readonly SpecPart[];
  /** The search of the ledger lets no host through that it would refuse: who has searched need not ask it. */
  readonly isSieved?: boolean;
  /** Binds it to a request and a cell, as they are now. Null: it has nothing to say of this request. */
  bind(spec: ServerSpec, cell: FilteredCell): HostCheck | null;
}

export interface FilteredCell {
  readonly name: string;
  readonly view: LedgerView;
  readonly facts: CellFacts;
}

/** Null: the host passes. Otherwise why not, in a few words that many hosts share ("in another availability zone"). */
export type HostCheck = (host: HostFacts) => string | null;
