import { type Static, Type } from "typebox";
import type { KnownCall } from "../../http/call.ts";
import { badRequest } from "../../http/fault.ts";
import { imageCallerOf } from "../../image/image-caller.ts";
import type { ImageRule } from "../../image/image-rule.ts";
import { type ImagePort, judgeImage, provideImages } from "../servers/read-image.ts";
import { findAggregate } from "./change-aggregates.ts";
import type { OperatorDeps } from "./operator-deps.ts";

const IMAGES_MAX = 1_000;

export const CacheImagesBody = Type.Object(
  {
    cache: Type.Array(Type.Object({ id: Type.String({ format: "uuid" }) }, { additionalProperties: false }), {
      minItems: 1,
      maxItems: IMAGES_MAX,
    }),
  },
  { additionalProperties: false },
);

/**
 * Handles `POST /os-aggregates/{id}/images`: sees to it that the data of the images is where the hosts of the aggregate find it before a server needs
 * it. The directory of images is one for all hosts, so the aggregate decides nothing but whether it exists. Refuses an image that is named twice, and
 * one that no server of the caller's could boot from. Source: `images` of Nova's `AggregateController`.
 */
export async function cacheImages(
  deps: OperatorDeps & { readonly images: ImagePort | null },
  call: KnownCall,
  { id, cache, rule }: { readonly id: number; readonly rule: ImageRule } & Static<typeof CacheImagesBody>,
): Promise<void> {
  await findAggregate(deps, id);
  const ids = cache.map((image) => image.id);
  if (new Set(ids).size < ids.length) throw badRequest("Duplicate images in request");
  const { images } = deps;
  if (images === null) return;
  const needed = [];
  for (const image of ids) {
    const judged = await judgeImage(image, images, { caller: imageCallerOf(call), rule });
    if ("refused" in judged) throw badRequest(judged.refused);
    needed.push(...judged.needed);
  }
  await provideImages(images, needed);
}
