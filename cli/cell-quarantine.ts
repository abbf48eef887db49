import type { Pool } from "pg";
import { readCellRecords } from "../adapters/postgres/api/cell-records.ts";
import { PostgresQuarantine } from "../adapters/postgres/cell/postgres-quarantine.ts";
import { createPool } from "../adapters/postgres/client/pool.ts";
import { apiDatabaseSettings, openApiDatabase } from "../cloud/api-database.ts";
import type { QuarantineAdmin } from "../core/stores/cell/quarantine.ts";
import { tableOf } from "../runtime/print-table.ts";
import { text } from "../runtime/setting-kinds.ts";
import { optional, SettingsError } from "../runtime/settings.ts";
import { requireMigrated } from "./require-migrated.ts";
import { runCommand } from "./run-command.ts";

const quarantineDeclaration = {
  command: "berth cell quarantine",
  about:
    "Lists the guests that a cell's hosts have although its database has forgotten them. They are kept until an operator decides.",
  positionals: ["NAME"],
  settings: {
    ...apiDatabaseSettings,
    destroy: optional(text(), {
      about: "destroy this server's guests in quarantine; all: those of all servers",
    }),
  },
};
const restoredDeclaration = {
  command: "berth cell restored",
  about:
    "Records that a cell's database was restored to an earlier moment, so that guests that it does not know are kept, not destroyed.",
  positionals: ["NAME"],
  settings: apiDatabaseSettings,
};

/** `berth cell quarantine NAME [--destroy SERVER|all]`. */
export function runCellQuarantineCommand(argv: readonly string[]): Promise<number> {
  return runCommand(quarantineDeclaration, argv, async ({ destroy, ...access }, [name = ""]) => {
    const say = (line: string) => process.stdout.write(`${line}\n`);
    return withQuarantine(access, name, async (quarantine) => {
      if (destroy !== null) {
        const count = await quarantine.condemn(destroy === "all" ? null : [destroy]);
        say(`${count} guests will be destroyed when their hosts are compared next`);
        return count > 0 ? 0 : 1;
      }
      const guests = await quarantine.quarantined();
      const rows = guests.map(({ host, serverUuid, attemptId, state, foundAtMs, condemned, reason }) => [
        ...[host, serverUuid, attemptId, condemned ? "to be destroyed" : state],
        ...[new Date(foundAtMs).toISOString(), reason],
      ]);
      if (rows.length === 0) say(`no guests of cell ${name} are in quarantine`);
      else process.stdout.write(tableOf([["HOST", "SERVER", "ATTEMPT", "STATE", "FOUND", "WHY IT IS KEPT"], ...rows]));
      return 0;
    });
  });
}

/** `berth cell restored NAME`: to be run after a restore, before the cell's conductors start. */
export function runRestored(argv: readonly string[]): Promise<number> {
  return runCommand(restoredDeclaration, argv, (access, [name = ""]) =>
    withQuarantine(access, name, async (quarantine) => {
      const incarnation = await quarantine.renewIncarnation();
      process.stdout.write(
        `the database of cell ${name} is now incarnation ${incarnation}. Guests that it does not know are kept: berth cell quarantine ${name}\n`,
      );
      return 0;
    }),
  );
}

async function withQuarantine<Result>(
  access: Parameters<typeof openApiDatabase>[0],
  name: string,
  work: (quarantine: QuarantineAdmin) => Promise<Result>,
): Promise<Result> {
  const api = await openApiDatabase(access, { beside: true });
  try {
    await requireMigrated(api.url);
    const cells = await readCellRecords(api.url);
    const cell = cells.find((one) => one.name === name);
    if (cell === undefined) {
      const known = cells.map((one) => one.name).join(", ") || "none";
      throw new SettingsError(`there is no cell ${JSON.stringify(name)}: NAME must be one of ${known}`);
    }
    return await withPool(cell.databaseUrl, (pool) => work(new PostgresQuarantine(pool)));
  } finally {
    await api.close();
  }
}

async function withPool<Result>(url: string, work: (pool: Pool) => Promise<Result>): Promise<Result> {
  const pool = createPool({ url, applicationName: "berth admin", connectionsMax: 1 });
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}
