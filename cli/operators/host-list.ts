import { tableOf } from "../../runtime/print-table.ts";
import { boolean } from "../../runtime/setting-kinds.ts";
import { setting } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { describeState, type ListedHost } from "./host-answer.ts";
import { callOperatorsApi, operatorSettings } from "./operators-client.ts";

const declaration = {
  command: "berth host list",
  about: "Lists the hosts of all cells: zone, state, and the number of recently failed builds.",
  settings: { ...operatorSettings, json: setting(boolean, { about: "as JSON", default: "false" }) },
};

/** `berth host list`: one line a host. */
export function runHostListCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const answer = await callOperatorsApi<{ hosts: readonly ListedHost[] }>(settings, "GET", "/hosts");
    const rows = answer.hosts.map((host) => [
      ...[host.host, host.cell, host.zone, describeState(host)],
      String(host.build_failures),
    ]);
    process.stdout.write(
      settings.json
        ? `${JSON.stringify(answer.hosts, null, 2)}\n`
        : tableOf([["HOST", "CELL", "ZONE", "STATE", "FAILURES"], ...rows]),
    );
    return 0;
  });
}
