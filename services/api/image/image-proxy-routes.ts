import { Type } from "typebox";
import type { ImageFilters, ImageRefusal, ImageService } from "../../../core/stores/api/image-service.ts";
import { callOf, type KnownCall } from "../http/call.ts";
import type { Http } from "../http/create-http.ts";
import { conflict, Fault, invalidQuery, notFound } from "../http/fault.ts";
import { nextLink, placeOf } from "../http/links.ts";
import { type QueryParameters, QueryReader } from "../http/query-reader.ts";
import { AnyQuery } from "../http/schema.ts";
import { markerNotFound } from "./change-images.ts";
import { imageCallerOf } from "./image-caller.ts";
import { briefProxyView, type ImagePlace, proxyView } from "./image-view.ts";

/** The microversions that have the proxy. */
const config = { until: 35, rule: null };
const PAGE_PARAMETERS = ["limit", "marker", "name"];
const QUERY: QueryParameters = {
  ...{ limit: 1, marker: 1, name: 1, status: 1, "changes-since": 1, server: 1, type: 1, minRam: 1, minDisk: 1 },
};
const PROPERTY = "property-";

export interface ImageProxyOptions {
  readonly prefix: string;
  readonly publicUrl: string | null;
  readonly pageMax: number;
}

/** Registers `/images` of the Compute API, which stands for the Image API and ends after 2.35 as upstream. */
export function registerImageProxy(
  http: Http,
  images: Pick<ImageService, "find" | "list" | "remove" | "imagesUrl">,
  options: ImageProxyOptions,
): void {
  const list = async (
    call: KnownCall,
    raw: Record<string, string | string[]>,
    place: ImagePlace,
    { view, path }: { readonly view: typeof briefProxyView; readonly path: string },
  ) => {
    const query = new QueryReader(raw);
    const marker = query.text("marker") ?? null;
    const limit = query.limit(options.pageMax);
    const asked = { name: query.text("name") ?? null, marker, limit, filters: readFilters(query, raw) };
    const found = limit === 0 ? [] : await images.list(asked, imageCallerOf(call));
    if (found === "no-marker") throw markerNotFound(marker ?? "");
    const last = found.length === limit ? found.at(-1) : undefined;
    return {
      images: found.map((image) => view(image, place)),
      ...(last !== undefined && { images_links: [nextLink(place, path, raw, { marker: last.id, limit })] }),
    };
  };
  const ofList = {
    config: { ...config, query: QUERY, pageParameters: PAGE_PARAMETERS },
    schema: { querystring: AnyQuery },
  };
  const place = async (request: Parameters<typeof placeOf>[0]): Promise<ImagePlace> => {
    const own = `${options.publicUrl ?? `${request.protocol}://${request.host}`}/image/v2/images`;
    return { ...placeOf(request, options.prefix, options.publicUrl), images: (await images.imagesUrl()) ?? own };
  };
  http.get("/images", ofList, async (request) =>
    list(callOf(request), request.query, await place(request), { view: briefProxyView, path: "images" }),
  );
  http.get("/images/detail", ofList, async (request) =>
    list(callOf(request), request.query, await place(request), { view: proxyView, path: "images/detail" }),
  );
  const one = { config, schema: { params: Type.Object({ id: Type.String() }) } };
  http.get("/images/:id", one, async (request) => {
    const image = await images.find(request.params.id, imageCallerOf(callOf(request)));
    if (image === null || image === "deleted") throw notFound("Image not found.");
    return { image: proxyView(image, await place(request)) };
  });
  http.delete("/images/:id", one, async (request, reply) => {
    const outcome = await images.remove(request.params.id, imageCallerOf(callOf(request)));
    if (outcome.kind !== "removed") throw imageRefusal(outcome, "You are not allowed to delete the image.");
    return reply.code(204).send();
  });
}

/** Returns the error of a change that the service of images refuses. Source: nova/api/openstack/compute/images.py */
export function imageRefusal({ kind, why }: ImageRefusal, forbidden = why): Fault {
  switch (kind) {
    case "gone":
      return notFound("Image not found.");
    case "forbidden":
      return new Fault(403, forbidden);
    case "conflict":
      return conflict(why);
    default:
      return kind satisfies never;
  }
}

/** Nova asks for images in Glance's words, in lower case. Source: `_get_filters` in nova/api/openstack/compute/images.py */
const STATUSES = ["queued", "saving", "active", "killed", "deleted"] as const;

function readFilters(query: QueryReader, raw: Readonly<Record<string, unknown>>): ImageFilters {
  const asked = query.text("status");
  const status = STATUSES.find((one) => one === asked?.toLowerCase());
  const changedSinceMs = query.time("changes-since");
  const [minDiskGib, minRamMib] = [query.wholeNumber("minDisk"), query.wholeNumber("minRam")];
  const properties: Record<string, string> = {};
  for (const name of Object.keys(raw))
    if (name.startsWith(PROPERTY)) properties[name.slice(PROPERTY.length)] = query.text(name) ?? "";
  const server = query.text("server");
  // Clients name a server by its id or its URL.
  if (server !== undefined) properties.instance_uuid = server.slice(server.lastIndexOf("/") + 1);
  const type = query.text("type");
  if (type !== undefined) properties.image_type = type;
  if (asked !== undefined && status === undefined)
    throw invalidQuery("status", asked, `It is not one of ${STATUSES.join(", ")}.`);
  return {
    ...(status !== undefined && { status }),
    ...(changedSinceMs !== undefined && { changedSinceMs }),
    ...(minDiskGib !== undefined && { minDiskGib }),
    ...(minRamMib !== undefined && { minRamMib }),
    properties,
  };
}
