import { physicalNetworkTrait } from "../../../../core/discovery/physical-network-trait.ts";
import { VF_CLASS } from "../../../../core/pinning/direct-ports.ts";
import { groupsToAttach } from "../../../../core/tasks/port-change.ts";
import type { PortResourceRequest } from "../../../../proto/gen/berth/shared.ts";
import type { Connection } from "./read-connections.ts";

/** The request groups of a new server's direct ports: for each a virtual function of a card that is connected to the port's physical network. */
export function directRequests(connections: readonly Connection[]): readonly PortResourceRequest[] {
  let requests: readonly PortResourceRequest[] = [];
  for (const { port, physicalNetwork } of connections) {
    if (port === null || physicalNetwork === null) continue;
    const groups = [{ id: "", resources: { [VF_CLASS]: 1 }, required: [physicalNetworkTrait(physicalNetwork)] }];
    requests = [...requests, ...groupsToAttach({ portRequests: [...requests] }, {}, { id: port.id, groups })];
  }
  return requests;
}
