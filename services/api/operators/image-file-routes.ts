import { Type } from "typebox";
import type { ImageService } from "../../../core/stores/api/image-service.ts";
import type { ImageStore } from "../../../core/stores/api/image-store.ts";
import { forEachBounded } from "../../../runtime/for-each-bounded.ts";
import { callOf, type KnownCall } from "../http/call.ts";
import { canonicalUuid } from "../http/canonical-uuid.ts";
import type { Http } from "../http/create-http.ts";
import { Fault } from "../http/fault.ts";
import { imageCallerOf } from "../image/image-caller.ts";

/** Maximum number of ids of one question. */
export const IMAGE_IDS_MAX = 1_000;
/** How many images Glance is asked about at once. */
const ASKED_AT_A_TIME = 4;

const AskBody = Type.Object(
  { ids: Type.Array(Type.String({ maxLength: 36 }), { maxItems: IMAGE_IDS_MAX }) },
  { additionalProperties: false },
);
const Answer = Type.Object({ deleted: Type.Array(Type.String()), fetchedOnly: Type.Boolean() });

/** Where the images of servers are: in the API database, or in Glance. */
export type ImageOrigin =
  | { readonly kind: "own"; readonly store: Pick<ImageStore, "deletedImages"> }
  | { readonly kind: "glance"; readonly service: Pick<ImageService, "find"> };

/**
 * `POST /deleted-images`: which of the given ids belong to deleted images, so that their files can be removed. Admins only. With `fetchedOnly`, only files
 * that an api has fetched may be removed: other files may have ids that Glance never had.
 */
export function registerImageFileRoutes(http: Http, origin: ImageOrigin): void {
  const ask = { config: { rule: "berth:images:deleted" }, schema: { body: AskBody, response: { 200: Answer } } };
  http.post("/deleted-images", ask, async (request) => {
    const { ids } = request.body;
    if (origin.kind === "own") return { deleted: [...(await origin.store.deletedImages(ids))], fetchedOnly: false };
    return { deleted: await missingInGlance(origin.service, ids, callOf(request)), fetchedOnly: true };
  });
}

/**
 * Returns the ids of images that Glance does not have. It is asked in the caller's name, who must be an admin: to others it does not show the private
 * images of other projects. Rejects when Glance does not answer for one of them.
 */
async function missingInGlance(
  service: Pick<ImageService, "find">,
  ids: readonly string[],
  call: KnownCall,
): Promise<string[]> {
  const caller = imageCallerOf(call);
  if (!caller.isAdmin)
    throw new Fault(
      403,
      "Only an admin can ask Glance which images were deleted, since it shows all images to admins alone.",
    );
  const known = ids.filter((id) => canonicalUuid(id) !== null);
  const found = await forEachBounded(known, ASKED_AT_A_TIME, (id) => service.find(id, caller));
  return known.filter((_, index) => found[index] === null || found[index] === "deleted");
}
