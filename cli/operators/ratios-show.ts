import { tableOf } from "../../runtime/print-table.ts";
import { text } from "../../runtime/setting-kinds.ts";
import { optional } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import type { ShownHost } from "./host-answer.ts";
import { inventoryTable } from "./host-show.ts";
import { callOperatorsApi, operatorSettings } from "./operators-client.ts";

const declaration = {
  command: "berth ratios show",
  about: "Shows the allocation ratios that operators set; for one host, the ratios in force and their sources.",
  settings: { ...operatorSettings, host: optional(text(), { about: "of this host" }) },
};

type Ratios = Readonly<Record<string, number>>;
interface RatiosAnswer {
  readonly aggregates: readonly { readonly name: string; readonly ratios: Ratios }[];
  readonly hosts: readonly { readonly host: string; readonly ratios: Ratios }[];
}

/** `berth ratios show`. */
export function runRatiosShowCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    if (settings.host !== null) {
      const shown = await callOperatorsApi<ShownHost>(settings, "GET", `/hosts/${encodeURIComponent(settings.host)}`);
      process.stdout.write(inventoryTable(shown.inventories));
      return 0;
    }
    const { aggregates, hosts } = await callOperatorsApi<RatiosAnswer>(settings, "GET", "/ratios");
    const rows = [
      ...aggregates.map(({ name, ratios }) => [`aggregate ${name}`, ratiosText(ratios)]),
      ...hosts.map(({ host, ratios }) => [`host ${host}`, ratiosText(ratios)]),
    ];
    process.stdout.write(rows.length === 0 ? "none: all ratios are the agents'\n" : tableOf(rows));
    return 0;
  });
}

function ratiosText(ratios: Ratios): string {
  return Object.entries(ratios)
    .map(([name, ratio]) => `${name}=${ratio}`)
    .join(" ");
}
