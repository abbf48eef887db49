import type pg from "pg";
import { withClient } from "../client/databases.ts";
import { MigrateError } from "./migrate-error.ts";

/**
 * Gives a cell's database to the cell of this name, unless it has a name already. A backup contains the name, so a restored database belongs to
 * its cell. Throws `MigrateError` (`other-cell`) when the database belongs to another cell: two cells on one database would carry out each
 * other's tasks, and each server would be in both. The database must have this version's migrations.
 */
export async function claimCellName(client: pg.Pool | pg.Client, name: string): Promise<void> {
  await client.query("update incarnation set cell_name = $1 where cell_name is null", [name]);
  const { rows } = await client.query<{ cell_name: string }>("select cell_name from incarnation");
  const owner = rows[0]?.cell_name;
  if (owner !== name)
    throw new MigrateError(
      "other-cell",
      `this is the database of cell ${owner}, not of cell ${name}: check the name of the cell and the URL of its database`,
    );
}

/** Does the same for the database at a URL. */
export function claimCellNameAt(url: string, name: string): Promise<void> {
  return withClient(url, (client) => claimCellName(client, name));
}
