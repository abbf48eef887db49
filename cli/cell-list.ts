import { readCellRecords } from "../adapters/postgres/api/cell-records.ts";
import { apiDatabaseSettings, openApiDatabase } from "../cloud/api-database.ts";
import { hidePasswords } from "../runtime/logger.ts";
import { requireMigrated } from "./require-migrated.ts";
import { runCommand } from "./run-command.ts";

const declaration = {
  command: "berth cell list",
  about: "Lists the cells that the API database knows.",
  settings: apiDatabaseSettings,
};

/** `berth cell list`: one line a cell, passwords hidden. */
export function runCellListCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const api = await openApiDatabase(settings, { beside: true });
    try {
      await requireMigrated(api.url);
      const cells = await readCellRecords(api.url);
      for (const cell of cells) {
        const parts = [
          cell.name,
          hidePasswords(cell.databaseUrl),
          hidePasswords(cell.natsUrl ?? "-"),
          cell.disabled ? "disabled" : "enabled",
        ];
        process.stdout.write(`${parts.join("\t")}\n`);
      }
      return 0;
    } finally {
      await api.close();
    }
  });
}
