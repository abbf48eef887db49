import { misspelledVariables } from "../runtime/misspelled-variables.ts";
import { readProcessSettings } from "../runtime/secret-files.ts";
import { type Declaration, type Setting, SettingsError, type ValuesOf } from "../runtime/settings.ts";

/**
 * Reads a command's settings and runs it. A request for help ends with exit code 0. Bad settings are printed one line each, and the exit
 * code is 2.
 */
export async function runCommand<Settings extends Readonly<Record<string, Setting<unknown>>>>(
  declaration: Declaration<Settings>,
  argv: readonly string[],
  work: (settings: ValuesOf<Settings>, positionals: readonly string[]) => Promise<number>,
): Promise<number> {
  try {
    const read = readProcessSettings(declaration, { argv, env: process.env });
    if (read.kind === "settings") {
      for (const misspelled of misspelledVariables(declaration, process.env))
        process.stderr.write(`${declaration.command}: ${misspelled}\n`);
      return await work(read.settings, read.positionals);
    }
    process.stdout.write(`${read.text}\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    process.stderr.write(`${declaration.command}: ${error.message}\n`);
    return 2;
  }
}
