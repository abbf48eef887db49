import { readCellRecords } from "../adapters/postgres/api/cell-records.ts";
import { postgresUrl } from "../adapters/postgres/client/postgres-url.ts";
import { claimCellNameAt } from "../adapters/postgres/schema/claim-cell-name.ts";
import { migrate } from "../adapters/postgres/schema/migrate.ts";
import type { DatabaseKind } from "../adapters/postgres/schema/schema-files.ts";
import { apiDatabaseSettings, openApiDatabase } from "../cloud/api-database.ts";
import { optional } from "../runtime/settings.ts";
import { runCommand } from "./run-command.ts";

const declaration = {
  command: "berth db migrate",
  about:
    "Brings the API database and the databases of all its cells up to this version; with only a cell's URL, just that database.",
  settings: {
    ...apiDatabaseSettings,
    cellDatabaseUrl: optional(postgresUrl, {
      about: "one cell's database, if you have access to no other database",
    }),
  },
};

/** `berth db migrate`: repeatable, and harmless when several run at once. */
export function runDbMigrateCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    if (settings.cellDatabaseUrl !== null) await migrateAndTell(settings.cellDatabaseUrl, "cell", "cell");
    if (settings.cellDatabaseUrl !== null && settings.databaseUrl === null) return 0;
    const api = await openApiDatabase(settings);
    try {
      await migrateAndTell(api.url, "api", "API database");
      for (const cell of await readCellRecords(api.url)) {
        await migrateAndTell(cell.databaseUrl, "cell", `cell ${cell.name}`);
        await claimCellNameAt(cell.databaseUrl, cell.name);
      }
      return 0;
    } finally {
      await api.close();
    }
  });
}

async function migrateAndTell(databaseUrl: string, kind: DatabaseKind, what: string): Promise<void> {
  const onBlocked = (blocked: string, blockers: readonly string[]) =>
    process.stderr.write(
      `${what}: ${blocked} waits for locks of other sessions and tries again: ${blockers.join("; ")}\n`,
    );
  const applied = await migrate(databaseUrl, kind, { onBlocked });
  process.stdout.write(`${what}: ${applied.length === 0 ? "up to date" : applied.join(", ")}\n`);
}
