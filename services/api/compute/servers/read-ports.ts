import type { PortStore } from "../../../../core/stores/api/port-store.ts";
import { groupsToAttach } from "../../../../core/tasks/port-change.ts";
import type { PortRecord } from "../../../../core/tasks/port-record.ts";
import type { PortResourceRequest } from "../../../../proto/gen/berth/shared.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest, invalidField } from "../../http/fault.ts";
import type { Identity } from "../../http/identity.ts";
import type { CreateServerBody } from "./create-schema.ts";

/**
 * Reads what the ports in a body ask of a host: one request group of the server for each group of each port. Refuses networks (Berth
 * connects none), a port that is unknown or of another project, a port that is named twice, and ports for several servers.
 */
export async function readPorts(
  { server: { networks = [] } }: CreateServerBody,
  store: Pick<PortStore, "ports"> | null,
  from: { readonly identity: Identity; readonly servers: number },
): Promise<readonly WantedPort[]> {
  if (typeof networks === "string" || networks.length === 0) return [];
  const ids = networks.map(({ port, uuid, fixed_ip }) => {
    if (port == null || fixed_ip !== undefined)
      throw invalidField("networks", uuid ?? networks, "Berth connects no networks: name ports, none or auto.");
    return storedSpelling(port);
  });
  if (new Set(ids).size < ids.length) throw badRequest("A port is named twice in networks.");
  if (from.servers > 1)
    throw badRequest("A port cannot be given to several servers: leave out min_count and max_count.");
  const found = store === null ? [] : await store.ports(ids);
  const { projectId, isAdmin } = from.identity;
  const visible = new Map(
    found.filter((port) => isAdmin || port.projectId === projectId).map((port) => [port.id, port]),
  );
  const wanted: WantedPort[] = [];
  for (const id of ids) {
    const port = visible.get(id);
    if (port === undefined) throw badRequest(`Port id ${id} could not be found.`);
    // Suffixes are numbered by position, not by port id, so that servers with equal requests share one translation.
    const before = { portRequests: wanted.flatMap(({ requests }) => requests) };
    wanted.push({ port, requests: groupsToAttach(before, {}, port) });
  }
  return wanted;
}

/** A port with the request groups that it adds to its server. */
export interface WantedPort {
  readonly port: PortRecord;
  readonly requests: readonly PortResourceRequest[];
}
