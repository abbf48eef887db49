import { withClient } from "../adapters/postgres/databases.ts";
import { pendingMigrations } from "../adapters/postgres/migrate.ts";
import { SettingsError } from "../runtime/settings.ts";

/**
 * For commands that only read: they may be newer than the cloud that runs, and must not change its tables under it. Throws
 * `SettingsError` when the API database lacks migrations of this version, and says what to do.
 */
export async function requireMigrated(apiUrl: string): Promise<void> {
  const pending = await withClient(apiUrl, (client) => pendingMigrations(client, "api"));
  if (pending.length === 0) return;
  throw new SettingsError(
    `the API database lacks ${pending.join(", ")}: run \`berth db migrate\` when its services may be upgraded, or use the version of Berth that they run`,
  );
}
