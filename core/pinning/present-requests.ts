import type { PortResourceRequest } from "../../proto/gen/berth/shared.ts";
import type { PortRecord } from "../tasks/port-record.ts";
import { VF_CLASS } from "./direct-ports.ts";

/**
 * A server's request groups as Neutron has them now. When the QoS policy of a bound port changes, Neutron itself changes what the server holds for the groups that
 * the port has had, and names the groups anew. A group that Neutron no longer has is left out: nothing is held for it any longer. A new group is not
 * added, since nothing is held for it. The groups of ports that are not in `ports` stay, and so do those of direct ports, which are Berth's own.
 *
 * Source: `_change_placement_allocation` in neutron/services/qos/qos_plugin.py.
 */
export function presentRequests(
  requests: readonly PortResourceRequest[],
  ports: ReadonlyMap<string, Pick<PortRecord, "groups">>,
): PortResourceRequest[] {
  return requests.flatMap((request) => {
    const groups = ports.get(request.portId)?.groups;
    if (groups === undefined || request.resources[VF_CLASS] !== undefined) return [request];
    const group =
      groups.find(({ id }) => id !== "" && id === request.groupId) ??
      groups.find(({ resources }) => kindOf(resources) === kindOf(request.resources));
    if (group === undefined) return [];
    return [{ ...request, resources: { ...group.resources }, requiredTraits: [...group.required], groupId: group.id }];
  });
}

/** The kind of rule that a group comes from, such as `NET_BW`. A port has at most one group of each. */
const kindOf = (resources: PortResourceRequest["resources"]): string =>
  Object.keys(resources)[0]?.split("_").slice(0, 2).join("_") ?? "";
