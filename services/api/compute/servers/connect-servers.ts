import type { PortBinding } from "../../../../core/stores/api/port-store.ts";
import type { ServerPort, ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import { bindPorts, releasePort } from "../../network/bind-ports.ts";
import type { ConnectedServers } from "../../network/connected-servers.ts";
import { makePorts } from "../../network/make-ports.ts";
import type { SecurityGroupDesk } from "../../network/security-groups/security-group-desk.ts";
import { serverPortOf } from "../../network/server-port.ts";
import type { WantedPort } from "./read-ports.ts";

/**
 * Gives servers the ports of Berth's own that they asked for, in this order, and makes one for each connection of each server. The sweep of ports
 * removes what is left behind if this process ends before the servers are accepted. A refusal leaves nothing behind.
 */
export async function connectServers(
  deps: Parameters<typeof bindPorts>[0] & {
    readonly cells: Cells;
    readonly clock: Clock;
    readonly securityGroups: Pick<SecurityGroupDesk, "setNewPorts"> | null;
  },
  specs: readonly ServerSpec[],
  wanted: readonly WantedPort[],
  securityGroups: readonly string[] | null,
): Promise<ConnectedServers> {
  const { networkPorts: store, clock } = deps;
  const connections = wanted.filter(({ port }) => port === null);
  const requested = specs.flatMap(({ uuid, projectId }) =>
    connections.map(({ address }) => ({ projectId, serverUuid: uuid, address, endsWithServer: true })),
  );
  const made = store === null ? [] : await makePorts(store, requested, clock.now());
  const server = specs[0]?.uuid ?? "";
  let bound: readonly PortBinding[] = [];
  const undo = async () => {
    if (store === null) return;
    for (const binding of bound) await releasePort(store, binding, server);
    for (const { id } of made) await store.deletePort(id);
  };
  try {
    if (securityGroups !== null) await deps.securityGroups?.setNewPorts(made, securityGroups);
    const own = wanted.flatMap(({ port }) => port ?? []);
    bound = await bindPorts(deps, own, server);
  } catch (error) {
    await undo();
    throw error;
  }
  const fresh = made.values();
  const portsOf = (): ServerPort[] =>
    wanted.flatMap(({ port, tag }) => {
      const own = port ?? fresh.next().value;
      return own === undefined ? [] : [serverPortOf(own, tag)];
    });
  const settle = async (accepted: readonly ServerSpec[]) => {
    const kept = new Set(accepted.map(({ uuid }) => uuid));
    const others = made.flatMap(({ binding }) =>
      binding === null || kept.has(binding.serverUuid) ? [] : binding.serverUuid,
    );
    if (others.length > 0) await store?.endServers(others);
  };
  return { specs: specs.map((spec) => ({ ...spec, ports: portsOf() })), settle, undo };
}
