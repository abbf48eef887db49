import type { Pool } from "pg";
import type {
  RequestOrder,
  RequestQuery,
  RequestRecord,
  RequestScan,
  RequestStretch,
} from "../../../core/stores/api/api-store.ts";
import { LISTED_CHANGES } from "../../../core/stores/api/listed-names.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { queryStored } from "../client/store-query.ts";
import { REQUEST_COLUMNS, type RequestRow, readRequests, requestOf } from "./read-requests.ts";

/** The orders in SQL, each as an index has it, and each backwards. */
const BY: Readonly<Record<RequestOrder, { readonly forwards: string; readonly backwards: string }>> = {
  "newest-first": { forwards: "created_at desc, server_uuid", backwards: "created_at, server_uuid desc" },
  "oldest-first": { forwards: "created_at, server_uuid desc", backwards: "created_at desc, server_uuid" },
  "by-name": {
    forwards: `name collate "C", created_at desc, server_uuid`,
    backwards: `name collate "C" desc, created_at, server_uuid desc`,
  },
  "by-name-backwards": {
    forwards: `name collate "C" desc, created_at desc, server_uuid`,
    backwards: `name collate "C", created_at, server_uuid desc`,
  },
};

/**
 * The conditions for the requests after the marker. Only the first one bounds the scan of the index. `add` returns the parameter of a
 * value.
 */
function afterMarker(order: RequestOrder, marker: RequestRecord, add: (value: unknown) => string): readonly string[] {
  const at = `to_timestamp(${add(marker.createdAtMs)}::float8 / 1000)`;
  const uuid = add(marker.serverUuid);
  if (order === "oldest-first") return [`created_at >= ${at}`, `(created_at > ${at} or server_uuid < ${uuid})`];
  const isNext = `created_at < ${at} or created_at = ${at} and server_uuid > ${uuid}`;
  if (order === "newest-first") return [`created_at <= ${at}`, `(${isNext})`];
  const name = `${add(marker.spec.name)} collate "C"`;
  const comes = order === "by-name" ? ">" : "<";
  return [`name collate "C" ${comes}= ${name}`, `(name collate "C" ${comes} ${name} or ${isNext})`];
}

/**
 * A stretch of the list by keyset, like `listRequests`. It reads a fixed number of rows and may return fewer. Cost: one round trip, two with a marker.
 */
export async function scanRequests(pool: Pool, scan: RequestScan): Promise<RequestStretch> {
  const { projectId, marker: after, rows, created, order = "newest-first" } = scan;
  const { forwards, backwards } = BY[order];
  const [marker] = after === null ? [] : await readRequests(pool, [after]);
  if (after !== null && marker === undefined) return { records: [], resumeAt: null };
  const values: unknown[] = [rows];
  const conditions = ["not gone"];
  if (projectId !== null) conditions.push(`project_id = $${values.push(projectId)}`);
  for (const [is, atMs] of [[">=", created?.fromMs] as const, ["<", created?.beforeMs] as const])
    if (atMs !== undefined) conditions.push(`created_at ${is} to_timestamp($${values.push(atMs)}::float8 / 1000)`);
  if (marker !== undefined) conditions.push(...afterMarker(order, marker, (value) => `$${values.push(value)}`));
  const found = await queryStored<RequestRow & { readonly scanned: number; readonly last_uuid: string | null }>(pool, {
    name: `scan_requests${projectId === null ? "" : "_project"}${created === undefined ? "" : "_created"}${marker === undefined ? "" : "_marker"}_${order}`,
    text: `with scanned as materialized (
        select server_uuid, created_at, name, state from requests where ${conditions.join(" and ")}
        order by ${forwards} limit $1
      )
      select s.scanned, s.last_uuid, r.*
      from (
        select count(*)::int as scanned,
          (select server_uuid from scanned order by ${backwards} limit 1) as last_uuid
        from scanned
      ) s
      left join (
        select ${REQUEST_COLUMNS}, created_at from requests where server_uuid in (
          select server_uuid from scanned where state not in ('deleted', 'cancelled')
        )
      ) r on true
      order by ${forwards}`,
    values,
  });
  const [first] = found;
  const isLast = first === undefined || first.scanned < rows;
  const records = found.filter((row) => row.server_uuid !== null).map(requestOf);
  return { records, resumeAt: isLast ? null : first.last_uuid };
}

/**
 * One page by keyset. The index returns it in order, however far down the list it is and however many requests before it were deleted. The
 * statement contains only the conditions of this query, since a prepared `$1 is null or …` would use no index. Cost: one round trip, and
 * one more each for a marker and for the open requests.
 */
export async function listRequests(pool: Pool, query: RequestQuery): Promise<readonly RequestRecord[]> {
  const conditions = ["not gone", "state not in ('deleted', 'cancelled')"];
  const values: unknown[] = [];
  const where = (asked: string, condition: (parameter: string) => string, value: unknown): void => {
    values.push(value);
    conditions.push(condition(`$${values.length}`));
    if (asked !== "") shape += `_${asked}`;
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
  if (query.locked === true) {
    conditions.push("changes ->> 'lock' is not null");
    shape += "_locked";
  }
  if (query.changed === true) {
    conditions.push(`changes ?| array[${LISTED_CHANGES.map((field) => `'${field}'`).join(", ")}]`);
    shape += "_altered";
  }
  if (query.hasWord !== undefined) where("word", (p) => `name ilike ${p}`, patternOf(query.hasWord));
  if (query.oddlyNamed === true) {
    conditions.push(ODD_NAME);
    shape += "_odd";
  }
  if (query.failed === true) {
    conditions.push("fault is not null");
    shape += "_failed";
  }
  if (query.open === true) {
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
  if (times.length > 0 && query.marker === null)
    from = `(select * from ${from} where ${conditions.join(" and ")} limit $${values.push(query.limit)}) requests`;
  if (query.marker !== null) {
    const [marker] = await readRequests(pool, [query.marker]);
    if (marker === undefined) return [];
    shape += "_marker";
    conditions.push(...afterMarker(order, marker, (value) => `$${values.push(value)}`));
  }
  const rows = await queryStored<RequestRow>(pool, {
    name: shape,
    text: `select ${REQUEST_COLUMNS} from ${from} where ${conditions.join(" and ")}
      order by ${BY[order].forwards} limit $${values.length + 1}`,
    values: [...values, query.limit],
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

/**
 * The open requests, or null when there are many. The number of open requests changes from one moment to the next, so the statistics say nothing
 * about it: a plan that joins few of them with the list may walk through the whole list. If there are many, a walk finds some soon.
 */
async function fewOpen(pool: Pool): Promise<readonly string[] | null> {
  const rows = await queryStored<{ readonly server_uuid: string }>(pool, {
    name: "few_open_requests",
    text: "select server_uuid from open_requests limit $1",
    values: [OPEN_MAX + 1],
  });
  return rows.length > OPEN_MAX ? null : rows.map((row) => row.server_uuid);
}
const OPEN_MAX = 1_000;

/** The condition of an index: the host name is not simply the name in lower case (`isOddName`). */
const ODD_NAME = `(substring(name for 63) ~ '[^A-Za-z0-9 _.-]' collate "C" or substring(name for 63) !~ '[A-Za-z0-9]' collate "C")`;

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
