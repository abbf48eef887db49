import { readFileSync } from "node:fs";
import { type Declaration, envOf, type Read, readSettings, type Setting } from "./settings.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads a command's settings as `readSettings` does, but can take secrets from files: for a setting that may hold a password,
 * `BERTH_…_FILE` names a file with its value, as secrets are handed to containers. White space at the file's end is ignored. Throws a
 * `SettingsError` with everything that is wrong, including when both variables are given or a file cannot be read.
 */
export function readProcessSettings<Settings extends Readonly<Record<string, Setting<unknown>>>>(
  declaration: Declaration<Settings>,
  source: { readonly argv: readonly string[]; readonly env: Environment },
): Read<Settings> {
  const { argv, env } = source;
  const filled: Record<string, string | undefined> = { ...env };
  const unreadable = new Map<string, string>();
  for (const [name, { kind }] of Object.entries(declaration.settings)) {
    const variable = envOf(name);
    const path = env[`${variable}_FILE`];
    if (kind.secret !== true || path === undefined || path === "") continue;
    const read = readSecret(variable, path, env);
    if ("fault" in read) unreadable.set(variable, read.fault);
    else filled[variable] = read.secret;
  }
  return readSettings(declaration, { argv, env: filled, unreadable });
}

function readSecret(
  variable: string,
  path: string,
  env: Environment,
): { readonly secret: string } | { readonly fault: string } {
  if (env[variable]) return { fault: `give either ${variable} or ${variable}_FILE` };
  try {
    return { secret: readFileSync(path, "utf8").trimEnd() };
  } catch (error) {
    return { fault: `${variable}_FILE: ${error instanceof Error ? error.message : error}` };
  }
}
