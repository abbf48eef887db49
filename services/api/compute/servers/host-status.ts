import type { Cells, KnownServer } from "../../cells/hydrate-servers.ts";
import { type KnownCall, mayDo } from "../../http/call.ts";

/** The first microversion that shows admins the status of a server's host. */
const FROM_MINOR = 16;

/** The status of each server's host by the server's uuid. Empty for viewers who do not see it. */
export type HostStatuses = ReadonlyMap<string, string>;

/**
 * Reads the status of the servers' hosts, with one question per cell. By default the policy shows it to admins; it may show others only
 * that a status is UNKNOWN. The status of a host in a cell that does not answer is
 * UNKNOWN, and a server that is on no host has an empty one.
 *
 * Source: `get_instance_host_status` of Nova's compute API.
 */
export async function readHostStatuses(
  cells: Cells,
  call: KnownCall,
  servers: readonly KnownServer[],
): Promise<HostStatuses> {
  const seesAll = mayDo(call, "servers:show:host_status");
  const seesUnknown = seesAll || mayDo(call, "servers:show:host_status:unknown-only");
  if (!seesUnknown || call.minor < FROM_MINOR) return new Map();
  const hostsByCell = new Map<string, Set<string>>();
  for (const { cell, server } of servers) {
    if (cell === null || server.host === null) continue;
    const hosts = hostsByCell.get(cell) ?? new Set();
    hostsByCell.set(cell, hosts.add(server.host));
  }
  const statuses = new Map<string, string>();
  await Promise.all(
    Array.from(hostsByCell, async ([name, hosts]) => {
      const answer = await cells.get(name)?.adminHosts([...hosts]);
      if (answer?.kind !== "answer") return;
      for (const host of answer.value) statuses.set(host.name, statusOf(host));
    }),
  );
  const shown = servers.map(({ server, unreachable }): readonly [uuid: string, status: string] => {
    if (server.host === null) return [server.uuid, unreachable ? "UNKNOWN" : ""];
    return [server.uuid, statuses.get(server.host) ?? "UNKNOWN"];
  });
  return new Map(shown.filter(([, status]) => seesAll || status === "UNKNOWN"));
}

function statusOf(host: { readonly up: boolean; readonly disabled: boolean; readonly forcedDown: boolean }): string {
  if (host.forcedDown) return "DOWN";
  if (host.disabled) return "MAINTENANCE";
  return host.up ? "UP" : "UNKNOWN";
}
