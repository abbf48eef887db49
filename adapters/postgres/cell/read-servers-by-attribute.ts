import type { Pool } from "pg";
import type {
  AttributeQuery,
  AttributeStretch,
  IndexedAttribute,
  ListPosition,
  TokenQuery,
  ValuesQuery,
} from "../../../core/stores/cell/listed-servers.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { queryStored, selectMs } from "../client/store-query.ts";
import { type StoredServer, serversAt, storedServerOf } from "./read-servers.ts";

const KEY = "message_late_field(spec, 24)";

/** The expressions of the indexes, which these must equal. */
const EXPRESSIONS: Readonly<Record<IndexedAttribute, string>> = {
  flavor: "message_field(message_field(spec, 5), 1)",
  image: "message_field(spec, 6)",
  user: "user_id",
  key: KEY,
  reservation: "substring(message_field(spec, 9) from 31)",
};
/** The index has the first bytes of longer values, too. */
const INDEXED_BYTES_MAX = 1_024;

/** Cost: one round trip, and a look at `rows` entries of an index in its order, for each value. */
export async function readServersByAttribute(pool: Pool, query: AttributeQuery): Promise<AttributeStretch> {
  const { attribute, value, otherValues = [], others = [], projectId, oldestFirst, after, rows } = query;
  const isNewer = oldestFirst ? "<" : ">";
  const wanted = [value, ...otherValues].map((one) => indexedValue(attribute, one));
  const values: unknown[] = [rows, otherValues.length === 0 ? wanted[0] : wanted];
  const conditions = [
    `${EXPRESSIONS[attribute]} = ${otherValues.length === 0 ? "$2" : "w.value"}`,
    "deleted_at is null",
    ...(attribute === "key" ? [`${KEY} is not null`] : []),
  ];
  if (after !== null) {
    const at = `to_timestamp($${values.push(after.createdAtMs)}::float8 / 1000)`;
    const uuid = `$${values.push(after.uuid)}::uuid`;
    // Only this first condition bounds the scan of the index.
    conditions.push(`${at} ${isNewer}= created_at`, `(${at} ${isNewer} created_at or uuid ${isNewer} ${uuid})`);
  }
  const ofProject = projectId === null ? "" : ` and project_id = $${values.push(projectId)}`;
  // Only of the servers that are looked at: as a condition of the scan, it might make Postgres read the list by another index.
  const passes = others.map((other) => {
    const its = [other.value, ...(other.otherValues ?? [])].map((one) => indexedValue(other.attribute, one));
    return `${EXPRESSIONS[other.attribute]} = any ($${values.push(its)}::${typeOf(other.attribute)}[])`;
  });
  const [created, byUuid] = oldestFirst ? ["asc", "desc"] : ["desc", "asc"];
  const inOrder = `select uuid, created_at, project_id, status, ${passes.join(" and ") || "true"} as passes from servers where ${conditions.join(" and ")}
        order by created_at ${created}, uuid ${byUuid} limit $1`;
  // The index has the order only within each value.
  const ofSeveral = `select s.* from unnest($2::${typeOf(attribute)}[]) as w (value) cross join lateral (${inOrder}) s
        order by s.created_at ${created}, s.uuid ${byUuid} limit $1`;
  const found = await queryStored<Partial<StoredServer> & StretchRow>(pool, {
    name: `servers_by_${attribute}${otherValues.length === 0 ? "" : "s"}${after === null ? "" : "_after"}${projectId === null ? "" : "_of_project"}${oldestFirst ? "_oldest" : ""}${others.length === 0 ? "" : `_${others.map((other) => other.attribute[0]).join("")}`}`,
    text: `with scanned as materialized (
        ${otherValues.length === 0 ? inOrder : ofSeveral}
      )
      select s.scanned, l.last_uuid, l.last_created_at_ms, r.*
      from (select count(*)::int as scanned from scanned) s
      left join (
        select uuid as last_uuid, ${selectMs("created_at")} from scanned
        order by created_at ${byUuid === "asc" ? "asc" : "desc"}, uuid ${byUuid === "asc" ? "desc" : "asc"} limit 1
      ) l (last_uuid, last_created_at_ms) on true
      left join (
        ${serversAt(`select uuid from scanned where passes and status <> 'CLOSED'${ofProject}`)}
      ) r on true
      order by r.created_at_ms ${created}, r.uuid ${byUuid}`,
    values,
  });
  const [first] = found;
  const isLast = first === undefined || first.scanned < rows;
  const servers = found.filter((row): row is StoredServer & StretchRow => row.uuid !== null).map(storedServerOf);
  return { servers, resumeAt: isLast ? null : positionOf(first) };
}

/** Cost: one round trip, and a descent into the index for each different value. */
export async function readAttributeValues(
  pool: Pool,
  { contains, looksMax }: ValuesQuery,
): Promise<readonly string[] | null> {
  const present = `deleted_at is null and ${KEY} is not null`;
  const rows = await queryStored<{ readonly value: Buffer | null; readonly at: number }>(pool, {
    name: "server_keys",
    // Each step goes to the next greater value, so that the many servers with one value cost as much as one.
    text: `with recursive steps (value, at) as (
        (select ${KEY}, 1 from servers where ${present} order by ${KEY} limit 1)
        union all
        select (select ${KEY} from servers where ${present} and ${KEY} > s.value order by ${KEY} limit 1), s.at + 1
        from steps s where s.value is not null and s.at <= $2::int
      )
      select value, at from steps where value is not null and (at > $2::int or position($1::bytea in value) > 0)
      order by at`,
    values: [Buffer.from(contains), looksMax],
  });
  if (rows.some(({ at }) => at > looksMax)) return null;
  return rows.flatMap(({ value }) => (value === null ? [] : [value.toString()]));
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
export async function readServersOnHosts(
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
  readonly scanned: number;
  readonly last_uuid: string | null;
  readonly last_created_at_ms: number | null;
}

function positionOf({ last_uuid: uuid, last_created_at_ms: createdAtMs }: StretchRow): ListPosition | null {
  return uuid === null || createdAtMs === null ? null : { uuid, createdAtMs };
}

const typeOf = (attribute: IndexedAttribute): string => (attribute === "user" ? "text" : "bytea");

function indexedValue(attribute: IndexedAttribute, value: string): string | Buffer {
  return attribute === "user" ? value : Buffer.from(value).subarray(0, INDEXED_BYTES_MAX);
}
