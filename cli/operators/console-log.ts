import { integer } from "../../runtime/setting-kinds.ts";
import { optional } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { callCompute, operatorSettings } from "./operators-client.ts";
import { requireServerUuid } from "./require-server-uuid.ts";
import { terminalText } from "./terminal-text.ts";

const declaration = {
  command: "berth console-log",
  about: "Prints the end of what a server has written to its console.",
  positionals: ["SERVER_UUID"],
  settings: {
    ...operatorSettings,
    lines: optional(integer({ min: 1, max: 100_000 }), { about: "most lines; all that the api gives, unless set" }),
  },
};

/** `berth console-log SERVER_UUID`. */
export function runConsoleLogCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings, [server = ""]) => {
    // A last line break counts as a line of its own.
    const length = settings.lines === null ? {} : { length: settings.lines + 1 };
    const path = `/servers/${encodeURIComponent(requireServerUuid(server))}/action`;
    const { output } = await callCompute<{ output: string }>(settings, "POST", path, { "os-getConsoleOutput": length });
    const shown = process.stdout.isTTY ? terminalText(output) : output;
    process.stdout.write(shown === "" || shown.endsWith("\n") ? shown : `${shown}\n`);
    return 0;
  });
}
