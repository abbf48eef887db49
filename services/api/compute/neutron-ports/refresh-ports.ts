import { isDeepStrictEqual } from "node:util";
import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { Networking, NeutronPort } from "../../../../core/stores/networking.ts";
import { detachChange } from "../../../../core/tasks/port-change.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { ServerPort } from "../../../../proto/gen/berth/shared.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import { Fault } from "../../http/fault.ts";
import { patchServer } from "../server-interfaces/patch-server.ts";
import { OWN_NAME } from "./neutron-deps.ts";

/**
 * Writes the addresses that a server's ports have in Neutron into the server's record. With `deleted`, the record also loses this port if Neutron no longer
 * shows it as the server's. Returns false for a server that is not at rest, or whose cell does not answer: try again later. Throws
 * `NetworkingError`.
 */
export async function refreshPorts(
  networking: Networking,
  known: { readonly record: RequestRecord; readonly cell: CellClient; readonly server: Server },
  deleted: string | null,
): Promise<boolean> {
  const { uuid, spec } = known.server;
  const found = new Map(
    (await networking.ports({ deviceIds: [uuid] }, OWN_NAME)).map((port) => [port.id, port] as const),
  );
  const gone = deleted !== null && !found.has(deleted) && spec.ports.some((port) => port.portId === deleted);
  if (!gone && isDeepStrictEqual(refreshed(spec.ports, found), spec.ports)) return true;
  try {
    await patchServer({ action: "refresh_network", ...known }, async (served) => {
      const before = served.server.spec;
      const lost = gone ? detachChange(before, deleted, served) : { spec: before, items: [] };
      return { spec: { ...lost.spec, ports: refreshed(lost.spec.ports, found) }, more: [], less: lost.items };
    });
    return true;
  } catch (error) {
    if (error instanceof Fault) return false;
    throw error;
  }
}

const refreshed = (ports: readonly ServerPort[], found: ReadonlyMap<string, NeutronPort>): ServerPort[] =>
  ports.map((port) => {
    const present = found.get(port.portId);
    if (present === undefined) return port;
    const addresses = present.fixedAddresses.map(({ address }) => address);
    return { ...port, addresses, macAddress: present.macAddress };
  });
