import { SettingsError } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { callOperatorsApi, operatorSettings } from "./operators-client.ts";
import type { SettingsAnswer } from "./settings-show.ts";

const setDeclaration = {
  command: "berth settings set",
  about: "Changes settings that schedulers read while they run. If one is wrong, none is changed.",
  positionals: ["KEY=VALUE…"],
  settings: operatorSettings,
};
const unsetDeclaration = {
  command: "berth settings unset",
  about: "Resets settings to their defaults.",
  positionals: ["KEY…"],
  settings: operatorSettings,
};

/** `berth settings set KEY=VALUE…`. */
export function runSettingsSetCommand(argv: readonly string[]): Promise<number> {
  return runCommand(setDeclaration, argv, async (settings, words) => {
    const set = Object.fromEntries(words.map(readAssignment));
    return tell(await callOperatorsApi<SettingsAnswer>(settings, "PUT", "/settings", { set }), Object.keys(set));
  });
}

/** `berth settings unset KEY…`. */
export function runSettingsUnsetCommand(argv: readonly string[]): Promise<number> {
  return runCommand(unsetDeclaration, argv, async (settings, unset) =>
    tell(await callOperatorsApi<SettingsAnswer>(settings, "PUT", "/settings", { unset }), unset),
  );
}

/** Reads the value as JSON, or as plain text if it is not JSON. */
export function readAssignment(word: string): readonly [string, unknown] {
  const at = word.indexOf("=");
  if (at < 1) throw new SettingsError(`${JSON.stringify(word)} is not KEY=VALUE`);
  const [option, given] = [word.slice(0, at), word.slice(at + 1)];
  try {
    return [option, JSON.parse(given)];
  } catch {
    return [option, given];
  }
}

function tell({ version, effective }: SettingsAnswer, options: readonly string[]): number {
  const lines = options.map((option) => `${option} = ${JSON.stringify(effective[option])}\n`);
  process.stdout.write(`${lines.join("")}version ${version}\n`);
  return 0;
}
