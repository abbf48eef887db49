import type { PortBinding, PortRecord, PortStore } from "../../../core/cell/port-store.ts";
import { conflict } from "../http/fault.ts";
import type { RequestsPort } from "../ports.ts";
import { type Cells, hydrateServer } from "../servers/hydrate-servers.ts";

/** A binding that is younger may be of a call that is just about to tell the server's cell. */
const YOUNG_MS = 60_000;

/**
 * Gives the server its ports, all of them or, with a 409, none that it did not have. Who has one and is gone, or never came to use it, has
 * let go of it. Returns how it has them. Cost: one write; where somebody else has a port, questions after him.
 */
export async function bindPorts(
  deps: {
    readonly networkPorts: PortStore | null;
    readonly store: Pick<RequestsPort, "requests">;
    readonly cells: Cells;
  },
  ports: readonly PortRecord[],
  serverUuid: string,
): Promise<readonly PortBinding[]> {
  const { networkPorts } = deps;
  if (ports.length === 0 || networkPorts === null) return [];
  const ids = ports.map(({ id }) => id);
  const bound = await networkPorts.bindPorts(ids, serverUuid, []);
  const missing = ids.filter((id) => bound.every((one) => one.id !== id));
  if (missing.length === 0) return bound;
  const held = await networkPorts.ports(missing);
  const idle = await Promise.all(
    held.map(async (port) => ((await isIdle(deps, port)) ? port.binding?.serverUuid : null)),
  );
  const holders = idle.filter((holder) => typeof holder === "string");
  const taken = [...bound, ...(await networkPorts.bindPorts(missing, serverUuid, holders))];
  const stuck = missing.find((id) => taken.every((one) => one.id !== id));
  if (stuck === undefined) return taken;
  for (const binding of taken) await letGoOf(networkPorts, binding, serverUuid);
  throw conflict(`Port ${stuck} is still in use.`);
}

/** Takes a binding back: unless the server had the port already, or was given it anew since. */
export async function letGoOf(
  networkPorts: Pick<PortStore, "unbindPorts">,
  { id, atMs, wasOwn }: PortBinding,
  serverUuid: string,
): Promise<void> {
  if (!wasOwn) await networkPorts.unbindPorts([id], serverUuid, atMs);
}

/** Whether the server that has the port is gone, or does not have it after all. */
async function isIdle(
  { store, cells }: Parameters<typeof bindPorts>[0],
  { id, binding }: PortRecord,
): Promise<boolean> {
  if (binding === null) return true;
  const isOld = binding.ageMs > YOUNG_MS;
  const [record] = await store.requests([binding.serverUuid]);
  if (record === undefined) return isOld;
  if (record.state === "failed" || record.state === "deleted") return true;
  const known = await hydrateServer(record, cells, { withDeleted: false });
  if (known === null) return true;
  return isOld && !known.unreachable && known.server.spec.ports.every((port) => port.portId !== id);
}
