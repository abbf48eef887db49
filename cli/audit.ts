import { readCells } from "../adapters/postgres/cell-records.ts";
import { boolean, duration } from "../runtime/setting-kinds.ts";
import { setting } from "../runtime/settings.ts";
import { apiDatabaseSettings, openApiDatabase } from "./api-database.ts";
import { auditTwice } from "./audit/audit-twice.ts";
import { conductorSettingNames } from "./audit/conductor-setting-names.ts";
import { auditText, isClean } from "./audit/print-report.ts";
import { requireMigrated } from "./require-migrated.ts";
import { runCommand } from "./run-command.ts";

const declaration = {
  command: "berth audit",
  about: "Checks the five laws on a live cloud, from its databases. Exit code 1 if one is broken.",
  settings: {
    ...apiDatabaseSettings,
    json: setting(boolean, { about: "print one JSON object", default: "false" }),
    pause: setting(duration({ minMs: 0, maxMs: 600_000 }), {
      about: "between the two readings; only what both show is reported",
      default: "3s",
    }),
    patience: setting(duration({ minMs: 0, maxMs: 3_600_000 }), {
      about: "how long a request or a task may lie about before nobody counts as working on it",
      default: "30s",
    }),
  },
};

/** `berth audit`: reads every cell's database and the API database, and prints what is broken, where, and how that is known. */
export function run(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const api = await openApiDatabase(settings, { beside: true });
    try {
      await requireMigrated(api.url);
      const report = await auditTwice({
        apiUrl: api.url,
        cells: await readCells(api.url),
        pauseMs: settings.pause,
        patienceMs: settings.patience,
        conductorSettings: conductorSettingNames,
      });
      process.stdout.write(`${settings.json ? JSON.stringify(report, null, 2) : auditText(report)}\n`);
      return isClean(report) ? 0 : 1;
    } finally {
      await api.close();
    }
  });
}
