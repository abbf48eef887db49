import { Type } from "typebox";
import type { ImageStore } from "../../../core/stores/api/image-store.ts";
import { callOf, type KnownCall } from "../http/call.ts";
import type { Http } from "../http/create-http.ts";
import { type Place, placeOf } from "../http/links.ts";
import { type QueryParameters, QueryReader } from "../http/query-reader.ts";
import { AnyQuery } from "../http/schema.ts";
import { findImage, readMarker } from "./change-images.ts";
import { briefProxyView, proxyView } from "./image-view.ts";

/** The microversions that have the proxy. */
const config = { until: 35 };
const QUERY: QueryParameters = { limit: 1, marker: 1, name: 1 };

export interface ImageProxyOptions {
  readonly prefix: string;
  readonly publicUrl: string | null;
  readonly pageMax: number;
}

/** Registers the read-only `/images` of the Compute API, which ends after 2.35 as upstream. */
export function registerImageProxy(
  http: Http,
  store: Pick<ImageStore, "image" | "images">,
  options: ImageProxyOptions,
): void {
  const list = async (
    call: KnownCall,
    raw: Record<string, string | string[]>,
    place: Place,
    view: typeof briefProxyView,
  ) => {
    const query = new QueryReader(raw);
    const { identity } = call;
    const found = await store.images({
      visibleTo: identity.isAdmin ? null : identity.projectId,
      name: query.text("name") ?? null,
      marker: await readMarker(store, identity, query.text("marker")),
      limit: query.limit(options.pageMax),
    });
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
    const call = callOf(request);
    const image = await findImage(store, call.identity, request.params.id);
    return { image: proxyView(image, placeOf(request, options.prefix, options.publicUrl)) };
  });
}
