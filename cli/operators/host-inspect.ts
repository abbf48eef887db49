import { chooseAccel } from "../../adapters/qemu/choose-accel.ts";
import { guestCpuOffers } from "../../adapters/qemu/guest-cpu-offers.ts";
import { type CpuOffer, traitsOfOffers } from "../../core/pinning/choose-cpu-model.ts";
import { boolean } from "../../runtime/setting-kinds.ts";
import { setting } from "../../runtime/settings.ts";
import { readMachine, treeOfMachine } from "../../services/compute-agent/discover-machine.ts";
import { discoverySettings } from "../../services/compute-agent/discovery-settings.ts";
import { driverSetting } from "../../services/compute-agent/driver-setting.ts";
import { cpuModelsOf } from "../../services/compute-agent/qemu/cpu-models.ts";
import { type QemuSettings, qemuSettings } from "../../services/compute-agent/qemu/qemu-settings.ts";
import { runCommand } from "../run-command.ts";
import { inspectedHostText } from "./print-inspected-host.ts";

const { sysroot, ...others } = discoverySettings;
const { qemu, accel, cpuModel, cpuModels, cpuModelExtraFlags } = qemuSettings;
const declaration = {
  command: "berth host inspect",
  about:
    "Shows the hardware of a Linux host, and the resource providers that an agent would report. It needs no cloud. With --driver qemu it asks QEMU what guests' CPUs can have.",
  settings: {
    ...{ sysroot, json: setting(boolean, { about: "as JSON", default: "false" }), driver: driverSetting, ...others },
    ...{ qemu, accel, cpuModel, cpuModels, cpuModelExtraFlags },
  },
};

/** `berth host inspect`. */
export function runHostInspectCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const { machine, tree } = treeOfMachine(readMachine(settings), settings);
    const offers = settings.driver === "qemu" ? await cpuOffers(settings) : null;
    const ofCpus = offers === null ? [] : traitsOfOffers(offers);
    const reported = { ...tree, traits: [...new Set([...tree.traits, ...ofCpus])] };
    const shown = { ...machine, ...(offers !== null && { guestCpus: offers }), tree: reported };
    process.stdout.write(
      settings.json ? `${JSON.stringify(shown, null, 2)}\n` : inspectedHostText(machine, reported, offers ?? []),
    );
    return 0;
  });
}

/** What guests have with each CPU model on this machine, by QEMU's word. */
async function cpuOffers(
  settings: Pick<QemuSettings, "qemu" | "accel" | "cpuModel" | "cpuModels" | "cpuModelExtraFlags">,
): Promise<readonly CpuOffer[]> {
  const { qemu: program } = settings;
  const { accel: chosen } = settings.accel === "auto" ? await chooseAccel(program) : { accel: settings.accel };
  return guestCpuOffers({ program, accel: chosen, cpuModels: cpuModelsOf(settings, chosen) });
}
