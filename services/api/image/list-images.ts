import type { ImageQuery, ImageRecord, ImageStore } from "../../../core/stores/api/image-store.ts";
import type { KnownCall } from "../http/call.ts";
import { badRequest, invalidQuery } from "../http/fault.ts";
import { type QueryParameters, QueryReader } from "../http/query-reader.ts";
import { readMarker } from "./change-images.ts";
import { imageView } from "./image-view.ts";

const QUERY: QueryParameters = {
  ...{ limit: 1, marker: 1, name: 1, os_hidden: 1, visibility: 1 },
  ...{ status: 1, sort: 1, sort_key: 1, sort_dir: 1 },
};
/** Filters of Glance that are not served. Every other name is that of a field or of a property of images. */
const UNSERVED: ReadonlySet<string> = new Set([
  ...["changes-since", "created_at", "member_status", "size_max", "size_min", "tag", "updated_at"],
]);
const FILTERS_MAX = 64;
const VISIBILITIES: ReadonlySet<string> = new Set(["public", "private", "shared", "community"]);
const SORT_KEYS: ReadonlySet<string> = new Set([
  ...["name", "status", "container_format", "disk_format", "size", "id", "created_at", "updated_at"],
]);
/** Maximum number of images that are sorted for one page. */
const SORTED_MAX = 10_000;
export const STRETCH = 1_000;
/** Maximum number of images that are read for one page of a list with filters. */
const READ_MAX = 50 * STRETCH;

type View = Readonly<Record<string, unknown>>;
/** The values that images must have in some of their fields and properties. */
type Filters = readonly (readonly [name: string, value: string])[];
type Order = readonly { readonly key: string; readonly descending: boolean }[];

/**
 * Handles `GET /v2/images`. By default the newest images come first, from an index. For another order, all images that the caller may see are read.
 * Refuses that where they are too many. Source: Glance's api-ref v2, "List images".
 */
export async function listImages(
  store: Pick<ImageStore, "image" | "images">,
  { identity }: Pick<KnownCall, "identity">,
  raw: Readonly<Record<string, string | readonly string[]>>,
  { pageMax }: { readonly pageMax: number },
): Promise<Record<string, unknown>> {
  const query = new QueryReader(raw);
  const filters = readFilters(raw);
  const limit = query.limit(pageMax);
  const order = readOrder(query);
  const marker = await readMarker(store, identity, query.text("marker"));
  const wanted = {
    visibleTo: identity.isAdmin ? null : identity.projectId,
    name: query.text("name") ?? null,
    ...readVisibility(query, identity.projectId),
  };
  const page =
    // No image is ever hidden.
    query.flag("os_hidden")
      ? []
      : order === null
        ? await readNewest(store, { ...wanted, marker: marker?.id ?? null }, { filters, limit })
        : pageOf(await readAll(store, wanted), { filters, order, marker, limit });
  const last = page.at(-1);
  const next = page.length === limit && last ? { next: nextLink(raw, limit, String(last.id)) } : {};
  return { images: page, first: "/v2/images", schema: "/v2/schemas/images", ...next };
}

type Wanted = Pick<ImageQuery, "visibleTo" | "name" | "visibility" | "communityOf">;

/** Reads in the order of the index until the page is full, or until the images end. Refuses filters for which too many images would have to be read. */
async function readNewest(
  store: Pick<ImageStore, "images">,
  wanted: Wanted & Pick<ImageQuery, "marker">,
  { filters, limit }: { readonly filters: Filters; readonly limit: number },
): Promise<readonly View[]> {
  const size = filters.length === 0 ? limit : STRETCH;
  const page: View[] = [];
  let read = 0;
  for (let { marker } = wanted; ; ) {
    const stretch = await store.images({ ...wanted, marker, limit: size });
    read += stretch.length;
    page.push(...stretch.map(imageView).filter((image) => passes(image, filters)));
    if (page.length >= limit || stretch.length < size) return page.slice(0, limit);
    if (read >= READ_MAX)
      throw badRequest(
        `Fewer than ${limit} of the first ${read} images pass the filters: choose the images also by name or visibility, or ask for fewer with limit.`,
      );
    marker = stretch.at(-1)?.id ?? null;
  }
}

async function readAll(store: Pick<ImageStore, "images">, wanted: Wanted): Promise<readonly ImageRecord[]> {
  const all: ImageRecord[] = [];
  for (let marker: string | null = null; ; ) {
    const stretch: readonly ImageRecord[] = await store.images({ ...wanted, marker, limit: STRETCH });
    all.push(...stretch);
    if (all.length > SORTED_MAX)
      throw badRequest(
        `More than ${SORTED_MAX} images would have to be sorted: leave sort_key, sort_dir and sort out.`,
      );
    if (stretch.length < STRETCH) return all;
    marker = stretch.at(-1)?.id ?? null;
  }
}

/**
 * Returns the images that follow the marker in the order. Images that are equal in it keep their order, the newest first. The marker is sorted in even if it
 * has left the filters since the page before, so that the list goes on after its place.
 */
function pageOf(
  images: readonly ImageRecord[],
  asked: {
    readonly filters: Filters;
    readonly order: Order;
    readonly marker: ImageRecord | null;
    readonly limit: number;
  },
): readonly View[] {
  const { filters, order, marker, limit } = asked;
  const missing = marker === null || images.some(({ id }) => id === marker.id) ? [] : [marker];
  const newest = [...images, ...missing].sort(newestFirst).map(imageView);
  const sorted = newest.sort((one, other) => compareIn(order, one, other));
  const from = marker === null ? 0 : sorted.findIndex(({ id }) => id === marker.id) + 1;
  return sorted
    .slice(from)
    .filter((image) => passes(image, filters))
    .slice(0, limit);
}

/**
 * Reads the filters of a list that are not the store's: the status, and each parameter that `QUERY` lacks, which names a field or a property. Refuses
 * Glance's own filters that are not served, since they would be taken for properties.
 */
function readFilters(raw: Readonly<Record<string, string | readonly string[]>>): Filters {
  const names = Object.keys(raw).filter((name) => name === "status" || !Object.hasOwn(QUERY, name));
  const unserved = names.find((name) => UNSERVED.has(name));
  if (unserved !== undefined) throw badRequest(`Images cannot be filtered by ${unserved}: leave it out.`);
  if (names.length > FILTERS_MAX) throw badRequest(`Images can be filtered by at most ${FILTERS_MAX} properties.`);
  return names.map((name) => [name, [raw[name]].flat().at(-1) ?? ""]);
}

function passes(image: View, filters: Filters): boolean {
  return filters.every(([name, value]) => {
    const own = Object.hasOwn(image, name) ? image[name] : undefined;
    // Glance takes True for true.
    return typeof own === "boolean"
      ? String(own) === value.toLowerCase()
      : own !== undefined && own !== null && String(own) === value;
  });
}

/** The order of the index. */
function newestFirst(one: ImageRecord, other: ImageRecord): number {
  return other.createdAtMs - one.createdAtMs || (one.id < other.id ? -1 : 1);
}

function compareIn(order: Order, one: View, other: View): number {
  for (const { key, descending } of order) {
    const compared = compareValues(one[key], other[key]);
    if (compared !== 0) return descending ? -compared : compared;
  }
  return 0;
}

/** Unknown values come first. */
function compareValues(one: unknown, other: unknown): number {
  if (one === other) return 0;
  if (one === null || one === undefined) return -1;
  if (other === null || other === undefined) return 1;
  return one < other ? -1 : 1;
}

/** Reads `sort=key:dir,…`, or `sort_key` and `sort_dir`, which may be repeated. Null for the order of the index. Descending by default, as in Glance. */
function readOrder(query: QueryReader): Order | null {
  const [keys, directions] = [query.all("sort_key"), query.all("sort_dir")];
  const sort = query.text("sort");
  if (sort !== undefined && keys.length + directions.length > 0)
    throw badRequest("Old and new sorting syntax cannot be combined");
  if (sort === undefined && directions.length > Math.max(1, keys.length))
    throw badRequest("The number of sort keys and sort directions does not match");
  const parts =
    sort === undefined
      ? (keys.length === 0 && directions.length > 0 ? ["created_at"] : keys).map(
          (key, at) => [key, directions[at] ?? directions.at(-1)] as const,
        )
      : sort.split(",").map((part) => part.split(":", 2) as [string, string?]);
  // There are no more keys, so one of them would be repeated.
  if (parts.length > SORT_KEYS.size) throw badRequest(`Images are sorted by at most ${SORT_KEYS.size} keys.`);
  const order = parts.map(([key, direction = "desc"]) => {
    if (!SORT_KEYS.has(key)) throw invalidQuery("sort_key", key, `It is none of ${[...SORT_KEYS].join(", ")}.`);
    if (direction !== "asc" && direction !== "desc")
      throw invalidQuery("sort_dir", direction, "It is neither asc nor desc.");
    return { key, descending: direction === "desc" };
  });
  const isOfIndex = order.length === 0 || (order.length === 1 && order[0]?.key === "created_at" && order[0].descending);
  return isOfIndex ? null : order;
}

/** The next page has the same filters and the same order. */
function nextLink(raw: Readonly<Record<string, string | readonly string[]>>, limit: number, marker: string): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(raw))
    if (name !== "limit" && name !== "marker") for (const one of [value].flat()) query.append(name, one);
  query.set("limit", String(limit));
  query.set("marker", marker);
  return `/v2/images?${query}`;
}

/** Reads the visibility that a list is restricted to. Community images of other projects are listed only if they are asked for, since anybody can make some. */
function readVisibility(query: QueryReader, projectId: string): Pick<ImageQuery, "visibility" | "communityOf"> {
  const asked = query.text("visibility");
  if (asked === undefined) return { communityOf: projectId };
  if (asked === "all") return {};
  if (VISIBILITIES.has(asked)) return { visibility: asked };
  throw invalidQuery("visibility", asked, "It is none of public, private, shared, community and all.");
}
