import type { PortResourceRequest, ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, conflict } from "../../http/fault.ts";
import type { ConnectedServers } from "../../network/connected-servers.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";
import { connectToNeutron } from "../neutron-ports/connect-to-neutron.ts";
import { readConnections } from "../neutron-ports/read-connections.ts";
import { requestsOfPorts } from "../neutron-ports/requests-of-ports.ts";
import { connectServers } from "./connect-servers.ts";
import type { CreateServerBody } from "./create-schema.ts";
import { readPorts } from "./read-ports.ts";

/** The networks that servers of one call are to be connected to. They have been checked, and nothing has been changed. */
export interface PlannedConnections {
  /** The request groups of the ports. */
  readonly requests: readonly PortResourceRequest[];
  /** Gives the servers their ports. A refusal leaves nothing behind. */
  connect(specs: readonly ServerSpec[]): Promise<ConnectedServers>;
}

/** The first microversion in which servers are made with ports that request resources, and Nova's refusal before. */
const REQUESTS_FROM_MINOR = 72;
const REQUESTS_TOO_OLD =
  "Creating servers with ports having resource requests, like a port with a QoS minimum bandwidth policy, is not supported until microversion 2.72.";

/** Source: the statuses in nova/api/openstack/compute/servers.py. */
const REFUSALS = { missing: badRequest, ambiguous: conflict, taken: badRequest };

/** Reads the networks in a body: those of Neutron, or those of Berth's own. */
export async function planConnections(
  deps: Parameters<typeof connectServers>[0] & {
    /** Null without Neutron. */
    readonly neutron: NeutronDeps | null;
  },
  call: KnownCall,
  body: CreateServerBody,
  from: Pick<Parameters<typeof readPorts>[2], "servers" | "rule"> & {
    /** The ids of the security groups of new ports; null for the project's default group. */
    readonly securityGroups: readonly string[] | null;
  },
): Promise<PlannedConnections> {
  const { neutron } = deps;
  if (neutron !== null) {
    const { projectId } = call.identity;
    const asked = { call, projectId, servers: from.servers, faults: REFUSALS };
    const connections = await readConnections(neutron, body.server.networks, asked);
    const hasPolicies = connections.some(({ port }) => port !== null && port.groups.length > 0);
    if (hasPolicies && call.minor < REQUESTS_FROM_MINOR) throw badRequest(REQUESTS_TOO_OLD);
    return {
      requests: requestsOfPorts(connections),
      connect: (specs) => connectToNeutron(neutron, specs, connections, call, from.securityGroups),
    };
  }
  const wanted = await readPorts(body, deps.networkPorts, { ...from, identity: call.identity });
  return {
    requests: wanted.flatMap(({ requests }) => requests),
    connect: (specs) => connectServers(deps, specs, wanted, from.securityGroups),
  };
}
