import { accessSync, constants, mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { SettingsError } from "../../runtime/settings.ts";

/** Makes the data directory. Throws a `SettingsError` if that is impossible, or if this process may not write there. */
export function requireDataDir(dataDir: string): void {
  try {
    makeDirectories(resolve(dataDir));
    accessSync(dataDir, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new SettingsError(
      `BERTH_DATA_DIR (--data-dir) ${JSON.stringify(dataDir)} cannot be used (${(error as Error).message}): give a directory in which you may write`,
    );
  }
}

/** Makes a directory and those above it. Node's recursive mkdir never returns where a parent exists but refuses new entries with ENOENT, as /proc does. */
function makeDirectories(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(path) !== path) makeDirectories(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
