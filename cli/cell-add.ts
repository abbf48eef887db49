import { putCellRecord } from "../adapters/postgres/api/cell-records.ts";
import { postgresUrl } from "../adapters/postgres/client/postgres-url.ts";
import { migrate } from "../adapters/postgres/schema/migrate.ts";
import { apiDatabaseSettings, openApiDatabase } from "../cloud/api-database.ts";
import { boolean, urls } from "../runtime/setting-kinds.ts";
import { optional, SettingsError, setting } from "../runtime/settings.ts";
import { runCommand } from "./run-command.ts";

const declaration = {
  command: "berth cell add",
  about: "Adds a cell, or changes its addresses. Prepares its database. Can be repeated at any time.",
  positionals: ["NAME"],
  settings: {
    ...apiDatabaseSettings,
    cellDatabaseUrl: optional(postgresUrl, {
      about: "the cell's database, as the API tier reaches it",
    }),
    natsUrl: optional(urls("nats", "tls", "ws", "wss"), { about: "the API tier's user in the cell's NATS account" }),
    disabled: setting(boolean, { about: "place no new servers there", default: "false" }),
  },
};

// Cell names become part of NATS subjects and of database names.
const CELL_NAME = /^[a-z0-9][a-z0-9-]{0,39}$/;

/** `berth cell add NAME`: migrates the cell's database, then tells the API database about it. */
export function runCellAddCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings, [name = ""]) => {
    if (!CELL_NAME.test(name)) {
      throw new SettingsError(
        `NAME cannot be ${JSON.stringify(name)}; allowed: up to 40 of a-z, 0-9 and -, not beginning with -`,
      );
    }
    const api = await openApiDatabase(settings);
    try {
      const cellUrl = settings.cellDatabaseUrl ?? (await api.cellUrl?.(name));
      if (cellUrl === undefined) {
        throw new SettingsError(
          "BERTH_CELL_DATABASE_URL (--cell-database-url) is missing: the API database is not the embedded one, so the cell's database must be named, too",
        );
      }
      await migrate(api.url, "api");
      await migrate(cellUrl, "cell");
      await putCellRecord(api.url, {
        name,
        databaseUrl: cellUrl,
        natsUrl: settings.natsUrl,
        disabled: settings.disabled,
      });
      process.stdout.write(`cell ${name} is ready\n`);
      return 0;
    } finally {
      await api.close();
    }
  });
}
