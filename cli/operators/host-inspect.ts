import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { readHostFiles } from "../../adapters/sysfs/read-host-files.ts";
import { hostTree, type TreeOptions } from "../../core/discovery/host-tree.ts";
import { type InspectedHost, inspectHost } from "../../core/discovery/inspect-host.ts";
import { parseCpuSet } from "../../core/discovery/parse-cpu-set.ts";
import type { TreeProvider } from "../../core/discovery/tree-provider.ts";
import { boolean, integer, type Kind, listOf, text } from "../../runtime/setting-kinds.ts";
import { optional, SettingsError, setting } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { inspectedHostText } from "./print-inspected-host.ts";

const cpuSet: Kind<readonly number[]> = {
  allowed: "CPUs as 0-7,^3 (a number, a range, or ^ before what is left out)",
  placeholder: "CPUS",
  parse: (given) => parseCpuSet(given) ?? undefined,
};
const megabytes = integer({ min: 0, max: 2 ** 31 - 1 });
const device: Kind<string> = {
  allowed: "VENDOR:PRODUCT or an address, as 8086:1572 or 0000:3b:00.0",
  placeholder: "DEVICE",
  parse: (given) =>
    /^([0-9a-f]{4}:[0-9a-f]{4}|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$/i.test(given)
      ? given.toLowerCase()
      : undefined,
};

const declaration = {
  command: "berth host inspect",
  about: "Shows what a Linux host has, and the resource providers that it would report. It asks no cloud.",
  settings: {
    sysroot: optional(text(), {
      about: "read a copy of a host's /proc and /sys below this directory, not this machine's",
    }),
    json: setting(boolean, { about: "as JSON", default: "false" }),
    flat: setting(boolean, { about: "CPU and memory in the root provider, not by NUMA node", default: "false" }),
    host: optional(text({ pattern: /^[A-Za-z0-9._-]{1,200}$/, allowed: "letters, digits, dots, - and _" }), {
      about: "name of the root provider; otherwise this machine's name, or that of the sysroot's directory",
    }),
    cpuSharedSet: optional(cpuSet, { about: "CPUs that guests share (VCPU)" }),
    cpuDedicatedSet: optional(cpuSet, { about: "CPUs that guests have for themselves (PCPU)" }),
    reservedHostCpus: setting(megabytes, { about: "VCPU that are kept for the host", default: "0" }),
    reservedHostMemoryMb: setting(megabytes, { about: "MEMORY_MB that are kept for the host", default: "512" }),
    reservedHostDiskMb: setting(megabytes, { about: "MiB of DISK_GB that are kept for the host", default: "0" }),
    instancesPath: setting(text(), {
      about: "directory of the guests' disks, whose file system is DISK_GB",
      default: "/",
    }),
    pciDevices: optional(listOf(device), {
      about: "devices for guests; otherwise virtual functions, and accelerators without a display",
    }),
    enabledMdevTypes: optional(listOf(text()), {
      about: "types of mediated devices for guests, the preferred one first",
    }),
  },
};

/** `berth host inspect`. */
export function runHostInspectCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const { sysroot, instancesPath } = settings;
    if (sysroot !== null && !["proc", "sys"].some((name) => existsSync(`${sysroot}/${name}`)))
      throw new SettingsError(
        `sysroot is ${JSON.stringify(sysroot)}: it must be a directory that has proc or sys in it`,
      );
    const host = inspectHost(readHostFiles({ sysroot, instancesPath }));
    const { inspected, tree } = withTree(host, {
      ...settings,
      name: settings.host ?? nameOf(sysroot),
      enabledMdevTypes: settings.enabledMdevTypes ?? [],
    });
    const shown = { ...inspected, tree };
    process.stdout.write(settings.json ? `${JSON.stringify(shown, null, 2)}\n` : inspectedHostText(inspected, tree));
    return 0;
  });
}

/** Returns the host with the warnings of its tree. Throws a SettingsError if a set of CPUs cannot be used on this host. */
function withTree(
  host: InspectedHost,
  options: TreeOptions,
): { readonly inspected: InspectedHost; readonly tree: TreeProvider } {
  const warnings = [...host.warnings];
  const tree = hostTree(host, options, (warning) => void warnings.push(warning));
  if (tree.kind === "refused") throw new SettingsError(tree.reason);
  return { inspected: { ...host, warnings }, tree: tree.root };
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
