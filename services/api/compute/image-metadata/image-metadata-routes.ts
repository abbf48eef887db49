import { Type } from "typebox";
import type { ImageProperties, ImageService } from "../../../../core/stores/api/image-service.ts";
import { callOf, type KnownCall } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { badRequest, Fault, notFound } from "../../http/fault.ts";
import { Metadata } from "../../http/schema.ts";
import { isImageField } from "../../image/change-images.ts";
import { imageCallerOf } from "../../image/image-caller.ts";
import { imageRefusal } from "../../image/image-proxy-routes.ts";
import { refuseManyItems } from "../quotas/over-quota.ts";
import type { ProjectLimits } from "../quotas/project-limits.ts";

/** The microversions that have the metadata of images: some more than have the images. */
const config = { until: 38, rule: null };
const ImageParams = Type.Object({ id: Type.String() });
const ItemParams = Type.Object({ id: Type.String(), key: Type.String() });
const AllBody = Type.Object({ metadata: Metadata }, { additionalProperties: false });
const OneBody = Type.Object({ meta: Metadata }, { additionalProperties: false });

interface Deps {
  readonly images: Pick<ImageService, "find" | "changeProperties">;
  readonly limits: ProjectLimits;
}

/** `/images/{id}/metadata`: the properties of an image. Source: Nova's api-ref, "Image metadata". */
export function registerImageMetadataRoutes(http: Http, deps: Deps): void {
  const read = { config, schema: { params: ImageParams } };
  http.get("/images/:id/metadata", read, async (request) => ({
    metadata: await propertiesOf(deps, callOf(request), request.params.id),
  }));
  const write = { config, schema: { params: ImageParams, body: AllBody } };
  http.post("/images/:id/metadata", write, async (request) => {
    const { metadata } = request.body;
    return { metadata: await change(deps, callOf(request), request.params.id, (known) => ({ ...known, ...metadata })) };
  });
  http.put("/images/:id/metadata", write, async (request) => {
    const { metadata } = request.body;
    return { metadata: await change(deps, callOf(request), request.params.id, () => metadata) };
  });
  registerItems(http, deps);
}

function registerItems(http: Http, deps: Deps): void {
  const item = { config, schema: { params: ItemParams } };
  http.get("/images/:id/metadata/:key", item, async (request) => {
    const { id, key } = request.params;
    return { meta: { [key]: itemIn(await propertiesOf(deps, callOf(request), id), key) } };
  });
  const set = { config, schema: { params: ItemParams, body: OneBody } };
  http.put("/images/:id/metadata/:key", set, async (request) => {
    const { id, key } = request.params;
    const { meta } = request.body;
    if (Object.keys(meta).length !== 1)
      throw badRequest("Invalid input for field/attribute meta. It has exactly one item.");
    if (!Object.hasOwn(meta, key)) throw badRequest("Request body and URI mismatch");
    await change(deps, callOf(request), id, (known) => ({ ...known, ...meta }));
    return { meta };
  });
  http.delete("/images/:id/metadata/:key", item, async (request, reply) => {
    const { id, key } = request.params;
    await change(deps, callOf(request), id, (known) => {
      itemIn(known, key);
      const { [key]: _, ...others } = known;
      return others;
    });
    return reply.code(204).send();
  });
}

async function propertiesOf({ images }: Deps, call: KnownCall, id: string): Promise<ImageProperties> {
  const image = await images.find(id, imageCallerOf(call));
  if (image === null || image === "deleted") throw notFound("Image not found.");
  return image.properties;
}

function itemIn(properties: ImageProperties, key: string): string {
  const item = Object.hasOwn(properties, key) ? properties[key] : undefined;
  if (item === undefined) throw notFound("Invalid metadata key");
  return item;
}

/** Refuses more items than the quota allows, and new values of the image's own fields. */
async function change(
  { images, limits }: Deps,
  call: KnownCall,
  id: string,
  make: (known: ImageProperties) => ImageProperties,
): Promise<ImageProperties> {
  const allowed = await limits.ofProject(call.identity.projectId);
  const outcome = await images.changeProperties(
    id,
    (known) => {
      const made = make(known);
      const field = Object.keys(made).find((name) => isImageField(name) && made[name] !== known[name]);
      if (field !== undefined) throw new Fault(403, `Attribute '${field}' is read-only.`);
      if (Object.keys(made).length > Object.keys(known).length) refuseManyItems(made, allowed);
      return made;
    },
    imageCallerOf(call),
  );
  if (outcome.kind !== "changed") throw imageRefusal(outcome);
  return outcome.properties;
}
