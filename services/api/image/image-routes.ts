import { Type } from "typebox";
import { Value } from "typebox/value";
import { callOf } from "../http/call.ts";
import type { Http } from "../http/create-http.ts";
import { badRequest, notFound } from "../http/fault.ts";
import { registerNeighbourVersion } from "../http/neighbour-version.ts";
import { AnyQuery } from "../http/schema.ts";
import { changeTags, createImage, deleteImage, findImage, type ImageDeps, patchImage } from "./change-images.ts";
import { IMAGE_SCHEMA, IMAGES_SCHEMA } from "./image-schema-view.ts";
import { ChangedImage, CreateImageBody, PatchImageBody } from "./image-schemas.ts";
import { imageView } from "./image-view.ts";
import { listImages } from "./list-images.ts";

const IdParams = Type.Object({ id: Type.String() });
const TagParams = Type.Object({ id: Type.String(), tag: Type.String() });
/** Media types of a patch. */
const PATCH_TYPES = ["application/openstack-images-v2.1-json-patch", "application/openstack-images-v2.0-json-patch"];

/**
 * Registers the part of the Image API's `/v2/images` that describes images.
 *
 * Source: Glance's api-ref v2, "Images".
 */
export function registerImageRoutes(
  http: Http,
  deps: ImageDeps,
  options: { readonly pageMax: number; readonly publicUrl: string | null },
): void {
  const { publicUrl } = options;
  registerNeighbourVersion(http, { prefix: "/image", id: "v2.9", path: "/v2/", status: 300, publicUrl });
  http.addContentTypeParser(PATCH_TYPES, { parseAs: "buffer" }, (request, body, done) =>
    http.parseJson?.(request, body as Buffer, done),
  );

  http.get("/v2/schemas/image", () => IMAGE_SCHEMA);
  http.get("/v2/schemas/images", () => IMAGES_SCHEMA);

  const ofList = {
    config: { pageParameters: ["limit", "marker", "name", "visibility", "os_hidden"] },
    schema: { querystring: AnyQuery },
  };
  http.get("/v2/images", ofList, async (request) => listImages(deps.store, callOf(request), request.query, options));

  http.post("/v2/images", { schema: { body: CreateImageBody } }, async (request, reply) => {
    const image = await createImage(deps, callOf(request).identity, request.body);
    reply.code(201).header("location", `/image/v2/images/${image.id}`);
    return imageView(image);
  });

  http.get("/v2/images/:id", { schema: { params: IdParams } }, async (request) =>
    imageView(await findImage(deps.store, callOf(request).identity, request.params.id)),
  );

  http.patch("/v2/images/:id", { schema: { params: IdParams, body: PatchImageBody } }, async (request) => {
    const asked = { id: request.params.id, patch: request.body, check: checkImage };
    return imageView(await patchImage(deps, callOf(request).identity, asked));
  });

  http.put("/v2/images/:id/tags/:tag", { schema: { params: TagParams } }, async (request, reply) => {
    const { id, tag } = request.params;
    await changeTags(deps, callOf(request).identity, { id, check: checkImage, change: (tags) => [...tags, tag] });
    return reply.code(204).send();
  });

  http.delete("/v2/images/:id/tags/:tag", { schema: { params: TagParams } }, async (request, reply) => {
    const { id, tag } = request.params;
    const change = (tags: readonly string[]) => {
      if (!tags.includes(tag)) throw notFound(`Tag ${tag.slice(0, 100)} could not be found.`);
      return tags.filter((other) => other !== tag);
    };
    await changeTags(deps, callOf(request).identity, { id, check: checkImage, change });
    return reply.code(204).send();
  });

  http.delete("/v2/images/:id", { schema: { params: IdParams } }, async (request, reply) => {
    await deleteImage(deps, callOf(request).identity, request.params.id);
    return reply.code(204).send();
  });
}

function checkImage(fields: unknown): ChangedImage {
  if (Value.Check(ChangedImage, fields)) return fields;
  const [error] = Value.Errors(ChangedImage, fields);
  throw badRequest(`The image is not valid: ${error?.instancePath.slice(1) ?? ""} ${error?.message ?? ""}.`);
}
