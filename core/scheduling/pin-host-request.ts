import type { ProviderUuid } from "../ledger/ids.ts";
import type { HostRequest } from "./host-request.ts";

/**
 * Restricts the host request to the tree of this root provider, through the unnumbered group or, without one, through each numbered group. A group
 * that already names a tree keeps it.
 */
export function pinHostRequest(hostRequest: HostRequest, root: ProviderUuid): HostRequest {
  const hasUnnumbered = hostRequest.groups.some((group) => group.suffix === "");
  const groups = hostRequest.groups.map((group) =>
    group.inTree === null && (group.suffix === "" || !hasUnnumbered) ? { ...group, inTree: root } : group,
  );
  return { ...hostRequest, groups };
}
