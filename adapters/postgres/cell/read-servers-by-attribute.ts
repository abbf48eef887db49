import type { Pool } from "pg";
import type {
  AttributeQuery,
  AttributeStretch,
  ListPosition,
  TokenQuery,
} from "../../../core/stores/cell/listed-servers.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { queryStored, selectMs } from "../client/store-query.ts";
import {
  conditionOf,
  eachValue,
  indexedValues,
  inListOfValue,
  namePartOf,
  WITHOUT_HOST,
} from "./indexed-attributes.ts";
import { type StoredServer, serversAt, storedServerOf } from "./read-servers.ts";

/** Of each of several lists at least this many servers are looked at, and this many times its share of the servers of one list. */
const LOOKS_OF_LIST_MIN = 8;
const LOOKS_OF_LIST_SPARE = 8;
/** Of several lists, this many times as many first entries are read together as servers are wanted. */
const HEADS_SPARE = 2;

/**
 * Each value has a list in the order of creation, in which the servers are looked at one after the other until enough of them pass. The stretch ends where the first list
 * ends that was not read to its end. Cost: one round trip, and a look at up to `looksMax` entries of an index, or a few times as many if there are several values.
 */
export async function readServersByAttribute(pool: Pool, query: AttributeQuery): Promise<AttributeStretch> {
  const { attribute, oldestFirst, after, projectId, others = [] } = query;
  const isBefore = oldestFirst ? "<" : ">";
  const { values, lists, orders, passes, heads } = listsOf(query);
  const upTo = (end: string, place: string) =>
    `(${end}.uuid is null or ${place}.created_at ${isBefore} ${end}.created_at or ${place}.created_at = ${end}.created_at and ${place}.uuid ${isBefore === ">" ? "<=" : ">="} ${end}.uuid)`;
  const scanned =
    attribute === "host"
      ? scannedTogether(lists, { passes, orders, upTo })
      : heads === null
        ? `scanned as materialized (${lists.map(stretchOf).join(" union all ")})`
        : scannedAsFarAsNeeded(lists[0]!, { ...heads, orders, upTo, oldestFirst });
  const rows = await queryStored<Partial<StoredServer> & StretchRow>(pool, {
    name: `servers_by_${attribute}${query.orNone ? "_n" : ""}${heads === null ? "" : "_any"}${after === null ? "" : "_after"}${projectId === null ? "" : "_project"}${oldestFirst ? "_oldest" : ""}${query.nameContains === undefined ? "" : "_named"}${namePartOf(others)}`,
    text: `with ${scanned}, counted as (
        select *, count(*) filter (where passes) over (order by ${orders.forwards}) as nth from scanned
      ), ended as materialized (
        select created_at, uuid from counted where is_end or passes and nth = $2 order by ${orders.forwards} limit 1
      )
      select e.last_uuid, e.last_created_at_ms, r.*
      from (select) one
      left join (select uuid as last_uuid, ${selectMs("created_at")} from ended) e (last_uuid, last_created_at_ms) on true
      left join (
        ${serversAt(`select s.uuid from scanned s left join ended e on true
          where s.passes and ${upTo("e", "s")}`)}
      ) r on true
      order by r.created_at_ms ${oldestFirst ? "asc, r.uuid desc" : "desc, r.uuid"}`,
    values,
  });
  const servers = rows.filter((row): row is StoredServer & StretchRow => row.uuid != null).map(storedServerOf);
  return { servers, resumeAt: positionOf(rows[0]) };
}

/** The lists of the values of a row of `of`. `entries` returns the SQL of the first so many entries of a list that meet further conditions. */
interface Lists {
  readonly of: string;
  readonly entries: (limit: string, ...conditions: readonly string[]) => string;
}
/** SQL of the orders, of the conditions that servers must meet, and of the condition that a place does not come after an end, which may not be there. */
interface Spans {
  readonly passes: string;
  readonly orders: { readonly forwards: string };
  readonly upTo: (end: string, place: string) => string;
}
/** The parameters for several lists: how many first entries of each are read, and how many entries of each at most, if these show where the stretch ends. */
interface Heads {
  readonly heads: string;
  readonly looksMax: string;
}

/** The servers of a list up to its `$1`-th entry, or until `$2` of them pass. `is_end` marks the last one of a list that may go on. */
const stretchOf = ({ of, entries }: Lists): string =>
  `select s.* from ${of} cross join lateral (
          select p.uuid, p.created_at, p.passes, (p.n = $1 or row_number() over () = $2) as is_end
          from (select l.*, row_number() over () as n from (${entries("$1")}) l) p
          where p.passes or p.n = $1 limit $2
        ) s`;

/**
 * The same for several lists, each only as far as the stretch may need it. Among the first entries of the lists, the `$2`-th that passes is the place by which the stretch ends,
 * at the latest. So only the lists whose first entries all come before this place are read on, and up to it. Without such a place, they are read up to their `$1`-th entries.
 */
const scannedAsFarAsNeeded = (
  { of, entries }: Lists,
  {
    heads,
    looksMax,
    orders,
    upTo,
    oldestFirst,
  }: Heads & Pick<Spans, "orders" | "upTo"> & { readonly oldestFirst: boolean },
): string => {
  const further = oldestFirst ? ">" : "<";
  const onwards = [
    `created_at ${further}= w.created_at`,
    `(created_at ${further} w.created_at or uuid ${oldestFirst ? "<" : ">"} w.uuid)`,
    `w.created_at_last ${further}= created_at`,
  ];
  return `heads as materialized (
        select w.value, s.* from ${of} cross join lateral (
          select l.*, row_number() over () as n from (${entries(heads)}) l
        ) s
      ), last as materialized (
        select p.uuid, p.created_at, case when p.uuid is null then $1 else ${looksMax} end as looks from (select) one
        left join (select uuid, created_at from heads where passes order by ${orders.forwards} limit 1 offset $2::int - 1) p on true
      ), scanned as materialized (
        select h.uuid, h.created_at, h.passes, h.n = l.looks as is_end from heads h cross join last l
        union all
        select s.* from (
          select h.*, l.looks, coalesce(l.created_at, '${oldestFirst ? "" : "-"}infinity') as created_at_last
          from heads h cross join last l where h.n = ${heads} and ${upTo("l", "h")}
        ) w cross join lateral (
          select l.uuid, l.created_at, l.passes, w.n + row_number() over () = w.looks as is_end
          from (${entries(`w.looks - w.n`, ...onwards)}) l
        ) s
      )`;
};

/**
 * The same for many lists of which the stretch needs only a few entries. The entries and their places are read from the index alone, and merged. Only then are the servers
 * read, in the order of the whole, until `$2` of them pass or the first list ends that may go on.
 */
const scannedTogether = (lists: readonly Lists[], { passes, orders: { forwards }, upTo }: Spans): string =>
  `listed as materialized (
        ${lists
          .map(
            ({ of, entries }) => `select s.* from ${of} cross join lateral (
          select l.uuid, l.created_at, row_number() over () = $1 as is_end from (${entries("$1")}) l
        ) s`,
          )
          .join(" union all ")}
      ), first_end as materialized (
        select created_at, uuid from listed where is_end order by ${forwards} limit 1
      ), scanned as materialized (
        select l.uuid, l.created_at, r.passes, l.is_end
        from (select l.* from listed l left join first_end f on true where ${upTo("f", "l")} order by ${forwards}) l
        cross join lateral (select coalesce(${passes}, false) as passes from servers where uuid = l.uuid offset 0) r
        where r.passes or l.is_end order by ${forwards} limit $2
      )`;

/** SQL of the lists of a query: for each row of `of`, the first `$1` entries of its list, each with the mark whether it passes the other conditions. */
function listsOf(query: AttributeQuery) {
  const { attribute, otherValues = [], others = [], orNone = false } = query;
  const { projectId, oldestFirst, after, nameContains, looksMax, limit } = query;
  const count = 1 + otherValues.length + (orNone ? 1 : 0);
  const share = Math.max(LOOKS_OF_LIST_MIN, Math.ceil((looksMax * LOOKS_OF_LIST_SPARE) / count));
  const values: unknown[] = [count === 1 ? looksMax : Math.min(looksMax, share), limit, indexedValues(query)];
  const conditions: string[] = [];
  const isNewer = oldestFirst ? "<" : ">";
  if (after !== null) {
    const at = `to_timestamp($${values.push(after.createdAtMs)}::float8 / 1000)`;
    const uuid = `$${values.push(after.uuid)}::uuid`;
    // Only this first condition bounds the scan of the index.
    conditions.push(`${at} ${isNewer}= created_at`, `(${at} ${isNewer} created_at or uuid ${isNewer} ${uuid})`);
  }
  const project = projectId === null ? null : `project_id = $${values.push(projectId)}`;
  // Only of the servers that are looked at: as conditions of the scan, they might make Postgres read the list by another index.
  const passes = [
    "status <> 'CLOSED'",
    ...(project === null ? [] : [project]),
    ...(nameContains === undefined ? [] : [`position($${values.push(nameContains)} in name) > 0`]),
    ...others.map((other) => conditionOf(other, values)),
  ].join(" and ");
  const orders = { forwards: oldestFirst ? "created_at asc, uuid desc" : "created_at desc, uuid asc" };
  // The entries of hosts are merged before their servers are read.
  const isPassing = attribute === "host" ? "" : `, coalesce(${passes}, false) as passes`;
  const entriesWhere =
    (where: string): Lists["entries"] =>
    (most, ...further) =>
      `select uuid, created_at${isPassing} from servers where ${[where, ...conditions, ...further].join(" and ")} order by ${orders.forwards} limit ${most}`;
  const of = eachValue(attribute, "$3");
  const entries: Lists["entries"] =
    attribute === "status"
      ? (most, ...further) => `select u.uuid, u.created_at, coalesce(r.passes, false) as passes from (
          select server_uuid as uuid, created_at from (select server_uuid, server_uuid as uuid, created_at, status, project_id from unusual_servers) u
          where ${["status = w.value", ...(project === null ? [] : [project]), ...conditions, ...further].join(" and ")} order by ${orders.forwards} limit ${most}
        ) u left join lateral (select status = w.value and ${passes} as passes from servers where uuid = u.uuid offset 0) r on true`
      : entriesWhere(inListOfValue(attribute));
  const lists = [{ of, entries }, ...(orNone ? [{ of: "(select) one", entries: entriesWhere(WITHOUT_HOST) }] : [])];
  // The lists of hosts are merged in any case.
  const isReadWhole = count === 1 || attribute === "host";
  const looks = Math.min(looksMax, share);
  const first = Math.min(looks, Math.ceil((limit * HEADS_SPARE) / count));
  const heads = isReadWhole
    ? null
    : {
        heads: `$${values.push(first)}::int`,
        looksMax: `$${values.push(Math.min(looksMax, Math.max(share, limit)))}::int`,
      };
  return { values, lists, orders, passes, heads };
}

/** Cost: one round trip, and a look at no more than `looksMax` servers that have one of the tokens, and one more. */
export async function readServersByTokens(
  pool: Pool,
  { tokens, projectId, looksMax }: TokenQuery,
): Promise<readonly ListPosition[] | null> {
  const rows = await queryStored<PlaceRow & { readonly looked: number }>(pool, {
    name: "servers_with_tokens",
    text: `with found as materialized (
        select uuid, created_at, project_id, status from servers
        where deleted_at is null and spec_tokens(spec) is not null and spec_tokens(spec) && $1 limit $2
      )
      select l.looked, f.uuid, ${selectMs("created_at", "f.")}
      from (select count(*)::int as looked from found) l
      left join found f on l.looked < $2 and f.status <> 'CLOSED' and ($3::text is null or f.project_id = $3)`,
    values: [textArrayLiteral(tokens), looksMax + 1, projectId],
  });
  if (rows.some(({ looked }) => looked > looksMax)) return null;
  return rows.flatMap((row) => (row.uuid === null ? [] : [{ uuid: row.uuid, createdAtMs: row.created_at_ms }]));
}

/** Cost: one round trip, and a look at each server on the hosts. */
async function readServersOnHosts(
  pool: Pool,
  hosts: readonly string[],
  limit: number,
): Promise<readonly ListPosition[]> {
  const rows = await queryStored<{ readonly uuid: string; readonly created_at_ms: number }>(pool, {
    name: "servers_on_hosts",
    text: `select uuid, ${selectMs("created_at")} from servers where host = any ($1) and host is not null
      order by created_at desc, uuid limit $2`,
    values: [textArrayLiteral(hosts), limit],
  });
  return rows.map((row) => ({ uuid: row.uuid, createdAtMs: row.created_at_ms }));
}

/** Cost: two round trips, a look at the name of each host, and one at each server on the hosts found. */
export async function readServersOnHostsNamed(
  pool: Pool,
  contains: string,
  { hostsMax, limit }: { readonly hostsMax: number; readonly limit: number },
): Promise<readonly ListPosition[] | null> {
  const hosts = await queryStored<{ readonly name: string }>(pool, {
    name: "hosts_named",
    text: "select name from hosts where position($1 in name) > 0 limit $2",
    values: [contains, hostsMax + 1],
  });
  if (hosts.length > hostsMax) return null;
  return readServersOnHosts(
    pool,
    hosts.map(({ name }) => name),
    limit,
  );
}

interface PlaceRow {
  readonly uuid: string | null;
  readonly created_at_ms: number;
}
interface StretchRow {
  readonly last_uuid: string | null;
  readonly last_created_at_ms: number | null;
}

function positionOf(row: StretchRow | undefined): ListPosition | null {
  const { last_uuid: uuid = null, last_created_at_ms: createdAtMs = null } = row ?? {};
  return uuid === null || createdAtMs === null ? null : { uuid, createdAtMs };
}
