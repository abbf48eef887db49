import { mayHaveHost } from "../aggregates/find-host.ts";
import type { KnownCall } from "../http/call.ts";
import { requireAdmin } from "../http/call.ts";
import { badRequest, invalidField } from "../http/fault.ts";
import type { CreateServerBody } from "./create-schema.ts";
import type { Cells } from "./hydrate-servers.ts";
import type { KnownZones } from "./known-zones.ts";

/** From this microversion on a host may be named by a field of its own. */
const HOST_FROM_MINOR = 74;

/** Where a body wants its servers. */
export interface NamedPlace {
  /** "": anywhere. */
  readonly zone: string;
  /** No filter is asked about it. */
  readonly forcedHost: string;
  /** The filters judge it, too. */
  readonly requestedHost: string;
}

/**
 * `availability_zone` (`zone`, `zone:host`, `zone:host:node`, `zone::node`) and `host` or `hypervisor_hostname`. Only admins name hosts.
 * Refuses a zone that there is not, two names for the host that differ (a node is called as its host), and a host of its own field that
 * no cell has; a host of the zone's field is looked for by the scheduler, as in Nova.
 */
export async function readPlace(
  body: CreateServerBody,
  call: KnownCall,
  { zones, cells }: { readonly zones: KnownZones; readonly cells: Cells },
): Promise<NamedPlace> {
  const { availability_zone: given = "", host, hypervisor_hostname: node } = body.server;
  const [zone = "", ...named] = given.split(":");
  if (named.length > 2) throw badRequest("Invalid availability zone format: it is zone, zone:host or zone:host:node.");
  const forcedHost = oneName(named, "availability_zone", given);
  const requestedHost = oneName(
    [host ?? "", node ?? ""],
    host === undefined ? "hypervisor_hostname" : "host",
    host ?? node,
  );
  if (forcedHost !== "") requireAdmin(call, "servers:create:forced_host");
  if (host !== undefined || node !== undefined) {
    if (call.minor < HOST_FROM_MINOR) {
      const field = host === undefined ? "hypervisor_hostname" : "host";
      throw badRequest(`Additional properties are not allowed ('${field}' was unexpected)`);
    }
    requireAdmin(call, "compute:servers:create:requested_destination");
    if (forcedHost !== "")
      throw badRequest("A host is named by availability_zone, or by host and hypervisor_hostname, not by both.");
  }
  if (zone !== "" && !(await zones.has(zone))) throw badRequest("The requested availability zone is not available");
  if (requestedHost !== "" && !(await mayHaveHost(cells, requestedHost)))
    throw badRequest(`Compute host ${requestedHost} could not be found.`);
  return { zone, forcedHost, requestedHost };
}

/** The one name among them; "": none. */
function oneName(names: readonly string[], field: string, given: unknown): string {
  const [first = "", ...others] = names.filter((name) => name !== "");
  if (others.some((name) => name !== first)) {
    throw invalidField(field, given, "A hypervisor is called as its host, and two names are given.");
  }
  return first;
}
