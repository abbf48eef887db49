import { isDeepStrictEqual } from "node:util";
import { presentRequests } from "../../../../core/pinning/present-requests.ts";
import { OWN_NAME } from "../../../../core/stores/networking.ts";
import { NetworkingError } from "../../../../core/stores/networking-error.ts";
import type { PortResourceRequest } from "../../../../proto/gen/berth/shared.ts";
import { DeadlineError, withDeadline } from "../../../../runtime/deadline.ts";
import { Fault } from "../../http/fault.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";
import type { ActionTarget } from "../server-actions/action-target.ts";
import { patchServer } from "../server-interfaces/patch-server.ts";

/** How long a move waits for Neutron. An evacuation must not depend on it. */
const WAIT_MS = 5_000;

/**
 * The request groups of a server as Neutron has them now; those that are known while it does not answer. `portId` names the port in question, null for all.
 * Cost: nothing for a server without request groups, and otherwise a question to Neutron.
 */
export async function requestsInNeutron(
  { networking }: Pick<NeutronDeps, "networking">,
  { uuid, portRequests }: { readonly uuid: string; readonly portRequests: readonly PortResourceRequest[] },
  portId: string | null,
): Promise<readonly PortResourceRequest[]> {
  if (portRequests.every((request) => portId !== null && request.portId !== portId)) return portRequests;
  try {
    const asking = networking.ports(portId === null ? { deviceIds: [uuid] } : { id: portId }, OWN_NAME);
    const shown = await withDeadline(asking, WAIT_MS, "reading the requests of ports");
    const own = shown.filter(({ deviceId }) => deviceId === uuid);
    return presentRequests(portRequests, new Map(own.map((port) => [port.id, port])));
  } catch (error) {
    if (error instanceof NetworkingError || error instanceof DeadlineError) return portRequests;
    throw error;
  }
}

/**
 * Writes what a server's ports request in Neutron now into the server's record, from which a move claims it at the destination. What the server holds at its
 * present host, Neutron has changed itself. If the record cannot be written, the move is accepted, or refused, as it would be without this.
 */
export async function refreshRequests(deps: Pick<NeutronDeps, "networking">, target: ActionTarget): Promise<void> {
  const { spec } = target.server;
  if (isDeepStrictEqual(await requestsInNeutron(deps, spec, null), spec.portRequests)) return;
  try {
    await patchServer(
      target,
      async ({ server: { spec: present } }) => {
        const portRequests = [...(await requestsInNeutron(deps, present, null))];
        return { spec: { ...present, portRequests }, more: [], less: [] };
      },
      null,
    );
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
  }
}
