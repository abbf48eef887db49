import type { Asked, AskedPlace } from "./asked.ts";
import type { HostRequestDraft } from "./host-request-draft.ts";
import type { RequestContext } from "./request-context.ts";
import type { RequestRefusal } from "./request-refusal.ts";

/** Writes one part of a request for a server into the host request. Null when that part is valid. */
export type TranslationRule = (asked: Asked, draft: HostRequestDraft) => RequestRefusal | null;

/** Narrows the host request by the cloud's aggregates and settings, before any host is examined. */
export type RequestFilter = (
  asked: AskedPlace,
  draft: HostRequestDraft,
  context: RequestContext,
) => RequestRefusal | null;
