import type { ImageRecord } from "../../../core/stores/api/image-store.ts";
import type { Identity } from "../http/identity.ts";

/** Whether the caller may see the image: public and community images, the project's own images and, for admins, all. */
export function mayShow(
  { owner, visibility }: ImageRecord,
  { projectId, isAdmin }: Pick<Identity, "projectId" | "isAdmin">,
): boolean {
  return isAdmin || owner === projectId || visibility === "public" || visibility === "community";
}

/** Whether the caller may change the image: the project's own images and, for admins, all. */
export function mayChange(
  { owner }: ImageRecord,
  { projectId, isAdmin }: Pick<Identity, "projectId" | "isAdmin">,
): boolean {
  return isAdmin || owner === projectId;
}
