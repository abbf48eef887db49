import type { FastifyRequest } from "fastify";
import type { VolumeRecord, VolumeStore } from "../../../core/stores/api/volume-store.ts";
import type { KnownCall } from "../http/call.ts";
import { storedSpelling } from "../http/canonical-uuid.ts";
import { badRequest } from "../http/fault.ts";
import { nextLink, placeOf, type ResourceLink } from "../http/links.ts";
import { QueryReader } from "../http/query-reader.ts";
import { phaseOf } from "./volume-view.ts";

const KNOWN: ReadonlySet<string> = new Set([
  ...["all_tenants", "project_id", "name", "display_name", "status"],
  ...["limit", "marker", "offset", "sort", "sort_key", "sort_dir"],
]);
/** The list has one order: the newest volume first. */
const ONLY_KEY = "created_at";

export interface VolumeListing {
  readonly volumes: readonly VolumeRecord[];
  /** The link to the next page, if there may be one. */
  readonly next: readonly ResourceLink[];
}

/**
 * Reads a page of volumes: those of the caller's project, or for admins who ask for it those of all projects or of another one. Refuses a marker
 * that the caller may not see, and a filter or order that this list does not have (400): without it the answer would hold other volumes than
 * those that were asked for.
 */
export async function listVolumes(
  store: Pick<VolumeStore, "volumes" | "listVolumes">,
  { identity }: KnownCall,
  request: FastifyRequest & { readonly query: Readonly<Record<string, string | readonly string[]>> },
  options: { readonly path: string; readonly pageMax: number; readonly publicUrl: string | null },
): Promise<VolumeListing> {
  const query = new QueryReader(request.query);
  refuseOtherFilters(request.query);
  refuseOtherOrders(query);
  const [all, status] = [query.flag("all_tenants"), query.text("status")];
  const name = query.text("name") ?? query.text("display_name");
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

function refuseOtherFilters(query: object): void {
  const others = Object.keys(query).filter((name) => !KNOWN.has(name));
  if (others.length === 0) return;
  const named = others.join(", ").slice(0, 200);
  throw badRequest(`Invalid filters ${named} are found in query options. Allowed are: ${[...KNOWN].join(", ")}.`);
}

/** Where an order names no direction, Cinder sorts in descending order. */
function refuseOtherOrders(query: QueryReader): void {
  const [key, direction] = [query.text("sort_key") ?? ONLY_KEY, query.text("sort_dir") ?? "desc"];
  const order = query.text("sort") ?? `${key}:${direction}`;
  if (order === ONLY_KEY || order === `${ONLY_KEY}:desc`) return;
  throw badRequest(`Volumes can be listed in one order only: sort=${ONLY_KEY}:desc, the newest first.`);
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
