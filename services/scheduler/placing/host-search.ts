import type { SearchBudget } from "../../../core/candidates/search-budget.ts";
import type { HostsByCell } from "../../../core/placing/placing.ts";
import type { HostRequest } from "../../../core/scheduling/host-request.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";

const NO_HOSTS: HostsByCell = new Map();

/** The search for a host for one server, over all choices that are made for it. */
export class HostSearch {
  readonly spec: ServerSpec;
  /** What the request asks of the ledger. It changes when operators change what request filters look at. */
  hostRequest: HostRequest;
  /** Hosts that were chosen for the other servers of the same multi-create. */
  readonly chosenTogether: HostsByCell;
  /** What may be spent on it; null: nothing was looked for yet. */
  budget: SearchBudget | null = null;
  /** It was counted that the search was given up. */
  isCounted = false;

  constructor(spec: ServerSpec, hostRequest: HostRequest, chosenTogether: HostsByCell = NO_HOSTS) {
    this.spec = spec;
    this.hostRequest = hostRequest;
    this.chosenTogether = chosenTogether;
  }
}
