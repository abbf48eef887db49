import { putCellRecord, readCellRecords } from "../adapters/postgres/api/cell-records.ts";
import { postgresUrl } from "../adapters/postgres/client/postgres-url.ts";
import { claimCellNameAt } from "../adapters/postgres/schema/claim-cell-name.ts";
import { migrate } from "../adapters/postgres/schema/migrate.ts";
import { apiDatabaseSettings, openApiDatabase } from "../cloud/api-database.ts";
import type { CellRecord } from "../core/stores/api/api-store.ts";
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
      requireOwnBus(name, settings.natsUrl, await readCellRecords(api.url));
      await migrate(cellUrl, "cell");
      await claimCellNameAt(cellUrl, name);
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

/**
 * Refuses an account of NATS that another cell uses: the streams of all cells have the same names, so the cell added last would take those of
 * the other one. Throws `SettingsError`.
 */
function requireOwnBus(name: string, natsUrl: string | null, cells: readonly CellRecord[]): void {
  const accounts = new Set(accountsOf(natsUrl));
  const other = cells.find((cell) => cell.name !== name && accountsOf(cell.natsUrl).some((one) => accounts.has(one)));
  if (other === undefined) return;
  throw new SettingsError(
    `BERTH_NATS_URL (--nats-url) names the server and user of cell ${other.name}: give cell ${name} a NATS server or account of its own`,
  );
}

/** The servers of a URL, each with its user but without the password. */
function accountsOf(natsUrl: string | null): readonly string[] {
  return (natsUrl?.split(",") ?? []).map((one) => {
    const url = new URL(one);
    url.password = "";
    return url.href;
  });
}
