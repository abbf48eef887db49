import type { FastifyRequest } from "fastify";
import type { VolumeRecord, VolumeStore } from "../../../core/stores/api/volume-store.ts";
import type { KnownCall } from "../http/call.ts";
import { storedSpelling } from "../http/canonical-uuid.ts";
import { badRequest } from "../http/fault.ts";
import { nextLink, placeOf, type ResourceLink } from "../http/links.ts";
import { QueryReader } from "../http/query-reader.ts";
import { phaseOf } from "./volume-view.ts";

export interface VolumeListing {
  readonly volumes: readonly VolumeRecord[];
  /** The link to the next page, if there may be one. */
  readonly next: readonly ResourceLink[];
}

/**
 * Reads a page of volumes: those of the caller's project, or for admins who ask for it those of all projects or of another one. Refuses a marker
 * that the caller may not see (400).
 */
export async function listVolumes(
  store: Pick<VolumeStore, "volumes" | "listVolumes">,
  { identity }: KnownCall,
  request: FastifyRequest & { readonly query: Readonly<Record<string, string | readonly string[]>> },
  options: { readonly path: string; readonly pageMax: number; readonly publicUrl: string | null },
): Promise<VolumeListing> {
  const query = new QueryReader(request.query);
  const [all, name, status] = [query.flag("all_tenants"), query.text("name"), query.text("status")];
  const asked = query.text("project_id");
  const projectId = !identity.isAdmin ? identity.projectId : (asked ?? (all ? null : identity.projectId));
  const phase = status === undefined ? undefined : phaseOf(status);
  const limit = query.limit(options.pageMax);
  const after = await readMarker(store, projectId, query.text("marker"));
  // No volume has any other status.
  if (phase === null) return { volumes: [], next: [] };
  const volumes = await store.listVolumes({
    ...{ projectId, limit, offset: query.wholeNumber("offset") ?? 0 },
    ...(name !== undefined && { name }),
    ...(phase !== undefined && { phase }),
    ...(after !== undefined && { after }),
  });
  const last = volumes.at(-1);
  if (last === undefined || volumes.length < limit) return { volumes, next: [] };
  const { offset: _, ...rest } = request.query;
  const place = placeOf(request, "/volume", options.publicUrl);
  return { volumes, next: [nextLink(place, `v3/${options.path}`, rest, { marker: last.id, limit })] };
}

async function readMarker(
  store: Pick<VolumeStore, "volumes">,
  projectId: string | null,
  marker: string | undefined,
): Promise<VolumeRecord | undefined> {
  if (marker === undefined) return undefined;
  const [volume] = await store.volumes([storedSpelling(marker)]);
  if (volume === undefined || (projectId !== null && volume.projectId !== projectId))
    throw badRequest(`Marker ${marker.slice(0, 100)} could not be found.`);
  return volume;
}
