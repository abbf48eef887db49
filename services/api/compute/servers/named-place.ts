import type { Cells } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import { requireRule } from "../../http/call.ts";
import { badRequest, invalidField } from "../../http/fault.ts";
import { mayHaveHost } from "../aggregates/find-host.ts";
import type { CreateServerBody } from "./create-schema.ts";
import type { KnownZones } from "./known-zones.ts";

/** The first microversion with a separate field for the host. */
const HOST_FROM_MINOR = 74;

/** The zone and host that a body asks for. */
export interface NamedPlace {
  /** The zone, or "" for any. */
  readonly zone: string;
  /** A host that is used without applying filters, or "". */
  readonly forcedHost: string;
  /** A host to which filters are applied too, or "". */
  readonly requestedHost: string;
}

/**
 * Reads `availability_zone` (`zone`, `zone:host`, `zone:host:node`, `zone::node`) and `host` or `hypervisor_hostname`. Only admins may name
 * hosts. Refuses an unknown zone, two different names for the host (a node has its host's name), and an unknown host in the separate field.
 * A host in the zone's field is looked up by the scheduler, as in Nova.
 */
export async function readPlace(
  body: CreateServerBody,
  call: KnownCall,
  { zones, cells }: { readonly zones: KnownZones; readonly cells: Cells },
): Promise<NamedPlace> {
  const { availability_zone: given = "", host, hypervisor_hostname: node } = body.server;
  const [zone = "", ...named] = given.split(":");
  if (named.length > 2)
    throw badRequest(
      "Invalid input received: Unable to parse availability_zone. It is zone, zone:host or zone:host:node.",
    );
  const forcedHost = oneName(named, "availability_zone", given);
  const requestedHost = oneName(
    [host ?? "", node ?? ""],
    host === undefined ? "hypervisor_hostname" : "host",
    host ?? node,
  );
  if (forcedHost !== "") requireRule(call, "servers:create:forced_host");
  if (host !== undefined || node !== undefined) {
    if (call.minor < HOST_FROM_MINOR) {
      const field = host === undefined ? "hypervisor_hostname" : "host";
      throw badRequest(`Additional properties are not allowed ('${field}' was unexpected)`);
    }
    requireRule(call, "compute:servers:create:requested_destination");
    if (forcedHost !== "")
      throw badRequest(
        "A host can be requested by availability_zone, or by host and hypervisor_hostname, but not by both.",
      );
  }
  if (zone !== "" && !(await zones.has(zone))) throw badRequest("The requested availability zone is not available");
  if (requestedHost !== "" && !(await mayHaveHost(cells, requestedHost)))
    throw badRequest(`Compute host ${requestedHost} could not be found.`);
  return { zone, forcedHost, requestedHost };
}

/** Returns the only name among them, or "" when there is none. */
function oneName(names: readonly string[], field: string, given: unknown): string {
  const [first = "", ...others] = names.filter((name) => name !== "");
  if (others.some((name) => name !== first)) {
    throw invalidField(field, given, "A hypervisor has the name of its host, but two different names are given.");
  }
  return first;
}
