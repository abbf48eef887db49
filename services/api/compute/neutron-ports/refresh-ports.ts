import { isDeepStrictEqual } from "node:util";
import { compare } from "../../../../core/ledger/ledger-state.ts";
import type { AllocationItem } from "../../../../core/ledger/model.ts";
import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { FloatingIp } from "../../../../core/stores/floating-ips.ts";
import { type NeutronPort, OWN_NAME } from "../../../../core/stores/networking.ts";
import { detachChange } from "../../../../core/tasks/port-change.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { ServerPort } from "../../../../proto/gen/berth/shared.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import { Fault } from "../../http/fault.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";
import {
  PORTS_CHANGE_IN,
  patchServer,
  type ServedServer,
  type ServerPatch,
} from "../server-interfaces/patch-server.ts";

/**
 * Writes the addresses and floating IPs that a server's ports have in Neutron into the server's record. The record also loses the ports of `deleted` that
 * Neutron no longer shows as the server's, if its ports may be detached in its state: a suspended guest, say, resumes with its interfaces. Addresses are
 * written in any state, as by Nova. Returns false if something is left to do, for a server that is not at rest, waits for its confirmation or was not built, or
 * whose cell does not answer: try again later. Throws `NetworkingError`.
 */
export async function refreshPorts(
  { networking, floatingIps }: Pick<NeutronDeps, "networking" | "floatingIps">,
  known: { readonly record: RequestRecord; readonly cell: CellClient; readonly server: Server },
  deleted: readonly string[],
): Promise<boolean> {
  const { uuid, spec } = known.server;
  const found = new Map(
    (await networking.ports({ deviceIds: [uuid] }, OWN_NAME)).map((port) => [port.id, port] as const),
  );
  const floating = await floatingOf(floatingIps, [...found.keys()]);
  const gone = [...new Set(deleted)].filter((id) => !found.has(id) && spec.ports.some(({ portId }) => portId === id));
  // A revert brings back the record from before the resize, so what is written until then is compared once more.
  const isFinal = ({ status }: Server): boolean =>
    status !== "VERIFY_RESIZE" && (gone.length === 0 || PORTS_CHANGE_IN.includes(status));
  let isDone = isFinal(known.server);
  if ((gone.length === 0 || !isDone) && isDeepStrictEqual(refreshed(spec.ports, found, floating), spec.ports))
    return isDone;
  try {
    const plan = async (served: ServedServer): Promise<ServerPatch> => {
      isDone = isFinal(served.server);
      let { spec: left } = served.server;
      const less: AllocationItem[] = [];
      for (const id of isDone ? gone : []) {
        const { spec: without, items } = detachChange(left, id, served);
        left = without;
        less.push(...items);
      }
      return { spec: { ...left, ports: refreshed(left.ports, found, floating) }, more: [], less };
    };
    await patchServer({ action: "refresh_network", ...known }, plan, null);
    return isDone;
  } catch (error) {
    if (error instanceof Fault) return false;
    throw error;
  }
}

type Floating = ReadonlyMap<string, ServerPort["floatingAddresses"]>;

/** Returns the floating IPs of ports, by port. Throws `NetworkingError`. */
export async function floatingOf(
  floatingIps: NeutronDeps["floatingIps"],
  portIds: readonly string[],
): Promise<Floating> {
  const found: readonly FloatingIp[] = portIds.length === 0 ? [] : await floatingIps.floatingIps({ portIds }, OWN_NAME);
  const byPort = Map.groupBy(found, ({ portId }) => portId ?? "");
  return new Map(
    [...byPort].map(([portId, ofPort]) => [
      portId,
      ofPort
        .map(({ address, fixedAddress }) => ({ address, fixedAddress: fixedAddress ?? "" }))
        .toSorted((a, b) => compare(a.address, b.address)),
    ]),
  );
}

const refreshed = (
  ports: readonly ServerPort[],
  found: ReadonlyMap<string, NeutronPort>,
  floating: Floating,
): ServerPort[] =>
  ports.map((port) => {
    const present = found.get(port.portId);
    if (present === undefined) return port;
    const addresses = present.fixedAddresses.map(({ address }) => address);
    const floatingAddresses = floating.get(port.portId) ?? [];
    return { ...port, addresses, macAddress: present.macAddress, floatingAddresses };
  });
