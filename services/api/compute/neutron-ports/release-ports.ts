import { type Networking, type NeutronPort, OWN_NAME } from "../../../../core/stores/networking.ts";

/** How often a port is read again that somebody else changes at the same time. */
const TRIES_MAX = 5;

/**
 * Takes a server's ports away from it, except those that it has by its own record (`named`): ports of users are unbound, and all others are
 * deleted, as Nova does it. Returns whether all are gone. Repeatable. Throws `NetworkingError`.
 *
 * `mayRelease` is asked after the ports were listed and before the first one is touched.
 */
export async function releasePorts(
  networking: Networking,
  serverUuid: string,
  { keptPorts, named }: { readonly keptPorts: readonly string[]; readonly named: readonly string[] },
  mayRelease: () => Promise<boolean> = async () => true,
): Promise<boolean> {
  const ports = await networking.ports({ deviceIds: [serverUuid] }, OWN_NAME);
  const strays = ports.filter(({ id }) => !named.includes(id));
  if (strays.length > 0 && !(await mayRelease())) return false;
  for (const port of strays) {
    if (!keptPorts.includes(port.id)) await networking.deletePort(port.id);
    else if (!(await unbindPort(networking, port, serverUuid))) return false;
  }
  return true;
}

/** Takes a port away from its server. False if others kept changing it. A port that the server no longer has stays as it is. */
export async function unbindPort(networking: Networking, port: NeutronPort, serverUuid: string): Promise<boolean> {
  let present: NeutronPort | undefined = port;
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    if (present === undefined || present.deviceId !== serverUuid) return true;
    const outcome = await networking.updatePort(present.id, { device: null }, present.revision);
    if (outcome.kind === "updated" || outcome.kind === "gone") return true;
    if (outcome.kind === "refused" || outcome.kind === "forbidden") return false;
    [present] = await networking.ports({ id: present.id }, OWN_NAME);
  }
  return false;
}
