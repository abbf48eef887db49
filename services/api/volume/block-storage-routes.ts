import { Type } from "typebox";
import type { VolumeUsage } from "../../../core/stores/api/volume-store.ts";
import { callOf, type KnownCall } from "../http/call.ts";
import type { Http } from "../http/create-http.ts";
import { Fault, notFound } from "../http/fault.ts";
import { placeOf } from "../http/links.ts";
import { AnyQuery } from "../http/schema.ts";
import { VOLUME_ZONE, type VolumeDeps } from "./change-volumes.ts";
import type { VolumeRouteOptions } from "./volume-routes.ts";
import { isVolumeType, VOLUME_TYPE } from "./volume-type.ts";

const IdParams = Type.Object({ id: Type.String() });
const LIST = { schema: { querystring: AnyQuery } };
const SHOW = { schema: { querystring: AnyQuery, params: IdParams } };
/** Collections that clients list and that are always empty. */
const EMPTY = ["snapshots", "backups"] as const;

/**
 * Registers the part of the Block Storage API that clients need beside volumes: its version, the one type and zone of volumes, limits, and
 * empty lists of the resources that do not exist here.
 *
 * Source: https://docs.openstack.org/api-ref/block-storage/v3/
 */
export function registerBlockStorageRoutes(http: Http, deps: VolumeDeps, options: VolumeRouteOptions): void {
  for (const [url, status] of [
    ["/", 300],
    ["/v3", 200],
  ] as const)
    http.get(url, { config: { public: true } }, async (request, reply) => {
      const { versioned } = placeOf(request, "/volume", options.publicUrl);
      reply.code(status);
      const links = [{ rel: "self", href: `${versioned}/v3/` }];
      return { versions: [{ id: "v3.0", status: "CURRENT", version: "3.0", min_version: "3.0", links }] };
    });
  http.get("/v3/types", LIST, async () => ({ volume_types: [VOLUME_TYPE] }));
  http.get("/v3/types/default", async () => ({ volume_type: VOLUME_TYPE }));
  http.get("/v3/types/:id", SHOW, async (request) => {
    const { id } = request.params;
    if (!isVolumeType(id)) throw notFound(`Volume type ${id.slice(0, 100)} could not be found.`);
    return { volume_type: VOLUME_TYPE };
  });
  http.get("/v3/os-availability-zone", LIST, async () => ({
    availabilityZoneInfo: [{ zoneName: VOLUME_ZONE, zoneState: { available: true } }],
  }));
  for (const collection of EMPTY)
    for (const tail of ["", "/detail"]) http.get(`/v3/${collection}${tail}`, LIST, async () => ({ [collection]: [] }));
  registerLimits(http, deps);
}

/** The limits are the same for all projects. */
function registerLimits(http: Http, { store, limits }: VolumeDeps): void {
  http.get("/v3/limits", LIST, async (request) => {
    const used = await store.usage(callOf(request).identity.projectId);
    return { limits: { rate: [], absolute: absoluteView(limits, used) } };
  });
  const quotas = quotasOf(limits);
  http.get("/v3/os-quota-sets/:id/defaults", SHOW, async (request) => {
    const { id } = request.params;
    refuseOthersQuotas(callOf(request), id);
    return { quota_set: { id, ...quotas } };
  });
  http.get("/v3/os-quota-class-sets/:id", SHOW, async (request) => {
    if (!callOf(request).identity.isAdmin) throw new Fault(403, "Only admins see the quotas of a class.");
    // As in Cinder, a class that nobody has changed has the default quotas.
    return { quota_class_set: { id: request.params.id, ...quotas } };
  });
  http.get("/v3/os-quota-sets/:id", SHOW, async (request) => {
    const { id } = request.params;
    refuseOthersQuotas(callOf(request), id);
    if (request.query.usage?.toString().toLowerCase() !== "true") return { quota_set: { id, ...quotas } };
    const { volumes, gib } = await store.usage(id);
    const used: Readonly<Record<string, number>> = { volumes, gigabytes: gib };
    const views = Object.entries(quotas).map(([name, limit]) => [
      name,
      { limit, in_use: used[name] ?? 0, reserved: 0, allocated: 0 },
    ]);
    return { quota_set: { id, ...Object.fromEntries(views) } };
  });
}

function refuseOthersQuotas({ identity }: KnownCall, projectId: string): void {
  if (!identity.isAdmin && projectId !== identity.projectId)
    throw new Fault(403, "Only admins see the quotas of other projects.");
}

/** -1 for no limit. */
const shown = (limit: number): number => (Number.isFinite(limit) ? limit : -1);

const quotasOf = ({ volumes, gib }: VolumeUsage) => ({
  ...{ volumes: shown(volumes), gigabytes: shown(gib), per_volume_gigabytes: -1 },
  ...{ snapshots: 0, backups: 0, backup_gigabytes: 0, groups: 0 },
});

const absoluteView = ({ volumes, gib }: VolumeUsage, used: VolumeUsage) => ({
  ...{ maxTotalVolumes: shown(volumes), totalVolumesUsed: used.volumes },
  ...{ maxTotalVolumeGigabytes: shown(gib), totalGigabytesUsed: used.gib },
  ...{ maxTotalSnapshots: 0, totalSnapshotsUsed: 0, maxTotalBackups: 0, totalBackupsUsed: 0 },
  ...{ maxTotalBackupGigabytes: 0, totalBackupGigabytesUsed: 0 },
});
