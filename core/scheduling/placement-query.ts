import {
  type CandidateRequest,
  type GroupPolicy,
  type GroupRules,
  OPEN_HOSTS,
  type RequestGroup,
  type RootRules,
} from "../candidates/request.ts";

/** What a request asks of the ledger, as Nova turns it into a query to Placement (ResourceRequest.from_request_spec). */
export interface PlacementQuery extends GroupRules {
  readonly groups: readonly RequestGroup[];
  readonly groupPolicy: GroupPolicy;
  readonly rootRules?: RootRules;
  /** Only these hosts; without it, any. */
  readonly onlyHosts?: ReadonlySet<string>;
}

/** The search for the hosts that a query fits on, among those that are open. */
export function searchOf({ onlyHosts, ...query }: PlacementQuery): CandidateRequest {
  return { ...query, trees: onlyHosts ? { ...OPEN_HOSTS, onlyHosts } : OPEN_HOSTS, limit: 1 };
}
