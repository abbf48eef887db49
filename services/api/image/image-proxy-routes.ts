import { Type } from "typebox";
import type { ImageService } from "../../../core/stores/api/image-service.ts";
import { callOf, type KnownCall } from "../http/call.ts";
import type { Http } from "../http/create-http.ts";
import { type Place, placeOf } from "../http/links.ts";
import { type QueryParameters, QueryReader } from "../http/query-reader.ts";
import { AnyQuery } from "../http/schema.ts";
import { imageNotFound, markerNotFound } from "./change-images.ts";
import { imageCallerOf } from "./image-caller.ts";
import { briefProxyView, proxyView } from "./image-view.ts";

/** The microversions that have the proxy. */
const config = { until: 35, rule: null };
const QUERY: QueryParameters = { limit: 1, marker: 1, name: 1 };

export interface ImageProxyOptions {
  readonly prefix: string;
  readonly publicUrl: string | null;
  readonly pageMax: number;
}

/** Registers the read-only `/images` of the Compute API, which ends after 2.35 as upstream. */
export function registerImageProxy(
  http: Http,
  images: Pick<ImageService, "find" | "list">,
  options: ImageProxyOptions,
): void {
  const list = async (
    call: KnownCall,
    raw: Record<string, string | string[]>,
    place: Place,
    view: typeof briefProxyView,
  ) => {
    const query = new QueryReader(raw);
    const marker = query.text("marker") ?? null;
    const found = await images.list(
      { name: query.text("name") ?? null, marker, limit: query.limit(options.pageMax) },
      imageCallerOf(call),
    );
    if (found === "no-marker") throw markerNotFound(marker ?? "");
    return { images: found.map((image) => view(image, place)) };
  };
  const ofList = { config: { ...config, query: QUERY }, schema: { querystring: AnyQuery } };
  http.get("/images", ofList, (request) =>
    list(callOf(request), request.query, placeOf(request, options.prefix, options.publicUrl), briefProxyView),
  );
  http.get("/images/detail", ofList, (request) =>
    list(callOf(request), request.query, placeOf(request, options.prefix, options.publicUrl), proxyView),
  );
  http.get("/images/:id", { config, schema: { params: Type.Object({ id: Type.String() }) } }, async (request) => {
    const image = await images.find(request.params.id, imageCallerOf(callOf(request)));
    if (image === null || image === "deleted") throw imageNotFound(request.params.id);
    return { image: proxyView(image, placeOf(request, options.prefix, options.publicUrl)) };
  });
}
