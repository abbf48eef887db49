import { tableOf } from "../../runtime/print-table.ts";
import { boolean } from "../../runtime/setting-kinds.ts";
import { setting } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { describeState, type ShownHost, type ShownInventory, type ShownNode } from "./host-answer.ts";
import { callOperatorsApi, operatorSettings } from "./operators-client.ts";
import { hostTreeText } from "./print-host-tree.ts";

const declaration = {
  command: "berth host show",
  about: "Shows a host in detail, with its tree of resource providers.",
  positionals: ["HOST"],
  settings: {
    ...operatorSettings,
    json: setting(boolean, { about: "as JSON", default: "false" }),
    resetFailures: setting(boolean, { about: "forget the builds that failed there", default: "false" }),
  },
};

/** `berth host show HOST`; with `--reset-failures` it forgets the host's failed builds first. */
export function runHostShowCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings, [host = ""]) => {
    const path = `/hosts/${encodeURIComponent(host)}`;
    const shown = settings.resetFailures
      ? await callOperatorsApi<ShownHost>(settings, "PUT", path, { reset_failures: true })
      : await callOperatorsApi<ShownHost>(settings, "GET", path);
    process.stdout.write(settings.json ? `${JSON.stringify(shown, null, 2)}\n` : hostText(shown));
    return 0;
  });
}

/** Formats a host for people. */
export function hostText(host: ShownHost): string {
  const halfLifeMinutes = host.build_failures_half_life_seconds / 60;
  const fields = [
    ["host", `${host.host} (cell ${host.cell})`],
    ["state", describeState(host)],
    ...(host.closed_because ? [["closed for new servers", host.closed_because]] : []),
    ...(host.node ? [["bare metal node", describeNode(host.node)]] : []),
    ["zone", host.zone],
    ["aggregates", host.aggregates.map(({ id, name }) => `${name} (${id})`).join(", ") || "none"],
    ["servers", String(host.servers)],
    ["failed builds", `${host.build_failures} (each counts half after ${halfLifeMinutes} minutes)`],
    ["agent", `${host.agent}, last heard of at ${host.seen_at ?? "no known time"}`],
    ["provider", host.root_provider],
  ];
  const notes = host.tree.notes.map((note) => `note: ${note}\n`).join("");
  const parts = [tableOf(fields), hostTreeText(host), inventoryTable(host.inventories), notes];
  return parts.filter((part) => part !== "").join("\n");
}

/** Describes a node, for example `active, power on: closed, it is in use by server …`. */
function describeNode({ provision_state, power_state, closed_because }: ShownNode): string {
  return `${provision_state}, ${power_state}: ${closed_because === null ? "open for a server" : `closed, ${closed_because}`}`;
}

/** Inventories with their ratios and the sources of these. */
export function inventoryTable(inventories: readonly ShownInventory[]): string {
  const head = ["PROVIDER", "CLASS", "TOTAL", "RESERVED", "RATIO", "FROM", "CAPACITY", "USED"];
  return tableOf([
    head,
    ...inventories.map((one) => [
      ...[one.provider, one.resource_class, String(one.total), String(one.reserved), String(one.allocation_ratio)],
      one.reported_ratio === null ? one.ratio_source : `${one.ratio_source} (agent: ${one.reported_ratio})`,
      ...[String(one.capacity), String(one.used)],
    ]),
  ]);
}
