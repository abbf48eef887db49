import type { Pool } from "pg";
import type {
  AttributeQuery,
  AttributeStretch,
  IndexedAttribute,
  ListPosition,
} from "../../../core/stores/cell/listed-servers.ts";
import { queryStored, selectMs } from "../client/store-query.ts";
import { SERVER_COLUMNS, type StoredServer, storedServerOf } from "./read-servers.ts";

/** The expressions of the indexes, which these must equal. */
const EXPRESSIONS: Readonly<Record<IndexedAttribute, string>> = {
  flavor: "message_field(message_field(spec, 5), 1)",
  image: "message_field(spec, 6)",
  user: "user_id",
};
/** The index has the first bytes of longer values, too. */
const INDEXED_BYTES_MAX = 1_024;

/** Cost: one round trip, and a look at `rows` entries of an index in its order. */
export async function readServersByAttribute(pool: Pool, query: AttributeQuery): Promise<AttributeStretch> {
  const { attribute, value, projectId, oldestFirst, after, rows } = query;
  const isNewer = oldestFirst ? "<" : ">";
  const values: unknown[] = [rows, indexedValue(attribute, value)];
  const conditions = [`${EXPRESSIONS[attribute]} = $2`, "deleted_at is null"];
  if (after !== null) {
    const at = `to_timestamp($${values.push(after.createdAtMs)}::float8 / 1000)`;
    const uuid = `$${values.push(after.uuid)}::uuid`;
    // Only this first condition bounds the scan of the index.
    conditions.push(`${at} ${isNewer}= created_at`, `(${at} ${isNewer} created_at or uuid ${isNewer} ${uuid})`);
  }
  const ofProject = projectId === null ? "" : ` and project_id = $${values.push(projectId)}`;
  const [created, byUuid] = oldestFirst ? ["asc", "desc"] : ["desc", "asc"];
  const found = await queryStored<Partial<StoredServer> & StretchRow>(pool, {
    name: `servers_by_${attribute}${after === null ? "" : "_after"}${projectId === null ? "" : "_of_project"}${oldestFirst ? "_oldest" : ""}`,
    text: `with scanned as materialized (
        select uuid, created_at, project_id, status from servers where ${conditions.join(" and ")}
        order by created_at ${created}, uuid ${byUuid} limit $1
      )
      select s.scanned, l.last_uuid, l.last_created_at_ms, r.*
      from (select count(*)::int as scanned from scanned) s
      left join (
        select uuid as last_uuid, ${selectMs("created_at")} from scanned
        order by created_at ${byUuid === "asc" ? "asc" : "desc"}, uuid ${byUuid === "asc" ? "desc" : "asc"} limit 1
      ) l (last_uuid, last_created_at_ms) on true
      left join (
        select ${SERVER_COLUMNS} from servers
        where uuid in (select uuid from scanned where status <> 'CLOSED'${ofProject})
      ) r on true
      order by r.created_at_ms ${created}, r.uuid ${byUuid}`,
    values,
  });
  const [first] = found;
  const isLast = first === undefined || first.scanned < rows;
  const servers = found.filter((row): row is StoredServer & StretchRow => row.uuid !== null).map(storedServerOf);
  return { servers, resumeAt: isLast ? null : positionOf(first) };
}

interface StretchRow {
  readonly scanned: number;
  readonly last_uuid: string | null;
  readonly last_created_at_ms: number | null;
}

function positionOf({ last_uuid: uuid, last_created_at_ms: createdAtMs }: StretchRow): ListPosition | null {
  return uuid === null || createdAtMs === null ? null : { uuid, createdAtMs };
}

function indexedValue(attribute: IndexedAttribute, value: string): string | Buffer {
  return attribute === "user" ? value : Buffer.from(value).subarray(0, INDEXED_BYTES_MAX);
}
