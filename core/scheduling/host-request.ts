import {
  type CandidateRequest,
  type GroupPolicy,
  type GroupRules,
  OPEN_HOSTS,
  type RequestGroup,
  type RootRules,
} from "../candidates/request.ts";

/** A request to the ledger, in the form in which Nova queries Placement (ResourceRequest.from_request_spec). */
export interface HostRequest extends GroupRules {
  readonly groups: readonly RequestGroup[];
  readonly groupPolicy: GroupPolicy;
  readonly rootRules?: RootRules;
  /** Admits only these hosts. Without it any host is admitted. */
  readonly onlyHosts?: ReadonlySet<string>;
}

/** The search for hosts that a host request fits, among hosts that are up and not disabled. */
export function searchOf({ onlyHosts, ...hostRequest }: HostRequest): CandidateRequest {
  return { ...hostRequest, trees: onlyHosts ? { ...OPEN_HOSTS, onlyHosts } : OPEN_HOSTS, limit: 1 };
}
