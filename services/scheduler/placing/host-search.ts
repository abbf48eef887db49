import type { SearchBudget } from "../../../core/candidates/search-budget.ts";
import type { HostsByCell } from "../../../core/placing/placing.ts";
import type { HostRequest } from "../../../core/scheduling/host-request.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";

const NO_HOSTS: HostsByCell = new Map();

/** The search for a host for one server, over all choices that are made for it. */
export class HostSearch {
  readonly spec: ServerSpec;
  /** The request in the ledger's terms. It changes when operators change settings that request filters read. */
  hostRequest: HostRequest;
  /** Hosts that were chosen for the other servers of the same multi-create. */
  readonly chosenTogether: HostsByCell;
  /** The remaining budget of the search. Null before the first search. */
  budget: SearchBudget | null = null;
  /** Whether it was already counted that the search was given up. */
  isCounted = false;

  constructor(spec: ServerSpec, hostRequest: HostRequest, chosenTogether: HostsByCell = NO_HOSTS) {
    this.spec = spec;
    this.hostRequest = hostRequest;
    this.chosenTogether = chosenTogether;
  }
}
