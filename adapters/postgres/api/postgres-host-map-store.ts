import type { Pool } from "pg";
import type { HostMapStore } from "../../../core/stores/api/host-map-store.ts";
import { queryStored } from "../client/store-query.ts";

/** Names of hosts in the API database. Throws `StoreError`. */
export class PostgresHostMapStore implements HostMapStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async hostsOf(cell: string): Promise<readonly string[]> {
    const rows = await queryStored<{ host: string }>(this.#pool, {
      name: "hosts_of_cell",
      text: `select host from host_map where cell = $1 order by host collate "C"`,
      values: [cell],
    });
    return rows.map((row) => row.host);
  }

  /** Unchanged rows are not written. Lock order: first the deleted rows, then the added ones, each sorted by name. */
  async keepHosts(cell: string, names: readonly string[]): Promise<void> {
    await queryStored(this.#pool, {
      name: "keep_hosts",
      text: `with
          gone as (
            select host from host_map where cell = $1 and host <> all ($2::text[]) order by host for update
          ),
          removed as (delete from host_map m using gone where m.cell = $1 and m.host = gone.host)
        insert into host_map (cell, host)
        select distinct $1, n.host from unnest($2::text[]) as n (host)
        where not exists (select from host_map m where m.cell = $1 and m.host = n.host)
        order by n.host
        on conflict do nothing`,
      values: [cell, names],
    });
  }

  async forgetHost(cell: string, name: string): Promise<void> {
    await queryStored(this.#pool, {
      name: "forget_host",
      text: "delete from host_map where cell = $1 and host = $2",
      values: [cell, name],
    });
  }
}
