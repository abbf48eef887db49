import type { PortStore } from "../../../../core/stores/api/port-store.ts";
import type { PortRecord } from "../../../../core/tasks/port-record.ts";
import type { ServerPort, ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { makePorts } from "../../network/make-ports.ts";
import { serverPortOf } from "../../network/server-port.ts";
import type { WantedPort } from "./read-ports.ts";

export interface ConnectedServers {
  readonly specs: readonly ServerSpec[];
  /** The ports that were made for them. */
  readonly made: readonly PortRecord[];
}

/** Gives servers the ports that they asked for, in this order, and makes one for each connection of each server. */
export async function connectServers(
  store: PortStore | null,
  specs: readonly ServerSpec[],
  wanted: readonly WantedPort[],
  nowMs: number,
): Promise<ConnectedServers> {
  const connections = wanted.filter(({ port }) => port === null);
  const wishes = specs.flatMap(({ uuid, projectId }) =>
    connections.map(({ address }) => ({ projectId, serverUuid: uuid, address, endsWithServer: true })),
  );
  const made = store === null ? [] : await makePorts(store, wishes, nowMs);
  const fresh = made.values();
  const portsOf = (): ServerPort[] =>
    wanted.flatMap(({ port, tag }) => {
      const own = port ?? fresh.next().value;
      return own === undefined ? [] : [serverPortOf(own, tag)];
    });
  return { specs: specs.map((spec) => ({ ...spec, ports: portsOf() })), made };
}
