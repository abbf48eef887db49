import { tableOf } from "../../runtime/print-table.ts";
import { boolean } from "../../runtime/setting-kinds.ts";
import { setting } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { callOperatorsApi, operatorSettings } from "./operators-client.ts";

const declaration = {
  command: "berth settings show",
  about: "Shows every setting that schedulers read while they run; * marks those that are not at their default.",
  settings: { ...operatorSettings, json: setting(boolean, { about: "as JSON", default: "false" }) },
};

/** The api's answer with the settings. */
export interface SettingsAnswer {
  readonly version: number;
  readonly set: Readonly<Record<string, unknown>>;
  readonly effective: Readonly<Record<string, unknown>>;
}

/** `berth settings show`. */
export function runSettingsShowCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const answer = await callOperatorsApi<SettingsAnswer>(settings, "GET", "/settings");
    process.stdout.write(settings.json ? `${JSON.stringify(answer, null, 2)}\n` : settingsText(answer));
    return 0;
  });
}

function settingsText({ version, set, effective }: SettingsAnswer): string {
  const rows = Object.keys(effective)
    .sort()
    .map((option) => [Object.hasOwn(set, option) ? "*" : "", option, JSON.stringify(effective[option])]);
  return `version ${version}\n${tableOf(rows)}`;
}
