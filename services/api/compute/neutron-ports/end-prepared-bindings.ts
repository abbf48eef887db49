import { type Networking, OWN_NAME } from "../../../../core/stores/networking.ts";
import type { Server } from "../../../../core/tasks/server.ts";

/**
 * Deletes the bindings that a live migration has left behind: those that are not active, on hosts other than the server's. Returns false for a server that
 * is not at rest, since its move may need them; try again later. Throws `NetworkingError`.
 *
 * `mayEnd` is asked after the bindings were read and before each deletion: whether the server still rests on the host. Without that, a move that has begun
 * since would lose the binding that it has made the active one.
 */
export async function endPreparedBindings(
  networking: Pick<Networking, "hasBindings" | "ports" | "bindings" | "deleteBinding">,
  { uuid, host, taskState }: Pick<Server, "uuid" | "host" | "taskState">,
  mayEnd: () => Promise<boolean>,
): Promise<boolean> {
  if (taskState !== null) return false;
  if (host === null || !(await networking.hasBindings())) return true;
  for (const port of await networking.ports({ deviceIds: [uuid] }, OWN_NAME)) {
    if (port.host === "") continue;
    for (const binding of (await networking.bindings(port.id)) ?? []) {
      if (binding.isActive || binding.host === host) continue;
      if (!(await mayEnd())) return false;
      await networking.deleteBinding(port.id, binding.host);
    }
  }
  return true;
}
