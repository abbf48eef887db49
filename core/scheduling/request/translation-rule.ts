import type { Asked, AskedPlace } from "./asked.ts";
import type { QueryDraft } from "./query-draft.ts";
import type { RequestContext } from "./request-context.ts";
import type { RequestRefusal } from "./request-refusal.ts";

/** Writes one part of a request into the query. Null when that part is valid. */
export type TranslationRule = (asked: Asked, draft: QueryDraft) => RequestRefusal | null;

/** Narrows the query by the cloud's aggregates and settings, before any host is examined. */
export type RequestFilter = (asked: AskedPlace, draft: QueryDraft, context: RequestContext) => RequestRefusal | null;
