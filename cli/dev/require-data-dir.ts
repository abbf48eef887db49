import { accessSync, constants, mkdirSync } from "node:fs";
import { SettingsError } from "../../runtime/settings.ts";

/** Makes the data directory. Throws a `SettingsError` if that is impossible, or if this process may not write there. */
export function requireDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true });
    accessSync(dataDir, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new SettingsError(
      `BERTH_DATA_DIR (--data-dir) ${JSON.stringify(dataDir)} cannot be used (${(error as Error).message}): give a directory in which you may write`,
    );
  }
}
