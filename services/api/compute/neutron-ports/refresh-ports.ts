import { isDeepStrictEqual } from "node:util";
import type { AllocationItem } from "../../../../core/ledger/model.ts";
import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import { type Networking, type NeutronPort, OWN_NAME } from "../../../../core/stores/networking.ts";
import { detachChange } from "../../../../core/tasks/port-change.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { ServerPort } from "../../../../proto/gen/berth/shared.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import { Fault } from "../../http/fault.ts";
import { patchServer } from "../server-interfaces/patch-server.ts";

/**
 * Writes the addresses that a server's ports have in Neutron into the server's record. The record also loses the ports of `deleted` that
 * Neutron no longer shows as the server's. Returns false for a server that is not at rest, or whose cell does not answer: try again later. Throws
 * `NetworkingError`.
 */
export async function refreshPorts(
  networking: Networking,
  known: { readonly record: RequestRecord; readonly cell: CellClient; readonly server: Server },
  deleted: readonly string[],
): Promise<boolean> {
  const { uuid, spec } = known.server;
  const found = new Map(
    (await networking.ports({ deviceIds: [uuid] }, OWN_NAME)).map((port) => [port.id, port] as const),
  );
  const gone = [...new Set(deleted)].filter((id) => !found.has(id) && spec.ports.some(({ portId }) => portId === id));
  if (gone.length === 0 && isDeepStrictEqual(refreshed(spec.ports, found), spec.ports)) return true;
  try {
    await patchServer({ action: "refresh_network", ...known }, async (served) => {
      let { spec: left } = served.server;
      const less: AllocationItem[] = [];
      for (const id of gone) {
        const { spec: without, items } = detachChange(left, id, served);
        left = without;
        less.push(...items);
      }
      return { spec: { ...left, ports: refreshed(left.ports, found) }, more: [], less };
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
