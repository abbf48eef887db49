import type { Cells } from "../../cells/hydrate-servers.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import { badRequest, notFound } from "../../http/fault.ts";
import { hypervisorId, NO_USAGE_FROM_MINOR, UUIDS_FROM_MINOR } from "./hypervisor-view.ts";
import { type KnownHost, listHosts } from "./list-hosts.ts";

const SHOWN_MAX = 100;

/**
 * Finds a hypervisor by its id, which is a UUID from 2.53 on and a number before. Refuses an id of the wrong kind as Nova does. Where the usage is not shown, the servers of
 * the cells are not counted.
 */
export async function findHypervisor(cells: Cells, id: string, minor: number): Promise<KnownHost> {
  const byUuid = minor >= UUIDS_FROM_MINOR;
  const wanted = byUuid ? canonicalUuid(id) : id;
  if (wanted === null) throw badRequest(`Invalid uuid ${id.slice(0, SHOWN_MAX)}`);
  const { hosts } = await listHosts(cells, { withUsage: minor < NO_USAGE_FROM_MINOR });
  const found = hosts.find(({ host }) => String(hypervisorId(host, minor)) === wanted);
  if (found === undefined) throw notFound(`Hypervisor with ID '${id.slice(0, SHOWN_MAX)}' could not be found.`);
  return found;
}

/** Returns the hosts whose name contains the text. A 404 when there are none. */
export function hostsNamed(hosts: readonly KnownHost[], pattern: string): readonly KnownHost[] {
  const matching = hosts.filter(({ host }) => host.name.includes(pattern));
  if (matching.length === 0) throw notFound(`No hypervisor matching '${pattern.slice(0, SHOWN_MAX)}' could be found.`);
  return matching;
}
