import type { KnownCall } from "../../http/call.ts";
import { badRequest } from "../../http/fault.ts";
import { type QueryParameters, QueryReader } from "../../http/query-reader.ts";

export interface UsageQuery {
  readonly beginMs: number;
  /** Never in the future. */
  readonly endMs: number;
  /** Whether each server is shown. */
  readonly isDetailed: boolean;
  readonly marker: string | null;
  readonly limit: number;
  /** Whether the answer has a link to the next page. */
  readonly hasPages: boolean;
}

const PAGES_FROM_MINOR = 40;
/** The query of the usage of one project, and that of all projects. */
export const USAGE_QUERY: QueryParameters = { start: 1, end: 1, limit: PAGES_FROM_MINOR, marker: PAGES_FROM_MINOR };
export const USAGE_LIST_QUERY: QueryParameters = { ...USAGE_QUERY, detailed: 1 };
/** `2016-10-12T18:22:04`, with a fraction or not, or with a space and a fraction. All times are UTC. */
const TIME = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)| (\d{2}:\d{2}:\d{2}\.\d{1,6}))$/;

/** Reads the period of a report. Refuses malformed times and a period that is empty. Source: Nova's `simple_tenant_usage`. */
export function readUsageQuery(
  raw: Readonly<Record<string, string | readonly string[]>>,
  { minor }: Pick<KnownCall, "minor">,
  options: { readonly nowMs: number; readonly pageMax: number; readonly ofOneProject: boolean },
): UsageQuery {
  const query = new QueryReader(raw);
  const { nowMs, pageMax } = options;
  const [start, end] = [readTime(query.all("start")[0]), readTime(query.all("end")[0])];
  // Without times Nova reports the microseconds between two looks at its clock.
  const isOrdered = (start === null && end === null) || (start ?? nowMs) < (end ?? nowMs);
  if (!isOrdered) throw badRequest("Invalid start time. The start time cannot occur after the end time.");
  const hasPages = minor >= PAGES_FROM_MINOR;
  return {
    beginMs: start ?? nowMs,
    endMs: Math.min(end ?? nowMs, nowMs),
    isDetailed: options.ofOneProject || query.all("detailed")[0] === "1",
    marker: hasPages ? (query.text("marker") ?? null) : null,
    limit: hasPages ? query.limit(pageMax) : pageMax,
    hasPages,
  };
}

function readTime(text: string | undefined): number | null {
  if (text === undefined || text === "") return null;
  const [, day, afterT, afterSpace] = TIME.exec(text) ?? [];
  const atMs = day === undefined ? Number.NaN : Date.parse(`${day}T${afterT ?? afterSpace}Z`);
  if (Number.isNaN(atMs)) throw badRequest("Invalid datetime string: Datetime is in invalid format");
  return atMs;
}
