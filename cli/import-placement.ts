import { join } from "node:path";
import { readCellRecords } from "../adapters/postgres/api/cell-records.ts";
import { ensureDatabase, withClient } from "../adapters/postgres/client/databases.ts";
import { postgresUrl } from "../adapters/postgres/client/postgres-url.ts";
import { startEmbedded } from "../adapters/postgres/embedded/embedded.ts";
import { migrate } from "../adapters/postgres/schema/migrate.ts";
import { apiDatabaseSettings } from "../cloud/api-database.ts";
import { systemClock } from "../runtime/clock.ts";
import { boolean, integer, text, url } from "../runtime/setting-kinds.ts";
import { optional, SettingsError, setting, type ValuesOf } from "../runtime/settings.ts";
import { Progress } from "./import-placement/progress.ts";
import { isRight, reportLines } from "./import-placement/report.ts";
import { type ImportResult, runImport } from "./import-placement/run-import.ts";
import { openSource, SOURCE_SCHEMES } from "./import-placement/source.ts";
import { runCommand } from "./run-command.ts";

const declaration = {
  command: "berth import-placement",
  about:
    "Copies an OpenStack Placement database into a cell's empty ledger, and compares both. It only reads the source. After an interruption it continues " +
    "where it stopped. Stop what writes to the source first.",
  settings: {
    from: setting(url(...SOURCE_SCHEMES), {
      about: "the Placement database, as in connection of [placement_database]",
    }),
    ...apiDatabaseSettings,
    cell: optional(text(), { about: "the cell's name in the API database; necessary if there are several" }),
    cellDatabaseUrl: optional(postgresUrl, { about: "the cell's database, without an API database" }),
    batchRows: setting(integer({ min: 1, max: 100_000 }), { about: "rows of one transaction", default: "5000" }),
    restart: setting(boolean, {
      about: "empty the ledger first; refused if its cell has hosts or servers",
      default: "false",
    }),
  },
};

/** `berth import-placement`: prints a report. The exit code is 0 when the ledger equals the source, and 1 when it does not. */
export function runImportPlacementCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const ledger = await openLedger(settings);
    try {
      const result = await importInto(ledger.url, settings);
      for (const line of reportLines(result)) process.stdout.write(`${line}\n`);
      return isRight(result) ? 0 : 1;
    } finally {
      await ledger.close();
    }
  });
}

async function importInto(ledgerUrl: string, settings: ValuesOf<typeof declaration.settings>): Promise<ImportResult> {
  const source = await openSource(settings.from);
  try {
    return await withClient(ledgerUrl, async (ledger) => {
      let progress: Progress | null = null;
      const result = await runImport(source, ledger, settings, {
        began: (rowsInAll, rowsThere) => {
          progress = new Progress(process.stdout, systemClock, rowsInAll);
          progress.resumeAt(rowsThere);
        },
        copied: (what, rows) => progress?.add(what, rows),
      });
      (progress as Progress | null)?.finish();
      return result;
    });
  } finally {
    await source.close();
  }
}

interface LedgerDatabase {
  readonly url: string;
  close(): Promise<void>;
}

/** Opens the database that the settings name, the database of the named cell, or the one that `berth api --only placement` embeds. */
async function openLedger(settings: ValuesOf<typeof declaration.settings>): Promise<LedgerDatabase> {
  const close = async () => {};
  if (settings.cellDatabaseUrl !== null) {
    await migrate(settings.cellDatabaseUrl, "cell");
    return { url: settings.cellDatabaseUrl, close };
  }
  if (settings.databaseUrl !== null) return { url: await cellOf(settings.databaseUrl, settings.cell), close };
  const server = await startEmbedded({ dataDir: join(settings.dataDir, "postgres") });
  try {
    await ensureDatabase(server.url("postgres"), "berth_placement");
    await migrate(server.url("berth_placement"), "cell");
  } catch (error) {
    await server.stop();
    throw error;
  }
  return { url: server.url("berth_placement"), close: () => server.stop() };
}

async function cellOf(apiUrl: string, name: string | null): Promise<string> {
  const cells = await readCellRecords(apiUrl);
  const [only] = name === null && cells.length !== 1 ? [] : cells.filter((cell) => name === null || cell.name === name);
  if (only !== undefined) return only.databaseUrl;
  const known = cells.map((cell) => cell.name).join(", ") || "none";
  throw new SettingsError(`BERTH_CELL (--cell) must name one of the API database's cells: ${known}`);
}
