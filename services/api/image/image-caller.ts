import type { ImageCaller } from "../../../core/stores/api/image-service.ts";
import type { KnownCall } from "../http/call.ts";

/** The caller as the service of images needs it. */
export function imageCallerOf({ identity, token, requestId }: KnownCall): ImageCaller {
  return { projectId: identity.projectId, isAdmin: identity.isAdmin, token, requestId };
}
