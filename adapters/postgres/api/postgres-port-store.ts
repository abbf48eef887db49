import type { Pool } from "pg";
import type { PortBinding, PortQuery, PortStore } from "../../../core/stores/api/port-store.ts";
import type { PortGroup, PortRecord } from "../../../core/tasks/port-record.ts";
import { onlyUuids, queryStored } from "../client/store-query.ts";

interface PortRow {
  id: string;
  project_id: string;
  network_id: string;
  name: string;
  groups: PortGroup[];
  created_at_ms: number;
  server_uuid: string | null;
  bound_at_ms: number | null;
  bound_for_ms: number | null;
}

const BOUND_AT_MS = "(extract(epoch from bound_at) * 1000)::float8";
const BOUND_FOR_MS = "(extract(epoch from clock_timestamp() - bound_at) * 1000)::float8";
const COLUMNS = `id, project_id, network_id, name, groups, created_at_ms::float8, server_uuid, ${BOUND_AT_MS} as bound_at_ms,
  ${BOUND_FOR_MS} as bound_for_ms`;

/** Ports in the API database. Each write is one statement. Throws `StoreError`. */
export class PostgresPortStore implements PortStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async createPort(port: PortRecord): Promise<"created" | "id-taken"> {
    const rows = await queryStored(this.#pool, {
      name: "create_port",
      text: `insert into ports (id, project_id, network_id, name, groups, created_at_ms) values ($1, $2, $3, $4, $5, $6)
        on conflict (id) do nothing returning id`,
      values: [port.id, port.projectId, port.networkId, port.name, JSON.stringify(port.groups), port.createdAtMs],
    });
    return rows.length > 0 ? "created" : "id-taken";
  }

  async ports(ids: readonly string[]): Promise<readonly PortRecord[]> {
    const rows = await queryStored<PortRow>(this.#pool, {
      name: "ports",
      text: `select ${COLUMNS} from ports where id = any($1::uuid[])`,
      values: [onlyUuids(ids)],
    });
    return rows.map(recordOf);
  }

  async listPorts({ projectId, limit }: PortQuery): Promise<readonly PortRecord[]> {
    const rows = await queryStored<PortRow>(this.#pool, {
      name: "list_ports",
      text: `select ${COLUMNS} from ports where $1::text is null or project_id = $1
        order by ports.created_at_ms, id limit $2`,
      values: [projectId, limit],
    });
    return rows.map(recordOf);
  }

  async bindPorts(
    ids: readonly string[],
    serverUuid: string,
    instead: readonly string[],
  ): Promise<readonly PortBinding[]> {
    const rows = await queryStored<{ id: string; bound_at_ms: number; was_own: boolean }>(this.#pool, {
      name: "bind_ports",
      text: `update ports set server_uuid = $2, bound_at = clock_timestamp()
        from (
          select p.id, p.server_uuid is not null and p.server_uuid = $2 as was_own from ports p
          where p.id = any ($1::uuid[]) and (p.server_uuid is null or p.server_uuid = $2 or p.server_uuid = any ($3::uuid[]))
          order by p.id for update
        ) as free
        where ports.id = free.id
        returning ports.id, ${BOUND_AT_MS} as bound_at_ms, free.was_own`,
      values: [onlyUuids(ids), serverUuid, onlyUuids(instead)],
    });
    return rows.map((row) => ({ id: row.id, atMs: row.bound_at_ms, wasOwn: row.was_own }));
  }

  async unbindPorts(
    ids: readonly string[],
    serverUuid: string,
    boundUntilMs = Number.POSITIVE_INFINITY,
  ): Promise<void> {
    await queryStored(this.#pool, {
      name: "unbind_ports",
      text: `update ports set server_uuid = null, bound_at = null where id in (
          select p.id from ports p
          where p.id = any ($1::uuid[]) and p.server_uuid = $2 and ${BOUND_AT_MS} <= $3::float8 order by p.id for update
        )`,
      values: [onlyUuids(ids), serverUuid, boundUntilMs],
    });
  }

  async deletePort(id: string): Promise<boolean> {
    const rows = await queryStored(this.#pool, {
      name: "delete_port",
      text: "delete from ports where id = any($1::uuid[]) returning id",
      values: [onlyUuids([id])],
    });
    return rows.length > 0;
  }
}

function recordOf(row: PortRow): PortRecord {
  return {
    id: row.id,
    projectId: row.project_id,
    networkId: row.network_id,
    name: row.name,
    groups: row.groups,
    createdAtMs: row.created_at_ms,
    binding:
      row.server_uuid === null
        ? null
        : { serverUuid: row.server_uuid, atMs: row.bound_at_ms ?? 0, ageMs: Math.max(0, row.bound_for_ms ?? 0) },
  };
}
