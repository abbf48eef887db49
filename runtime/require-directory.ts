import { accessSync, constants, mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { SettingsError } from "./settings.ts";

/** How messages name the setting of a data directory. */
export const DATA_DIR = "BERTH_DATA_DIR (--data-dir)";

/**
 * Makes the directory that a setting names, and those above it. Throws a `SettingsError`, which names the setting, if that is impossible or if this process may not
 * write there. `mode` is for new directories, and limited by the umask.
 */
export function requireDirectory(setting: string, path: string, mode = 0o777): void {
  try {
    makeDirectories(resolve(path), mode);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new SettingsError(
      `${setting} ${JSON.stringify(path)} cannot be used (${(error as Error).message}): give a directory in which you may write`,
    );
  }
}

/** Makes a directory and those above it. Node's recursive mkdir never returns where a parent exists but refuses new entries with ENOENT, as /proc does. */
function makeDirectories(path: string, mode: number): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(path) !== path) makeDirectories(dirname(path), mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
