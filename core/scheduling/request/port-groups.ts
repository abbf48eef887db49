import { trait } from "../../ledger/ids.ts";
import type { Asked } from "./asked.ts";
import type { HostRequestDraft } from "./host-request-draft.ts";

/**
 * Adds each request group of a port (Neutron's `resource_request`: minimum bandwidth with the traits of its physical network) to the
 * server's groups. Several groups of one port must be served in one subtree, that of a network agent and its interfaces, as Neutron always
 * requests.
 */
export const portGroups = ({ portRequests }: Pick<Asked, "portRequests">, draft: HostRequestDraft): null => {
  const byPort = new Map<string, string[]>();
  for (const { portId, suffix, resources, requiredTraits } of portRequests) {
    for (const [name, amount] of Object.entries(resources)) draft.add(suffix, name, amount);
    for (const name of requiredTraits) draft.group(suffix).required.add(trait(name));
    byPort.set(portId, [...(byPort.get(portId) ?? []), suffix]);
  }
  for (const suffixes of byPort.values()) if (suffixes.length > 1) draft.sameSubtree.push(suffixes);
  return null;
};
