import { type Static, Type } from "typebox";
import { forEachBounded } from "../../../../runtime/for-each-bounded.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest } from "../../http/fault.ts";
import { imageCallerOf } from "../../image/image-caller.ts";
import type { ImageRule } from "../../image/image-rule.ts";
import { type ImagePort, judgeImage, provideImages } from "../servers/read-image.ts";
import { findAggregate } from "./change-aggregates.ts";
import type { OperatorDeps } from "./operator-deps.ts";

const IMAGES_MAX = 1_000;
/** How many images Glance is asked about at once. */
const ASKED_AT_A_TIME = 4;

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
  const caller = imageCallerOf(call);
  const judged = await forEachBounded(ids, ASKED_AT_A_TIME, (image) => judgeImage(image, images, { caller, rule }));
  const needed = judged.flatMap((image) => {
    if ("refused" in image) throw badRequest(image.refused);
    return image.needed;
  });
  await provideImages(images, needed);
}
