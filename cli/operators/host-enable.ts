import { text } from "../../runtime/setting-kinds.ts";
import { optional } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { describeState, type ShownHost } from "./host-answer.ts";
import { type ApiAccess, callOperatorsApi, operatorSettings } from "./operators-client.ts";

const enableDeclaration = {
  command: "berth host enable",
  about: "Allows new servers on the host again.",
  positionals: ["HOST"],
  settings: operatorSettings,
};
const disableDeclaration = {
  command: "berth host disable",
  about: "Keeps new servers off the host. Its servers stay.",
  positionals: ["HOST"],
  settings: { ...operatorSettings, reason: optional(text(), { about: "the reason, which is shown with the host" }) },
};

/** `berth host enable HOST`. */
export function runHostEnableCommand(argv: readonly string[]): Promise<number> {
  return runCommand(enableDeclaration, argv, (settings, [host = ""]) => change(settings, host, { disabled: false }));
}

/** `berth host disable HOST`. */
export function runDisable(argv: readonly string[]): Promise<number> {
  return runCommand(disableDeclaration, argv, (settings, [host = ""]) =>
    change(settings, host, { disabled: true, ...(settings.reason !== null && { reason: settings.reason }) }),
  );
}

async function change(access: ApiAccess, host: string, body: unknown): Promise<number> {
  const shown = await callOperatorsApi<ShownHost>(access, "PUT", `/hosts/${encodeURIComponent(host)}`, body);
  process.stdout.write(`${shown.host}: ${describeState(shown)}\n`);
  return 0;
}
