import { NetworkingError } from "../../core/stores/networking-error.ts";
import type { NeighbourCall } from "./neighbour-client.ts";
import { NeighbourError, type NeighbourErrorCode } from "./neighbour-error.ts";

/** How many ids one question may name: Neutron takes addresses of at most 8 KiB. Source: `MAX_SEARCH_IDS` in nova/network/security_group_api.py. */
export const IDS_MAX = 150;
/** The answer to a change with `If-Match` of something that has been changed since it was read. */
export const CHANGED_STATUS = 412;
export const FORBIDDEN_STATUS = 403;

/** An answer of Neutron that says why it does not do what it was asked for. */
export type NeutronRefusal = NeighbourError & {
  readonly code: Exclude<NeighbourErrorCode, "unreachable" | "bad-answer">;
};

/** Returns why a call was refused. Throws a `NetworkingError` for a failure that is no answer to the call. */
export function expectedRefusal(error: unknown, { callerToken }: Pick<NeighbourCall, "callerToken">): NeutronRefusal {
  if (!(error instanceof NeighbourError)) throw error;
  const { code, message, status } = error;
  // Neutron's policy judges the caller. With the login of this service, the same answer is the operator's affair.
  const isOfPolicy = callerToken !== null && status === FORBIDDEN_STATUS;
  if (code === "unreachable" || code === "bad-answer" || (code === "refused" && !isOfPolicy))
    throw new NetworkingError(code, message);
  return error as NeutronRefusal;
}
