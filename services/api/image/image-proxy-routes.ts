import { Type } from "typebox";
import type { ImageStore } from "../../../core/stores/api/image-store.ts";
import { callOf, type KnownCall } from "../http/call.ts";
import type { Http } from "../http/create-http.ts";
import { notFound } from "../http/fault.ts";
import { type Place, placeOf } from "../http/links.ts";
import { QueryReader } from "../http/query-reader.ts";
import { AnyQuery } from "../http/schema.ts";
import { findImage, readMarker } from "./change-images.ts";
import { briefProxyView, proxyView } from "./image-view.ts";

/** The last microversion that has the proxy. */
const LAST_MINOR = 35;
const KNOWN: ReadonlySet<string> = new Set(["limit", "marker", "name"]);
const NONE: ReadonlySet<string> = new Set();

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
    refuseNewer(call);
    const query = new QueryReader(raw);
    query.refuseOthers({ known: KNOWN, unsupported: NONE, minor: call.minor });
    const { identity } = call;
    const found = await store.images({
      visibleTo: identity.isAdmin ? null : identity.projectId,
      name: query.text("name") ?? null,
      marker: await readMarker(store, identity, query.text("marker")),
      limit: query.limit(options.pageMax),
    });
    return { images: found.map((image) => view(image, place)) };
  };
  const schema = { querystring: AnyQuery };
  http.get("/images", { schema }, (request) =>
    list(callOf(request), request.query, placeOf(request, options.prefix, options.publicUrl), briefProxyView),
  );
  http.get("/images/detail", { schema }, (request) =>
    list(callOf(request), request.query, placeOf(request, options.prefix, options.publicUrl), proxyView),
  );
  http.get("/images/:id", { schema: { params: Type.Object({ id: Type.String() }) } }, async (request) => {
    const call = callOf(request);
    refuseNewer(call);
    const image = await findImage(store, call.identity, request.params.id);
    return { image: proxyView(image, placeOf(request, options.prefix, options.publicUrl)) };
  });
}

function refuseNewer({ minor }: KnownCall): void {
  if (minor > LAST_MINOR) throw notFound("The resource could not be found.");
}
