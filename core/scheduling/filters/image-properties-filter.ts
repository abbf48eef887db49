import type { HostFacts } from "../host-facts.ts";
import type { SchedulingSettings } from "../scheduling-settings.ts";
import type { HostFilter } from "./host-filter.ts";

const ARCHITECTURES: Readonly<Record<string, string>> = {
  i386: "i686",
  i486: "i686",
  i586: "i686",
  x86: "i686",
  x86_32: "i686",
  amd64: "x86_64",
};
const HYPERVISORS: Readonly<Record<string, string>> = { xapi: "xen" };
const VM_MODES: Readonly<Record<string, string>> = { pv: "xen", hv: "hvm", baremetal: "hvm" };

/**
 * Passes hosts that support the image's requirements: architecture (`hw_architecture`), hypervisor (`img_hv_type`) and its version
 * (`img_hv_requested_version`, like `>=6.0,<8`), VM mode (`hw_vm_mode`), address bits (`hw_maxphysaddr_bits`).
 */
export function imagePropertiesFilter({ imagePropertiesDefaultArchitecture }: SchedulingSettings): HostFilter {
  return {
    name: "ImagePropertiesFilter",
    decidedBy: "kind",
    reads: ["image"],
    isForAllCells: true,
    bind({ imageProperties }) {
      const asked = [
        canonical(imageProperties["hw_architecture"] || imagePropertiesDefaultArchitecture, ARCHITECTURES),
        canonical(imageProperties["img_hv_type"], HYPERVISORS),
        canonical(imageProperties["hw_vm_mode"], VM_MODES),
      ].filter((property) => property !== "");
      if (asked.length === 0) return null;
      const versions = versionRules(imageProperties["img_hv_requested_version"]);
      const bits = Number(imageProperties["hw_maxphysaddr_bits"] ?? 0);
      return (host) => {
        const supported = host.hypervisor.supportedInstances;
        if (!supported.some((kinds) => asked.every((kind) => kinds.includes(kind))))
          return "does not support the image";
        if (!versions(host.hypervisor.version)) return "has another hypervisor version than the image requires";
        return hasBits(host, bits) ? null : "addresses less memory than the image requires";
      };
    },
  };
}

function canonical(value: string | undefined, names: Readonly<Record<string, string>>): string {
  const lower = (value ?? "").toLowerCase();
  return names[lower] ?? lower;
}

/** Reads the version rules of an image. Without rules every version matches, and a rule that cannot be parsed matches none. */
function versionRules(text: string | undefined): (version: number) => boolean {
  if (text === undefined || text === "") return () => true;
  const rules = text.split(",").map((rule) => /^\s*(<=|>=|<|>|!=|==)\s*(\d+(?:\.\d+)*)\s*$/.exec(rule));
  return (version) =>
    version === 0 ||
    rules.every((rule) => {
      const difference = version - versionNumber(rule?.[2] ?? "");
      switch (rule?.[1]) {
        case "<=":
          return difference <= 0;
        case ">=":
          return difference >= 0;
        case "<":
          return difference < 0;
        case ">":
          return difference > 0;
        case "!=":
          return difference !== 0;
        case "==":
          return difference === 0;
        default:
          return false;
      }
    });
}

/** Turns a version into a comparable number: 6.2 becomes 6002000. */
function versionNumber(text: string): number {
  const [major = 0, minor = 0, patch = 0] = text.split(".").map(Number);
  return major * 1_000_000 + minor * 1_000 + patch;
}

function hasBits(host: HostFacts, asked: number): boolean {
  const address = host.hypervisor.cpuInfo["maxphysaddr"];
  const bits = address !== null && typeof address === "object" && "bits" in address ? address.bits : undefined;
  return asked === 0 || typeof bits !== "number" || bits >= asked;
}
