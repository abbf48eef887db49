import { randomUUID } from "node:crypto";
import type { NewPort, PortStore } from "../../../core/stores/api/port-store.ts";
import type { PortGroup, PortRecord } from "../../../core/tasks/port-record.ts";
import { badRequest } from "../http/fault.ts";
import { SIMPLE_NETWORK, SIMPLE_POOL } from "./simple-network.ts";

export interface RequestedPort {
  readonly projectId: string;
  /** The server that gets the port, or null. */
  readonly serverUuid: string | null;
  readonly name?: string;
  /** The address that the port must have, or null for any. */
  readonly address: string | null;
  readonly groups?: readonly PortGroup[];
  readonly endsWithServer: boolean;
}

/**
 * Makes ports on Berth's own network: all of them or, with a refusal, none. As long as no server with the port has been accepted, the
 * sweep of ports may remove the port.
 */
export async function makePorts(
  store: Pick<PortStore, "addPorts">,
  requested: readonly RequestedPort[],
  nowMs: number,
): Promise<readonly PortRecord[]> {
  if (requested.length === 0) return [];
  const ports = requested.map(
    ({ name = "", groups = [], ...port }): NewPort => ({
      ...port,
      ...{ id: randomUUID(), networkId: SIMPLE_NETWORK.id, name, groups, createdAtMs: nowMs },
    }),
  );
  const outcome = await store.addPorts(ports, SIMPLE_POOL);
  switch (outcome.kind) {
    case "added":
      return outcome.ports;
    case "address-taken":
      throw badRequest(`Fixed IP address ${outcome.address} is already in use.`);
    case "no-address":
      throw badRequest(`No fixed IP addresses available for network: ${SIMPLE_NETWORK.id}`);
    default:
      return outcome satisfies never;
  }
}
