import type { ImageRecord } from "../../../core/cell/image-store.ts";
import type { Identity } from "../http/identity.ts";

/** Images that are open to all, one's own, and for admins every one. */
export function mayShow({ owner, visibility }: ImageRecord, { projectId, isAdmin }: Identity): boolean {
  return isAdmin || owner === projectId || visibility === "public" || visibility === "community";
}

/** One's own, and for admins every one. */
export function mayChange({ owner }: ImageRecord, { projectId, isAdmin }: Identity): boolean {
  return isAdmin || owner === projectId;
}
