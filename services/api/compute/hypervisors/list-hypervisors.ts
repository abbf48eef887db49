import type { Cells } from "../../cells/hydrate-servers.ts";
import { badRequest } from "../../http/fault.ts";
import { type QueryParameters, QueryReader } from "../../http/query-reader.ts";
import { hostsNamed } from "./find-hypervisor.ts";
import { type HostServer, readHostServers } from "./host-servers.ts";
import { hypervisorId } from "./hypervisor-view.ts";
import { type KnownHost, listHosts } from "./list-hosts.ts";

/** Microversions at which the lists of hypervisors changed: pages came, and then parameters in place of the routes `search` and `servers`. */
const PAGES_FROM_MINOR = 33;
export const PARAMETERS_FROM_MINOR = 53;
/** From here on a hypervisor without servers has an empty list of them, rather than none. */
const EMPTY_SERVERS_FROM_MINOR = 75;

const PAGE_PARAMETERS: QueryParameters = { limit: PAGES_FROM_MINOR, marker: PAGES_FROM_MINOR };
/** The query of one hypervisor. */
export const HYPERVISOR_QUERY: QueryParameters = { with_servers: PARAMETERS_FROM_MINOR };
/** The query of both lists of hypervisors. */
export const HYPERVISOR_LIST_QUERY: QueryParameters = {
  ...PAGE_PARAMETERS,
  ...HYPERVISOR_QUERY,
  hypervisor_hostname_pattern: PARAMETERS_FROM_MINOR,
};

type RawQuery = Readonly<Record<string, string | readonly string[]>>;

export interface ListedHypervisor {
  readonly known: KnownHost;
  /** Undefined when the answer has no servers. */
  readonly servers: readonly HostServer[] | undefined;
}

export interface HypervisorPage {
  readonly hypervisors: readonly ListedHypervisor[];
  /** The page after this one begins behind this id. Null when there is none. */
  readonly next: { readonly marker: string; readonly limit: number } | null;
}

/** One page of the hypervisors, sorted by name. Parameters that the microversion does not have are ignored, as in Nova. */
export async function listHypervisors(
  cells: Cells,
  raw: RawQuery,
  { minor, pageMax, withUsage }: { readonly minor: number; readonly pageMax: number; readonly withUsage: boolean },
): Promise<HypervisorPage> {
  const query = new QueryReader(raw);
  const withServers = minor >= PARAMETERS_FROM_MINOR && query.flag("with_servers");
  const pattern = minor >= PARAMETERS_FROM_MINOR ? query.text("hypervisor_hostname_pattern") : undefined;
  if (pattern !== undefined && Object.keys(raw).some((name) => Object.hasOwn(PAGE_PARAMETERS, name)))
    throw badRequest("Paging over hypervisors with the hypervisor_hostname_pattern query parameter is not supported.");
  const limit = minor >= PAGES_FROM_MINOR ? query.limit(pageMax) : Number.POSITIVE_INFINITY;
  const { hosts } = await listHosts(cells, { withUsage });
  const named = pattern === undefined ? null : hostsNamed(hosts, pattern);
  const page =
    named ?? pageAfter(hosts, minor >= PAGES_FROM_MINOR ? query.text("marker") : undefined, { minor, limit });
  const last = named === null && page.length === limit ? page.at(-1) : undefined;
  return {
    hypervisors: await withServersOf(cells, page, { minor, withServers }),
    next: last === undefined ? null : { marker: String(hypervisorId(last.host, minor)), limit },
  };
}

function pageAfter(
  hosts: readonly KnownHost[],
  marker: string | undefined,
  { minor, limit }: { readonly minor: number; readonly limit: number },
): readonly KnownHost[] {
  if (marker === undefined) return hosts.slice(0, limit);
  const at = hosts.findIndex(({ host }) => String(hypervisorId(host, minor)) === marker);
  if (at === -1) throw badRequest(`marker [${marker.slice(0, 100)}] not found`);
  return hosts.slice(at + 1, at + 1 + limit);
}

/** Reads whether the servers of one hypervisor are asked for. */
export function asksForServers(raw: RawQuery, minor: number): boolean {
  const query = new QueryReader(raw);
  return minor >= PARAMETERS_FROM_MINOR && query.flag("with_servers");
}

/** Adds their servers to hypervisors, if they are asked for. */
export async function withServersOf(
  cells: Cells,
  hosts: readonly KnownHost[],
  { minor, withServers }: { readonly minor: number; readonly withServers: boolean },
): Promise<readonly ListedHypervisor[]> {
  if (!withServers) return hosts.map((known) => ({ known, servers: undefined }));
  const servers = await readHostServers(cells, hosts);
  return hosts.map((known) => {
    const own = servers.get(known) ?? [];
    return { known, servers: own.length === 0 && minor < EMPTY_SERVERS_FROM_MINOR ? undefined : own };
  });
}
