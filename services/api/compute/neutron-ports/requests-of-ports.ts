import { physicalNetworkTrait } from "../../../../core/discovery/physical-network-trait.ts";
import { VF_CLASS } from "../../../../core/pinning/direct-ports.ts";
import { groupsToAttach } from "../../../../core/tasks/port-change.ts";
import type { PortResourceRequest } from "../../../../proto/gen/berth/shared.ts";
import type { Connection } from "./read-connections.ts";

/**
 * The request groups of a new server's ports: those of their QoS policies, and for each direct port a virtual function of a card that is connected to the port's
 * physical network. Suffixes are numbered by position, so that servers with equal requests share one translation.
 */
export function requestsOfPorts(connections: readonly Connection[]): readonly PortResourceRequest[] {
  const portRequests: PortResourceRequest[] = [];
  for (const { port, physicalNetwork } of connections) {
    if (port === null) continue;
    const groups = physicalNetwork === null ? port.groups : [functionOn(physicalNetwork)];
    portRequests.push(...groupsToAttach({ portRequests }, {}, { id: port.id, groups }));
  }
  return portRequests;
}

const functionOn = (physicalNetwork: string) => ({
  ...{ id: "", resources: { [VF_CLASS]: 1 }, required: [physicalNetworkTrait(physicalNetwork)] },
});
