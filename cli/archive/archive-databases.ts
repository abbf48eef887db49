import type { ClientBase } from "pg";
import { readCellRecords } from "../../adapters/postgres/api/cell-records.ts";
import { archiveApi } from "../../adapters/postgres/archive/archive-api.ts";
import { archiveCell } from "../../adapters/postgres/archive/archive-cell.ts";
import { ArchiveCounts } from "../../adapters/postgres/archive/archive-counts.ts";
import type { ArchiveSink, ArchiveOptions as PassOptions } from "../../adapters/postgres/archive/archive-pass.ts";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { pendingMigrations } from "../../adapters/postgres/schema/migrate.ts";
import type { CellRecord } from "../../core/stores/api/api-store.ts";

export interface ArchiveCommandOptions extends Omit<PassOptions, "sink"> {
  /** Returns where the rows of this database are archived, or null when they are only counted. */
  readonly sinkOf: (database: string) => ArchiveSink | null;
  readonly onDone: (database: string, counts: ReadonlyMap<string, number>) => void;
  readonly onUnreachable: (database: string, error: Error) => void;
}

/**
 * Archives all databases of a cloud: first the cells, whose rows can go once the API database says that they are finished, then the API
 * database. Resolves with false when a cell was left out.
 */
export async function archiveDatabases(apiUrl: string, options: ArchiveCommandOptions): Promise<boolean> {
  const cells = await readCellRecords(apiUrl);
  const reached: CellRecord[] = [];
  for (const cell of cells) {
    const database = `cell ${cell.name}`;
    try {
      const counts = new ArchiveCounts();
      await withClient(apiUrl, (api) =>
        withClient(cell.databaseUrl, async (client) => {
          const pending = await pendingMigrations(client, "cell");
          if (pending.length > 0) throw new Error(`it lacks ${pending.join(", ")}: run \`berth db migrate\` first`);
          await archiveCell(client, api, { ...options, sink: options.sinkOf(database) }, counts);
        }),
      );
      options.onDone(database, counts.all);
      reached.push(cell);
    } catch (error) {
      if (options.signal?.aborted) throw error;
      options.onUnreachable(database, error as Error);
    }
  }
  const isWhole = reached.length === cells.length;
  const counts = new ArchiveCounts();
  const sink = options.sinkOf("API database");
  await withClient(apiUrl, (api) =>
    archiveApi(api, isWhole ? (uuids) => mirroredIn(reached, uuids) : null, { ...options, sink }, counts),
  );
  options.onDone("API database", counts.all);
  return isWhole;
}

/** Finds which of these aggregates contain a provider of any cell. */
async function mirroredIn(cells: readonly CellRecord[], uuids: readonly string[]): Promise<ReadonlySet<string>> {
  const ask = async (client: ClientBase): Promise<readonly string[]> => {
    const { rows } = await client.query<{ uuid: string }>(
      "select distinct aggregate::text as uuid from provider_aggregates where aggregate = any ($1)",
      [uuids],
    );
    return rows.map(({ uuid }) => uuid);
  };
  const found = await Promise.all(cells.map(({ databaseUrl }) => withClient(databaseUrl, ask)));
  return new Set(found.flat());
}
