import { readCellRecords } from "../adapters/postgres/api/cell-records.ts";
import { apiRemainsOf, removeCell } from "../adapters/postgres/api/cell-removal.ts";
import { cellRemainsIn } from "../adapters/postgres/cell/cell-remains.ts";
import { apiDatabaseSettings, openApiDatabase } from "../cloud/api-database.ts";
import type { CellRecord } from "../core/stores/api/api-store.ts";
import { SettingsError } from "../runtime/settings.ts";
import { requireMigrated } from "./require-migrated.ts";
import { runCommand } from "./run-command.ts";

const declaration = {
  command: "berth cell remove",
  about: "Removes the record of a cell that is disabled and empty. The cell's database is read, and not changed.",
  positionals: ["NAME"],
  settings: apiDatabaseSettings,
};

/** `berth cell remove NAME`: refuses with exit code 1 while the cell is enabled or has anything, and says what it has and what to do. */
export function runCellRemoveCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings, [name = ""]) => {
    const api = await openApiDatabase(settings, { beside: true });
    try {
      await requireMigrated(api.url);
      const record = (await readCellRecords(api.url)).find((one) => one.name === name);
      if (record === undefined)
        throw new SettingsError(`there is no cell ${name}: \`berth cell list\` names all cells`);
      const remains = [...(await apiRemainsOf(api.url, name)), ...(await remainsInCell(record))];
      const reasons = [
        ...(record.disabled
          ? []
          : [`it is enabled: run \`berth cell add ${name} --disabled …\` with its present URLs`]),
        ...remains.map((one) => `it still has ${one}`),
      ];
      if (reasons.length > 0 || !(await removeCell(api.url, name))) return refuse(name, reasons);
      process.stdout.write(`cell ${name} is removed: restart the apis and the continuous audit, one after the other,
before you stop the cell's database and NATS server. The schedulers have left the cell in a few seconds.\n`);
      return 0;
    } finally {
      await api.close();
    }
  });
}

/** A database that cannot be read, or is another cell's, says nothing about the cell. Throws a `SettingsError` then. */
async function remainsInCell({ name, databaseUrl }: CellRecord): Promise<readonly string[]> {
  try {
    return await cellRemainsIn(databaseUrl, name);
  } catch (error) {
    throw new SettingsError(
      `the database of cell ${name} cannot be read, so nobody knows whether the cell is empty: ${(error as Error).message}`,
    );
  }
}

function refuse(name: string, reasons: readonly string[]): number {
  const why = reasons.length > 0 ? reasons : ["it has been changed meanwhile: run this again"];
  process.stderr.write(`cell ${name} is not removed:
${why.map((one) => `- ${one}\n`).join("")}docs/cells.md says how a cell is emptied. Nothing was changed.\n`);
  return 1;
}
