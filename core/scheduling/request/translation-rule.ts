import type { Asked, AskedPlace } from "./asked.ts";
import type { QueryDraft } from "./query-draft.ts";
import type { RequestContext } from "./request-context.ts";
import type { RequestRefusal } from "./request-refusal.ts";

/** Writes one part of what a request asks into the query. Null: nothing is wrong with it. */
export type TranslationRule = (asked: Asked, draft: QueryDraft) => RequestRefusal | null;

/** Narrows the query by what only the cloud's aggregates and settings tell, before any host is looked at. */
export type RequestFilter = (asked: AskedPlace, draft: QueryDraft, context: RequestContext) => RequestRefusal | null;
