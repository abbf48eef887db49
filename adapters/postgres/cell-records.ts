import type { CellRecord } from "../../core/cell/api-store.ts";
import { withClient } from "./databases.ts";

/** The cells of an API database, by name; for commands that need no more of it than that. */
export async function readCells(apiUrl: string): Promise<readonly CellRecord[]> {
  return withClient(apiUrl, async (client) => {
    const { rows } = await client.query<CellRecord>(
      `select name, database_url as "databaseUrl", nats_url as "natsUrl", disabled from cells order by name`,
    );
    return rows;
  });
}

/** Adds the cell or changes where it is. */
export async function putCell(apiUrl: string, cell: CellRecord): Promise<void> {
  await withClient(apiUrl, (client) =>
    client.query(
      `insert into cells (name, database_url, nats_url, disabled) values ($1, $2, $3, $4)
       on conflict (name) do update set
         database_url = excluded.database_url, nats_url = excluded.nats_url, disabled = excluded.disabled`,
      [cell.name, cell.databaseUrl, cell.natsUrl, cell.disabled],
    ),
  );
}
