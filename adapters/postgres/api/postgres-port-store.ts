import { isIPv4 } from "node:net";
import type { Pool } from "pg";
import type {
  AddPortsOutcome,
  AddressPool,
  NewPort,
  PortBinding,
  PortQuery,
  PortStore,
} from "../../../core/stores/api/port-store.ts";
import type { PortRecord } from "../../../core/tasks/port-record.ts";
import { onlyAsked } from "../client/only-asked.ts";
import { onlyUuids, queryStored } from "../client/store-query.ts";
import { addPorts } from "./add-ports.ts";
import { BOUND_AT_MS, PORT_COLUMNS, type PortRow, recordOfPort } from "./port-rows.ts";

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
      text: `insert into ports (id, project_id, network_id, name, groups, created_at_ms, ends_with_server)
        values ($1, $2, $3, $4, $5, $6, $7) on conflict (id) do nothing returning id`,
      values: [
        ...[port.id, port.projectId, port.networkId, port.name, JSON.stringify(port.groups), port.createdAtMs],
        port.endsWithServer,
      ],
    });
    return rows.length > 0 ? "created" : "id-taken";
  }

  addPorts(ports: readonly NewPort[], pool: AddressPool): Promise<AddPortsOutcome> {
    return addPorts(this.#pool, ports, pool);
  }

  async ports(ids: readonly string[]): Promise<readonly PortRecord[]> {
    const rows = await queryStored<PortRow>(this.#pool, {
      name: "ports",
      text: `select ${PORT_COLUMNS} from ports where id = any($1::uuid[])`,
      values: [onlyUuids(ids)],
    });
    return rows.map(recordOfPort);
  }

  async portsOfServers(serverUuids: readonly string[]): Promise<readonly PortRecord[]> {
    const rows = await queryStored<PortRow>(this.#pool, {
      name: "ports_of_servers",
      text: `select ${PORT_COLUMNS} from ports where server_uuid = any($1::uuid[])`,
      values: [onlyUuids(serverUuids)],
    });
    return rows.map(recordOfPort);
  }

  async listPorts({ projectId, limit, ...asked }: PortQuery): Promise<readonly PortRecord[]> {
    const { id = null, serverUuid = null, name = null, networkId = null, address = null } = asked;
    const uuids = [id, serverUuid].filter((uuid) => uuid !== null);
    if (onlyUuids(uuids).length < uuids.length || (address !== null && !isIPv4(address))) return [];
    const columns = { project_id: projectId, id, server_uuid: serverUuid, name, network_id: networkId, address };
    const { where, ...statement } = onlyAsked("list_ports", columns, [limit]);
    const text = `select ${PORT_COLUMNS} from ports ${where} order by ports.created_at_ms, id limit $1`;
    const rows = await queryStored<PortRow>(this.#pool, { ...statement, text });
    return rows.map(recordOfPort);
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

  async endServers(serverUuids: readonly string[]): Promise<void> {
    const isOver = `p.server_uuid = any ($1::uuid[])
      and not exists (select from requests r where r.server_uuid = p.server_uuid and r.state <> 'deleted')`;
    await this.#end("end_servers_of_ports", isOver, [onlyUuids(serverUuids)]);
  }

  sweepPorts(unknownMs: number): Promise<number> {
    const isOver = `p.server_uuid is not null and case (select r.state from requests r where r.server_uuid = p.server_uuid)
      when 'deleted' then true else p.bound_at < clock_timestamp() - $1::float8 * interval '1 ms'
        and not exists (select from requests r where r.server_uuid = p.server_uuid) end`;
    return this.#end("sweep_ports", isOver, [unknownMs]);
  }

  /** Cost: one statement, in which a port that another call is changing now is looked at again afterwards. */
  async #end(name: string, isOver: string, values: readonly unknown[]): Promise<number> {
    const rows = await queryStored<{ ended: number }>(this.#pool, {
      name,
      text: `with over as (select p.id, p.ends_with_server from ports p where ${isOver} order by p.id for update),
        removed as (delete from ports using over where ports.id = over.id and over.ends_with_server returning 1),
        released as (
          update ports set server_uuid = null, bound_at = null from over
          where ports.id = over.id and not over.ends_with_server returning 1
        )
        select (select count(*) from removed)::int + (select count(*) from released)::int as ended`,
      values,
    });
    return rows[0]?.ended ?? 0;
  }

  async renamePort(id: string, name: string): Promise<boolean> {
    const rows = await queryStored(this.#pool, {
      name: "rename_port",
      text: "update ports set name = $2 where id = any($1::uuid[]) returning id",
      values: [onlyUuids([id]), name],
    });
    return rows.length > 0;
  }

  async deletePort(id: string): Promise<boolean> {
    const rows = await queryStored(this.#pool, {
      name: "delete_port",
      text: "delete from ports where id = any($1::uuid[]) returning id",
      values: [onlyUuids([id])],
    });
    return rows.length > 0;
  }

  async countOwned(projectId: string, countMax: number): Promise<number> {
    const rows = await queryStored<{ count: number }>(this.#pool, {
      name: "count_owned_ports",
      text: `select count(*)::int as count from (
          select from ports where project_id = $1 and not ends_with_server limit $2
        ) as owned`,
      values: [projectId, countMax],
    });
    return rows[0]?.count ?? 0;
  }

  async deleteFreePort(id: string): Promise<boolean> {
    const rows = await queryStored(this.#pool, {
      name: "delete_free_port",
      text: "delete from ports where id = any($1::uuid[]) and server_uuid is null returning id",
      values: [onlyUuids([id])],
    });
    return rows.length > 0;
  }
}
