import { boolean } from "../../runtime/setting-kinds.ts";
import { setting } from "../../runtime/settings.ts";
import { readMachine, treeOfMachine } from "../../services/compute-agent/discover-machine.ts";
import { discoverySettings } from "../../services/compute-agent/discovery-settings.ts";
import { driverSetting } from "../../services/compute-agent/driver-setting.ts";
import { runCommand } from "../run-command.ts";
import { inspectedHostText } from "./print-inspected-host.ts";

const { sysroot, ...others } = discoverySettings;
const declaration = {
  command: "berth host inspect",
  about: "Shows the hardware of a Linux host, and the resource providers that it would report. It needs no cloud.",
  settings: {
    sysroot,
    json: setting(boolean, { about: "as JSON", default: "false" }),
    driver: driverSetting,
    ...others,
  },
};

/** `berth host inspect`. */
export function runHostInspectCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const { machine, tree } = treeOfMachine(readMachine(settings), settings);
    const shown = { ...machine, tree };
    process.stdout.write(settings.json ? `${JSON.stringify(shown, null, 2)}\n` : inspectedHostText(machine, tree));
    return 0;
  });
}
