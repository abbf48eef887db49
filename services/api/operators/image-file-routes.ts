import { Type } from "typebox";
import type { ImageStore } from "../../../core/stores/api/image-store.ts";
import type { Http } from "../http/create-http.ts";

/** Maximum number of ids of one question. */
export const IMAGE_IDS_MAX = 1_000;

const AskBody = Type.Object(
  { ids: Type.Array(Type.String({ maxLength: 36 }), { maxItems: IMAGE_IDS_MAX }) },
  { additionalProperties: false },
);
const Answer = Type.Object({ deleted: Type.Array(Type.String()) });

/** `POST /deleted-images`: which of the given ids belong to deleted images, so that their files can be removed. Admins only. */
export function registerImageFileRoutes(http: Http, images: Pick<ImageStore, "deletedImages">): void {
  const ask = { config: { rule: "berth:images:deleted" }, schema: { body: AskBody, response: { 200: Answer } } };
  http.post("/deleted-images", ask, async (request) => {
    return { deleted: [...(await images.deletedImages(request.body.ids))] };
  });
}
