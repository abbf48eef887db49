import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SettingsError } from "../../runtime/settings.ts";

/** The default address of the api, on which `berth dev` and `berth api` listen. */
const DEFAULT_API = "http://127.0.0.1:8774";

const fileIn = (dataDir: string): string => join(dataDir, "api-address");

/** `berth dev` writes its address into its directory while it runs, so that commands find it. */
export function writeApiAddress(dataDir: string, apiUrl: string): void {
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(fileIn(dataDir), `${apiUrl}\n`);
}

export function removeApiAddress(dataDir: string): void {
  rmSync(fileIn(dataDir), { force: true });
}

/** The address of the api that a command calls: the given one, the one in the data directory, or the default. Throws `SettingsError`. */
export function apiAddress({ api, dataDir }: { readonly api: string | null; readonly dataDir: string | null }): string {
  if (api !== null) return api;
  if (dataDir === null) return DEFAULT_API;
  try {
    return readFileSync(fileIn(dataDir), "utf8").trim();
  } catch {
    throw new SettingsError(
      `BERTH_DATA_DIR (--data-dir) ${JSON.stringify(dataDir)} has no running \`berth dev\`: start it with the same --data-dir, or give the URL of an api with --api`,
    );
  }
}
