import { readFileSync } from "node:fs";
import { type Declaration, envOf, type Setting, SettingsError } from "./settings.ts";

/**
 * The environment with the contents of files in the place of secrets: where a setting may hold a password, `BERTH_…_FILE` names a
 * file with its value, as secrets are handed to containers. White space at the file's end does not count. Throws a `SettingsError`
 * when both variables are given, or the file cannot be read.
 */
export function withSecretFiles(
  declaration: Declaration<Readonly<Record<string, Setting<unknown>>>>,
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string | undefined>> {
  const filled = { ...env };
  for (const [name, { kind }] of Object.entries(declaration.settings)) {
    const variable = envOf(name);
    const path = env[`${variable}_FILE`];
    if (kind.secret !== true || path === undefined || path === "") continue;
    if (env[variable]) throw new SettingsError(`give either ${variable} or ${variable}_FILE`);
    try {
      filled[variable] = readFileSync(path, "utf8").trimEnd();
    } catch (error) {
      throw new SettingsError(`${variable}_FILE: ${error instanceof Error ? error.message : error}`);
    }
  }
  return filled;
}
