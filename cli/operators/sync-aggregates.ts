import { boolean } from "../../runtime/setting-kinds.ts";
import { setting } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { callOperatorsApi, operatorSettings } from "./operators-client.ts";
import { type ShownSync, syncText } from "./print-sync.ts";

const declaration = {
  command: "berth sync-aggregates",
  about: "Compares the cells' placement aggregates and ratios with the API tier's, and corrects the differences.",
  settings: { ...operatorSettings, dryRun: setting(boolean, { about: "only show the differences", default: "false" }) },
};

/** `berth sync-aggregates`: exit code 1 when a cell did not answer. */
export function runSyncAggregatesCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const answer = await callOperatorsApi<ShownSync>(settings, "POST", "/sync-aggregates", {
      dry_run: settings.dryRun,
    });
    const hosts = answer.changed.length;
    const sum = settings.dryRun ? `${hosts} hosts differ` : `${hosts} hosts changed`;
    process.stdout.write(`${syncText(answer)}${sum}\n`);
    return answer.unreachable_cells.length === 0 ? 0 : 1;
  });
}
