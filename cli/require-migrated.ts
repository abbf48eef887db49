import { withClient } from "../adapters/postgres/client/databases.ts";
import { pendingMigrations } from "../adapters/postgres/schema/migrate.ts";
import { SettingsError } from "../runtime/settings.ts";

/** A database without this migration has no tables of Berth. */
const FIRST_MIGRATION = "0001-baseline";

/**
 * Used by commands that only read: they may be newer than the running cloud, and must not change its tables while it runs. Throws a
 * `SettingsError` that says what to do when the API database lacks migrations of this version.
 */
export async function requireMigrated(apiUrl: string): Promise<void> {
  const pending = await withClient(apiUrl, (client) => pendingMigrations(client, "api"));
  if (pending.length === 0) return;
  if (pending.includes(FIRST_MIGRATION))
    throw new SettingsError(
      "the API database is empty: no cloud was set up there. Check BERTH_DATABASE_URL (--database-url) or BERTH_DATA_DIR (--data-dir); `berth db migrate` prepares a new one",
    );
  throw new SettingsError(
    `the API database lacks ${pending.join(", ")}: run \`berth db migrate\` if its services may be upgraded, or use the version of Berth of these services`,
  );
}
