import type { Pool } from "pg";
import type { RequestQuery, RequestRecord } from "../../../core/stores/api/api-store.ts";
import { LISTED_CHANGES } from "../../../core/stores/api/listed-names.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { queryStored } from "../client/store-query.ts";
import { fewOpen, listOpenOrFailed } from "./list-open-or-failed.ts";
import { REQUEST_COLUMNS, type RequestRow, requestOf } from "./read-requests.ts";
import { afterPlace, placeOfMarker, REQUEST_ORDERS_SQL } from "./request-order.ts";

/**
 * One page by keyset. The index returns it in order, however far down the list it is and however many requests before it were deleted. The
 * statement contains only the conditions of this query, since a prepared `$1 is null or …` would use no index. Cost: one round trip, and
 * one more each for a marker and for the open requests, unless those with a fault are asked for, too.
 */
export async function listRequests(pool: Pool, query: RequestQuery): Promise<readonly RequestRecord[]> {
  const conditions = ["not gone", "state not in ('deleted', 'cancelled')"];
  const values: unknown[] = [];
  const where = (asked: string, condition: (parameter: string) => string, value: unknown): void => {
    values.push(value);
    conditions.push(condition(`$${values.length}`));
    if (asked !== "") shape += `_${asked}`;
  };
  const only = (asked: string, condition: string): void => {
    conditions.push(condition);
    shape += `_${asked}`;
  };
  const { order = "newest-first" } = query;
  let shape = `list_requests_${order}`;
  let from = "requests";
  if (query.projectId !== null) where("project", (p) => `project_id = ${p}`, query.projectId);
  if (query.nameContains) {
    where("name", (p) => `name like ${p}`, patternOf(indexedPart(query.nameContains)));
    where("", (p) => `position(${p} in name) > 0`, query.nameContains);
  }
  // Each condition equals the condition of an index, or can be answered by that index.
  if (query.tags !== undefined) conditions.push("changes ? 'tags'");
  if (query.tags && query.tags.all.length > 0)
    where("tags", (p) => `changes -> 'tags' ?& ${p}::text[]`, textArrayLiteral(query.tags.all));
  if (query.tags && query.tags.any.length > 0)
    where("any_tags", (p) => `changes -> 'tags' ?| ${p}::text[]`, textArrayLiteral(query.tags.any));
  if (query.locked === true) only("locked", "changes ->> 'lock' is not null");
  if (query.changed === true) {
    conditions.push(`changes ?| array[${LISTED_CHANGES.map((field) => `'${field}'`).join(", ")}]`);
    shape += "_altered";
  }
  if (query.hasWord !== undefined) where("word", (p) => `name ilike ${p}`, patternOf(query.hasWord));
  if (query.oddlyNamed === true) only("odd", ODD_NAME);
  const isEither = query.open === true && query.failed === true;
  if (query.failed === true && !isEither) only("failed", "fault is not null");
  if (query.open === true && !isEither) {
    const open = await fewOpen(pool);
    if (open?.length === 0) return [];
    // With "offset 0", the few rows are read by their key alone, before anything else is compared.
    if (open === null) conditions.push("server_uuid in (select o.server_uuid from open_requests o)");
    else
      from = `(select * from requests where server_uuid = any ($${values.push(arrayLiteral(open))}::uuid[]) offset 0) requests`;
    if (open !== null) shape += "_few";
    shape += "_open";
  }
  const times = changeTimesOf(query);
  for (const [is, atMs] of times) where("changed", (p) => `updated_at ${is} to_timestamp(${p}::float8 / 1000)`, atMs);
  // No order, so that a search among very many changes ends with the last row that it may return.
  if (times.length > 0 && query.marker === null && !query.after)
    from = `(select * from ${from} where ${conditions.join(" and ")} limit $${values.push(query.limit)}) requests`;
  const after = query.marker === null ? query.after : await placeOfMarker(pool, query.marker);
  if (after === undefined && query.marker !== null) return [];
  if (after) {
    shape += "_marker";
    conditions.push(...afterPlace(order, after, (value) => `$${values.push(value)}`));
  }
  if (isEither) return listOpenOrFailed(pool, { order, shape, conditions, values, limit: query.limit });
  const rows = await queryStored<RequestRow>(pool, {
    name: shape,
    text: `select ${REQUEST_COLUMNS} from ${from} where ${conditions.join(" and ")}
      order by ${REQUEST_ORDERS_SQL[order].forwards} limit $${values.length + 1}`,
    ...{ values: [...values, query.limit], isBytesAsText: true },
    // A kept plan cannot know whether a time is that of few changes or of all.
    isPlannedEachTime: times.length > 0,
  });
  return rows.map(requestOf);
}

/** The limits of the time of change, each with its SQL operator. */
function changeTimesOf({ changedSinceMs, changedBeforeMs }: RequestQuery): readonly (readonly [">=" | "<", number])[] {
  const since = changedSinceMs === undefined ? [] : [[">=", changedSinceMs] as const];
  // Postgres's times are finer than milliseconds.
  return changedBeforeMs === undefined ? since : [...since, ["<", changedBeforeMs + 1] as const];
}

/** The condition of an index: the host name is not simply the name in lower case (`isOddName`). */
const ODD_NAME = `(substring(name for 63) ~ '[^A-Za-z0-9 _.-]' collate "C" or substring(name for 63) !~ '[A-Za-z0-9]' collate "C")`;

/** The share of the requests above which a name is not rare. */
const RARE_SHARE = 0.01;

/**
 * Whether the index of names finds few requests by the text, as the planner estimates from its sample of the names. Cost: one round trip, in which nothing is read.
 */
export async function isRareName(pool: Pool, nameContains: string): Promise<boolean> {
  const rowsOf = async (condition: string, values: readonly unknown[]): Promise<number> => {
    const [row] = await queryStored<{
      readonly "QUERY PLAN": readonly [{ readonly Plan: { readonly "Plan Rows": number } }];
    }>(pool, {
      name: "rows_of_name",
      text: `explain (format json) select from requests where not gone${condition}`,
      values,
      isPlannedEachTime: true,
    });
    return row?.["QUERY PLAN"][0].Plan["Plan Rows"] ?? 0;
  };
  const [all, named] = await Promise.all([
    rowsOf("", []),
    rowsOf(" and name like $1", [patternOf(indexedPart(nameContains))]),
  ]);
  return named < all * RARE_SHARE;
}

/** The index of names serves `like`, and no other way to search a text. */
const patternOf = (text: string): string => `%${text.replace(/[\\%_]/g, "\\$&")}%`;

/**
 * The word of a text that the index looks for. It has entries of three letters or digits each, and the search for one that nearly all names have is
 * slow. The numbers in names are mostly what distinguishes servers, so the word with the most digits is taken, otherwise the longest
 * one.
 */
function indexedPart(text: string): string {
  const words = (text.match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => word.length >= INDEXED_LETTERS_MIN);
  const digitsOf = (word: string) => word.replace(/\P{N}/gu, "").length;
  words.sort((one, other) => digitsOf(other) - digitsOf(one) || other.length - one.length);
  return words[0] ?? text;
}
const INDEXED_LETTERS_MIN = 3;
