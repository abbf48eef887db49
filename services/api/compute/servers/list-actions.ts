import type { KnownCall } from "../../http/call.ts";
import { badRequest, invalidQuery } from "../../http/fault.ts";
import { QueryReader } from "../../http/query-reader.ts";
import type { InstanceAction } from "./action-event.ts";

/** The first microversions with pages and `changes-since`, and with `changes-before`. */
const PAGES_FROM_MINOR = 58;
const BEFORE_FROM_MINOR = 66;
/** Facts about the query of `GET /servers/{id}/os-instance-actions`. */
export const INSTANCE_ACTION_QUERY = {
  query: {
    ...{ limit: PAGES_FROM_MINOR, marker: PAGES_FROM_MINOR, "changes-since": PAGES_FROM_MINOR },
    "changes-before": BEFORE_FROM_MINOR,
  },
  queryStrictFrom: PAGES_FROM_MINOR,
};

/** A page of a server's actions as it was asked for. */
export interface ActionsQuery {
  readonly limit: number;
  readonly marker: string | null;
  readonly sinceMs: number;
  readonly beforeMs: number;
}

/** Reads the query of a list of actions. Before microversion 2.58 it has no parameters, and any are ignored. Source: Nova's schemas. */
export function readActionsQuery(
  raw: Readonly<Record<string, string | readonly string[]>>,
  { minor }: Pick<KnownCall, "minor">,
  pageMax: number,
): ActionsQuery {
  const nothing = { marker: null, sinceMs: Number.NEGATIVE_INFINITY, beforeMs: Number.POSITIVE_INFINITY };
  if (minor < PAGES_FROM_MINOR) return { ...nothing, limit: Number.POSITIVE_INFINITY };
  const query = new QueryReader(raw);
  for (const name of Object.keys(raw)) {
    if (query.all(name).length > 1) throw invalidQuery(name, query.text(name), "It is given more than once.");
  }
  const sinceMs = query.time("changes-since") ?? nothing.sinceMs;
  const beforeMs = query.time("changes-before") ?? nothing.beforeMs;
  if (sinceMs > beforeMs) throw badRequest("The value of changes-since must be less than or equal to changes-before.");
  return { limit: query.limit(pageMax), marker: query.text("marker") ?? null, sinceMs, beforeMs };
}

/** Returns the page, with the request id that the next page begins after, or null on the last page. */
export function pageOfActions(
  actions: readonly InstanceAction[],
  { limit, marker, sinceMs, beforeMs }: ActionsQuery,
): { readonly actions: readonly InstanceAction[]; readonly nextMarker: string | null } {
  const at = marker === null ? -1 : actions.findIndex(({ requestId }) => requestId === marker);
  if (marker !== null && at === -1) throw badRequest(`Marker ${marker.slice(0, 100)} could not be found.`);
  const wanted = actions.slice(at + 1).filter(({ updatedAtMs }) => updatedAtMs >= sinceMs && updatedAtMs <= beforeMs);
  const page = wanted.slice(0, limit);
  return { actions: page, nextMarker: page.length < wanted.length ? (page.at(-1)?.requestId ?? null) : null };
}
