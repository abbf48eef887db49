import type { Pool } from "pg";
import type { CellRecord } from "../../../core/stores/api/api-store.ts";
import { queryStored } from "../client/store-query.ts";

interface CellRow {
  readonly name: string;
  readonly database_url: string;
  readonly nats_url: string | null;
  readonly disabled: boolean;
}

export async function readCells(pool: Pool): Promise<readonly CellRecord[]> {
  const rows = await queryStored<CellRow>(pool, {
    name: "cells",
    text: `select name, database_url, nats_url, disabled from cells order by name collate "C"`,
    values: [],
  });
  return rows.map((row) => ({
    name: row.name,
    databaseUrl: row.database_url,
    natsUrl: row.nats_url,
    disabled: row.disabled,
  }));
}

export async function putCell(pool: Pool, cell: CellRecord): Promise<void> {
  await queryStored(pool, {
    name: "put_cell",
    text: `insert into cells (name, database_url, nats_url, disabled) values ($1, $2, $3, $4)
      on conflict (name) do update
      set database_url = excluded.database_url, nats_url = excluded.nats_url, disabled = excluded.disabled`,
    values: [cell.name, cell.databaseUrl, cell.natsUrl, cell.disabled],
  });
}
