import type { PortBinding, PortStore } from "../../../core/stores/api/port-store.ts";
import type { PortRecord } from "../../../core/tasks/port-record.ts";
import { type Cells, hydrateServer } from "../cells/hydrate-servers.ts";
import { conflict } from "../http/fault.ts";
import type { RequestsPort } from "../ports.ts";

/** A younger binding may belong to a call that is about to write the server to its cell. */
const YOUNG_MS = 60_000;

/**
 * Binds ports to a server: all of them or, with a 409, none that it did not have. A binding of a server that is gone, or that never used
 * its port, does not count. Returns the bindings.
 *
 * Cost: one write; where a port is bound to another server, questions about that server.
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
  for (const binding of taken) await releasePort(networkPorts, binding, serverUuid);
  throw conflict(`Port ${stuck} is still in use.`);
}

/** Undoes a binding, unless the server had the port before or got it again since. */
export async function releasePort(
  networkPorts: Pick<PortStore, "unbindPorts">,
  { id, atMs, wasOwn }: PortBinding,
  serverUuid: string,
): Promise<void> {
  if (!wasOwn) await networkPorts.unbindPorts([id], serverUuid, atMs);
}

/** Whether the server that a port is bound to is gone, or does not use the port. */
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
