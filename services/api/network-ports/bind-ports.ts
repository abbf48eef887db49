import type { PortRecord, PortStore } from "../../../core/cell/port-store.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { conflict } from "../http/fault.ts";
import type { RequestsPort } from "../ports.ts";
import { type Cells, hydrateServer } from "../servers/hydrate-servers.ts";

/** A binding that is younger may be of a call that is just about to tell the server's cell. */
const YOUNG_MS = 60_000;

/**
 * Gives the server its ports, all of them or, with a 409, none that it did not have. Who has one and is gone, or never came to use it, has
 * let go of it. Cost: one write; where somebody else has a port, questions after him.
 */
export async function bindPorts(
  deps: {
    readonly networkPorts: PortStore | null;
    readonly store: Pick<RequestsPort, "requests">;
    readonly cells: Cells;
    readonly clock: Pick<Clock, "now">;
  },
  ports: readonly PortRecord[],
  serverUuid: string,
): Promise<void> {
  const { networkPorts } = deps;
  if (ports.length === 0 || networkPorts === null) return;
  const ids = ports.map(({ id }) => id);
  const bound = new Set(await networkPorts.bindPorts(ids, serverUuid, []));
  const missing = ids.filter((id) => !bound.has(id));
  if (missing.length === 0) return;
  const held = await networkPorts.ports(missing);
  const idle = await Promise.all(
    held.map(async (port) => ((await isIdle(deps, port)) ? port.binding?.serverUuid : null)),
  );
  const holders = idle.filter((holder) => typeof holder === "string");
  const taken = new Set(await networkPorts.bindPorts(missing, serverUuid, holders));
  const stuck = missing.find((id) => !taken.has(id));
  if (stuck === undefined) return;
  await networkPorts.unbindPorts([...bound, ...taken], serverUuid);
  throw conflict(`Port ${stuck} is still in use.`);
}

/** Whether the server that has the port is gone, or does not have it after all. */
async function isIdle(
  { store, cells, clock }: Parameters<typeof bindPorts>[0],
  { id, binding }: PortRecord,
): Promise<boolean> {
  if (binding === null) return true;
  const isOld = clock.now() - binding.atMs > YOUNG_MS;
  const [record] = await store.requests([binding.serverUuid]);
  if (record === undefined) return isOld;
  if (record.state === "failed" || record.state === "deleted") return true;
  const known = await hydrateServer(record, cells, { withDeleted: false });
  if (known === null) return true;
  return isOld && !known.unreachable && known.server.spec.ports.every((port) => port.portId !== id);
}
