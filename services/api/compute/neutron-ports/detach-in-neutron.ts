import { OWN_NAME } from "../../../../core/stores/networking.ts";
import { NetworkingError } from "../../../../core/stores/networking-error.ts";
import { detachChange } from "../../../../core/tasks/port-change.ts";
import type { Fault } from "../../http/fault.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";
import type { ActionTarget } from "../server-actions/action-target.ts";
import { patchServer } from "../server-interfaces/patch-server.ts";
import { requestsInNeutron } from "./refresh-requests.ts";
import { deleteOwnPort, unbindPort } from "./release-ports.ts";
import { withOpenNote } from "./with-open-note.ts";

/**
 * Detaches a port of Neutron from a server: the server's record loses it first, then it is unbound, or deleted if it was made for the server. A port
 * that the server no longer has in Neutron stays as it is. If Neutron does not answer, the settler does the second part. Throws `missing` if the
 * server does not have the port.
 */
export async function detachInNeutron(
  { networking, notes }: NeutronDeps,
  target: ActionTarget,
  portId: string,
  missing: Fault,
): Promise<void> {
  const serverUuid = target.server.uuid;
  if (target.server.spec.ports.every((port) => port.portId !== portId)) throw missing;
  await withOpenNote(notes, { serverUuid, keptPorts: [] }, async () => {
    await patchServer(target, async (served) => {
      const { spec } = served.server;
      if (spec.ports.every((port) => port.portId !== portId)) throw missing;
      // Neutron has changed what the server holds if the port's QoS policy has changed.
      const portRequests = [...(await requestsInNeutron({ networking }, spec, portId))];
      const { spec: without, items } = detachChange({ ...spec, portRequests }, portId, served);
      return { spec: without, more: [], less: items };
    });
    const [note] = await notes.notes([serverUuid]);
    try {
      const [port] = await networking.ports({ id: portId }, OWN_NAME);
      // A client may have given the port to another server in Neutron, also one that was made for this server.
      if (port?.deviceId !== serverUuid) return true;
      if (note?.keptPorts.includes(portId) === true) return await unbindPort(networking, port, serverUuid);
      return await deleteOwnPort(networking, port, serverUuid);
    } catch (error) {
      if (error instanceof NetworkingError) return false;
      throw error;
    }
  });
}
