import type { Pool } from "pg";
import type { DueNote, OpenedNote, PortNote, PortNoteStore } from "../../../core/stores/api/port-note-store.ts";
import { onlyUuids, queryStored } from "../client/store-query.ts";

interface NoteRow {
  server_uuid: string;
  kept_ports: string[];
  deleted_ports: string[];
  version: number;
  called_ago_ms: number | null;
}

const COLUMNS = `server_uuid, kept_ports, deleted_ports, version,
  extract(epoch from clock_timestamp() - called_at)::float8 * 1000 as called_ago_ms`;

/** Notes of servers with ports in Neutron, in the API database. Each write is one statement. Throws `StoreError`. */
export class PostgresPortNoteStore implements PortNoteStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async openNotes(notes: readonly PortNote[]): Promise<readonly OpenedNote[]> {
    if (notes.length === 0) return [];
    const asked = notes.map(({ serverUuid, keptPorts, deletedPorts = [] }) => ({
      server_uuid: serverUuid,
      kept_ports: onlyUuids(keptPorts),
      deleted_ports: onlyUuids(deletedPorts),
    }));
    // The rows are locked before they are judged, since another call may have opened a note after this statement began. A note that such a call has
    // made is not among them, and has a higher version than a new one.
    const rows = await queryStored<{ server_uuid: string; version: number; was_open: boolean }>(this.#pool, {
      name: "open_port_notes",
      text: `with asked as (
          select a.server_uuid, array(select jsonb_array_elements_text(a.kept_ports)::uuid) as kept_ports,
            array(select jsonb_array_elements_text(a.deleted_ports)::uuid) as deleted_ports
          from jsonb_to_recordset($1::jsonb) as a (server_uuid uuid, kept_ports jsonb, deleted_ports jsonb) order by a.server_uuid
        ), before as (
          select n.server_uuid, n.open_since is not null as was_open from port_notes n join asked using (server_uuid)
          order by n.server_uuid for update of n
        )
        insert into port_notes as n (server_uuid, kept_ports, deleted_ports, open_since, called_at)
        select server_uuid, kept_ports, deleted_ports, clock_timestamp(), clock_timestamp() from asked left join before using (server_uuid) order by server_uuid
        on conflict (server_uuid) do update set
          kept_ports = array(select distinct unnest(n.kept_ports || excluded.kept_ports)),
          deleted_ports = array(select distinct unnest(n.deleted_ports || excluded.deleted_ports)),
          version = n.version + 1,
          open_since = clock_timestamp(),
          called_at = clock_timestamp()
        returning n.server_uuid, n.version,
          coalesce((select was_open from before b where b.server_uuid = n.server_uuid), n.version > 1) as was_open`,
      values: [JSON.stringify(asked)],
    });
    return rows.map((row) => ({ serverUuid: row.server_uuid, version: row.version, wasOpen: row.was_open }));
  }

  async settleNotes(notes: Parameters<PortNoteStore["settleNotes"]>[0]): Promise<void> {
    await queryStored(this.#pool, {
      name: "settle_port_notes",
      text: `update port_notes n set open_since = null, called_at = null, deleted_ports = '{}' from ${SAME_VERSION}`,
      values: [JSON.stringify(versionsOf(notes))],
    });
  }

  async removeNotes(notes: Parameters<PortNoteStore["removeNotes"]>[0]): Promise<void> {
    await queryStored(this.#pool, {
      name: "remove_port_notes",
      text: `delete from port_notes n using ${SAME_VERSION}`,
      values: [JSON.stringify(versionsOf(notes))],
    });
  }

  async notes(serverUuids: readonly string[]): Promise<readonly DueNote[]> {
    const rows = await queryStored<NoteRow>(this.#pool, {
      name: "port_notes",
      text: `select ${COLUMNS} from port_notes where server_uuid = any ($1::uuid[])`,
      values: [onlyUuids(serverUuids)],
    });
    return rows.map(dueOf);
  }

  async failServers(serverUuids: readonly string[]): Promise<void> {
    await queryStored(this.#pool, {
      name: "fail_servers_of_port_notes",
      text: `update port_notes set open_since = coalesce(open_since, '-infinity'), version = version + 1 where server_uuid in (
          select n.server_uuid from port_notes n
          where n.open_since is distinct from '-infinity' and n.server_uuid = any ($1::uuid[]) order by n.server_uuid for update
        )`,
      values: [onlyUuids(serverUuids)],
    });
  }

  async endServers(serverUuids: readonly string[]): Promise<void> {
    await queryStored(this.#pool, {
      name: "end_servers_of_port_notes",
      text: endedNotes("n.server_uuid = any ($1::uuid[])"),
      values: [onlyUuids(serverUuids)],
    });
  }

  async sweepNotes(after: string | null, limit: number): Promise<string | null> {
    const isOver = `n.server_uuid in (
      select p.server_uuid from page p join requests r using (server_uuid) where r.state in ('deleted', 'failed'))`;
    const [last] = await queryStored<{ server_uuid: string }>(this.#pool, {
      name: "sweep_port_notes",
      text: `with page as materialized (
          select server_uuid from port_notes where $1::uuid is null or server_uuid > $1 order by server_uuid limit $2
        ), ended as (${endedNotes(isOver)})
        select server_uuid from page order by server_uuid offset $2::bigint - 1`,
      values: [after, limit],
    });
    return last?.server_uuid ?? null;
  }

  async dueNotes(openMs: number, after: string | null, limit: number): Promise<readonly DueNote[]> {
    const rows = await queryStored<NoteRow>(this.#pool, {
      name: "due_port_notes",
      text: `select ${COLUMNS} from port_notes
        where open_since is not null and open_since < clock_timestamp() - $1::float8 * interval '1 ms'
          and ($2::uuid is null or server_uuid > $2)
        order by server_uuid limit $3`,
      values: [openMs, after, limit],
    });
    return rows.map(dueOf);
  }
}

const endedNotes = (isOver: string): string =>
  `update port_notes set open_since = '-infinity', version = version + 1 where server_uuid in (
      select n.server_uuid from port_notes n
      where n.open_since is distinct from '-infinity' and ${isOver} order by n.server_uuid for update
    )`;

const SAME_VERSION = `(
    select n.server_uuid from port_notes n
    join jsonb_to_recordset($1::jsonb) as a (server_uuid uuid, version integer) using (server_uuid)
    where n.version = a.version order by n.server_uuid for update of n
  ) as same where n.server_uuid = same.server_uuid`;

const versionsOf = (notes: Parameters<PortNoteStore["settleNotes"]>[0]) =>
  notes.map(({ serverUuid, version }) => ({ server_uuid: serverUuid, version }));

const dueOf = (row: NoteRow): DueNote => ({
  id: row.server_uuid,
  serverUuid: row.server_uuid,
  keptPorts: row.kept_ports,
  deletedPorts: row.deleted_ports,
  version: row.version,
  calledAgoMs: row.called_ago_ms,
});
