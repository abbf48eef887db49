import { apiDatabaseSettings, openApiDatabase } from "../cloud/api-database.ts";
import { boolean, duration, integer, text } from "../runtime/setting-kinds.ts";
import { optional, SettingsError, setting } from "../runtime/settings.ts";
import { age } from "./archive/age.ts";
import { type ArchiveCommandOptions, archiveDatabases } from "./archive/archive-databases.ts";
import { openArchiveFile } from "./archive/archive-file.ts";
import { requireMigrated } from "./require-migrated.ts";
import { runCommand } from "./run-command.ts";

const declaration = {
  command: "berth db archive",
  about:
    "Removes deleted servers with their tasks, attempts and migrations, deleted requests, and finished moves from the API database and the cells' databases. Can be interrupted and run again at any time, while the cloud works.",
  settings: {
    ...apiDatabaseSettings,
    before: setting(age, { about: "rows that ended before this age or moment are removed" }),
    to: optional(text(), { about: "the file to which the rows are appended as lines of JSON before they are removed" }),
    purge: setting(boolean, { about: "remove the rows without a copy", default: "false" }),
    dryRun: setting(boolean, { about: "only count", default: "false" }),
    batch: setting(integer({ min: 1, max: 10_000 }), {
      about: "maximum number of rows in one transaction",
      default: "500",
    }),
    pause: setting(duration({ minMs: 0, maxMs: 60_000 }), { about: "between two transactions", default: "50ms" }),
  },
} as const;

/** `berth db archive --before AGE`: exit code 1 when a cell could not be reached. */
export function runDbArchiveCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const ways = [settings.to !== null, settings.purge, settings.dryRun].filter(Boolean).length;
    if (ways !== 1)
      throw new SettingsError(
        "give one of --to FILE (copy the rows, then remove them), --purge (remove them without a copy) and --dry-run (only count them)",
      );
    const api = await openApiDatabase(settings, { beside: true });
    const file = settings.to === null ? null : await openArchiveFile(settings.to);
    try {
      await requireMigrated(api.url);
      const nowhere = { keep: async () => undefined };
      const options: ArchiveCommandOptions = {
        beforeMs: settings.before(Date.now()),
        ...{ batchMax: settings.batch, pauseMs: settings.pause },
        sinkOf: (database) => (settings.dryRun ? null : (file?.sinkOf(database) ?? nowhere)),
        onDone: (database, counts) => {
          const tables = [...counts].filter(([, rows]) => rows > 0).map(([table, rows]) => `${rows} ${table}`);
          const what = tables.length === 0 ? "nothing" : tables.join(", ");
          process.stdout.write(`${database}: ${what}${settings.dryRun ? " would be removed" : " archived"}\n`);
        },
        onUnreachable: (database, error) => process.stderr.write(`${database} was left out: ${error.message}\n`),
      };
      return (await archiveDatabases(api.url, options)) ? 0 : 1;
    } finally {
      await file?.close();
      await api.close();
    }
  });
}
