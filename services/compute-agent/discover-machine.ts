import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { readHostFiles } from "../../adapters/sysfs/read-host-files.ts";
import { hostTree, type TreeOptions, type TreePlace } from "../../core/discovery/host-tree.ts";
import { type InspectedHost, inspectHost } from "../../core/discovery/inspect-host.ts";
import type { DeviceProvider } from "../../core/discovery/pci-providers.ts";
import type { TreeProvider } from "../../core/discovery/tree-provider.ts";
import { SettingsError } from "../../runtime/settings.ts";
import type { DiscoveryOptions } from "./discovery-settings.ts";
import type { DriverName } from "./driver-setting.ts";
import { mdevOffersOf } from "./mdev-offers-of.ts";

export type MachineOptions = DiscoveryOptions & { readonly driver: DriverName };

/**
 * Reads the files of the machine, or of a copy of one, as far as guests of the driver can use the machine. `before` is the machine as it was last
 * read. Throws a SettingsError when the sysroot is invalid. Cost: 15 to 60 ms.
 */
export function readMachine(
  { sysroot, instancesPath, driver }: MachineOptions,
  before: InspectedHost | null = null,
): InspectedHost {
  if (sysroot !== null && !["proc", "sys"].some((name) => existsSync(`${sysroot}/${name}`)))
    throw new SettingsError(
      `BERTH_SYSROOT (--sysroot) is ${JSON.stringify(sysroot)}: name a directory that contains proc or sys`,
    );
  return inspectHost(readHostFiles({ sysroot, instancesPath }), {
    // LXD's daemon starts the containers, in groups of their own. The guests of the other drivers are the agent's own processes.
    isGroupOfGuests: driver !== "lxd",
    groupBefore: before?.controlGroup,
  });
}

/** Makes the tree of the machine with the CPUs and devices behind it, and returns the machine with the tree's warnings added. Throws a SettingsError if a set of CPUs, or a type of mediated devices, cannot be used as told; but CPUs that a running agent loses are only left out. */
export function treeOfMachine(
  machine: InspectedHost,
  options: DiscoveryOptions,
  { isRunning = false }: { readonly isRunning?: boolean } = {},
): {
  readonly machine: InspectedHost;
  readonly tree: TreeProvider;
  readonly places: readonly TreePlace[];
  readonly devices: readonly DeviceProvider[];
} {
  const warnings = [...machine.warnings];
  const tree = hostTree(
    machine,
    { ...treeOptionsOf(options), leavesOutLostCpus: isRunning },
    (warning) => void warnings.push(warning),
  );
  if (tree.kind === "refused") throw new SettingsError(tree.reason);
  return { machine: { ...machine, warnings }, tree: tree.root, places: tree.places, devices: tree.devices };
}

function treeOptionsOf(options: DiscoveryOptions): TreeOptions {
  return {
    ...options,
    name: options.host ?? nameOf(options.sysroot),
    mdevOffers: mdevOffersOf(options),
    physicalNetworks: options.physicalNetworks ?? [],
    bandwidths: options.resourceProviderBandwidths ?? [],
  };
}

/** A sysroot does not contain its host's name, so the directory's name is used, reduced to the characters that host names allow. */
function nameOf(sysroot: string | null): string {
  if (sysroot === null) return hostname();
  const [last = ""] = sysroot
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .slice(-1);
  return last.replace(/[^A-Za-z0-9._-]/g, "-").slice(0, 200) || "host";
}
