import { type Networking, type NeutronPort, OWN_NAME } from "../../../../core/stores/networking.ts";
import { withoutAllocation, withoutDevice } from "../../../../core/tasks/port-profile.ts";

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
    const isGone = keptPorts.includes(port.id)
      ? await unbindPort(networking, port, serverUuid)
      : await deleteOwnPort(networking, port, serverUuid);
    if (!isGone) return false;
  }
  return true;
}

/**
 * Takes a port away from its server, and from the hosts for which a live migration has prepared it, since its next server knows nothing of them. False if
 * others kept changing it. A port that the server no longer has stays as it is.
 */
export function unbindPort(networking: Networking, port: NeutronPort, serverUuid: string): Promise<boolean> {
  return takeAway(networking, port, serverUuid, async ({ id, revision, host, profile }) => {
    if (host !== "" && (await networking.hasBindings()))
      for (const one of (await networking.bindings(id)) ?? [])
        if (!one.isActive) await networking.deleteBinding(id, one.host);
    const left = withoutAllocation(withoutDevice(profile));
    const unbound = { device: null, ...(left !== profile && { profile: left }) };
    const { kind } = await networking.updatePort(id, unbound, revision);
    if (kind === "updated" || kind === "gone") return "done";
    return kind === "changed" ? kind : "refused";
  });
}

/** Deletes a port that was made for a server. False if others kept changing it. A port that the server no longer has stays as it is. */
export function deleteOwnPort(networking: Networking, port: NeutronPort, serverUuid: string): Promise<boolean> {
  return takeAway(networking, port, serverUuid, async ({ id, revision }) => {
    return (await networking.deletePort(id, revision)) === "deleted" ? "done" : "changed";
  });
}

/** Each call names the revision in which the port was read, so one that Neutron carries out late does nothing to a port that was given away since. */
async function takeAway(
  networking: Networking,
  port: NeutronPort,
  serverUuid: string,
  act: (present: NeutronPort) => Promise<"done" | "changed" | "refused">,
): Promise<boolean> {
  let present: NeutronPort | undefined = port;
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    if (present === undefined || present.deviceId !== serverUuid) return true;
    const outcome = await act(present);
    if (outcome !== "changed") return outcome === "done";
    [present] = await networking.ports({ id: present.id }, OWN_NAME);
  }
  return false;
}
