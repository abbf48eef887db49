import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { UserChanges } from "../../../../core/tasks/user-changes.ts";
import { type Cells, hydrateServer } from "../../cells/hydrate-servers.ts";
import { conflict, unavailable } from "../../http/fault.ts";
import type { KnownZones } from "./known-zones.ts";
import { serverNotFound } from "./request-finder.ts";

/**
 * Returns the change that pins a server to an availability zone, or to none (null), from its next move on. A server can only be pinned to the zone that it
 * is in, and one that is pinned to another zone must be unpinned first (409).
 *
 * Source: `update` of Nova's servers API, at microversion 2.104. Cost: one question to the server's cell, and none to unpin.
 */
export async function readPinnedZone(
  { cells, zones }: { readonly cells: Cells; readonly zones: Pick<KnownZones, "current"> },
  record: RequestRecord,
  wanted: string | null,
): Promise<Pick<UserChanges, "availabilityZone">> {
  if (wanted === null) return { availabilityZone: "" };
  const known = await hydrateServer(record, cells, { withDeleted: false });
  if (known === null) throw serverNotFound(record.serverUuid);
  if (known.unreachable) throw unavailable(`Cell ${record.cell}, where the server lives, does not answer.`);
  const { host, spec } = known.server;
  if (spec.availabilityZone === wanted) return {};
  if (spec.availabilityZone !== "")
    throw conflict(
      "Cannot change pinned availability zone directly. Unpin first by setting pinned_availability_zone to null.",
    );
  const present = host === null ? null : (await zones.current()).of(host);
  if (present !== wanted)
    throw conflict(
      `Server can only be pinned to its current availability zone '${present}', but '${wanted}' was requested.`,
    );
  return { availabilityZone: wanted };
}
