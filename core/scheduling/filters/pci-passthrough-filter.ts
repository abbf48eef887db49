import type { SchedulingSettings } from "../scheduling-settings.ts";
import { sumOfClass } from "./host-attributes.ts";
import type { HostFilter } from "./host-filter.ts";

/** The extra spec that requests PCI devices. */
export const PCI_ALIAS_SPEC = "pci_passthrough:alias";

/**
 * Passes hosts with as many free devices as the flavor's `pci_passthrough:alias` (`gpu:1,nic:2`) requests. Devices are inventories with a
 * class for each kind; see `pciClassOf`.
 */
export function pciPassthroughFilter({ pciAliases }: SchedulingSettings): HostFilter {
  return {
    name: "PciPassthroughFilter",
    decidedBy: "kind",
    reads: ["flavor"],
    isForAllCells: true,
    bind({ flavor }, { view }) {
      const wanted = devicesWanted(flavor?.extraSpecs[PCI_ALIAS_SPEC] ?? "", pciAliases);
      if (wanted === null) return () => "the flavor's PCI alias is not valid";
      if (wanted.size === 0) return null;
      return ({ root }) => {
        for (const [name, count] of wanted)
          if (sumOfClass(view, root, name).free < count) return "without free PCI devices";
        return null;
      };
    },
  };
}

/** The resource class of a PCI alias: the one in the setting, or one made from the alias's name. */
export function pciClassOf(alias: string, pciAliases: Readonly<Record<string, string>>): string {
  return pciAliases[alias] ?? `CUSTOM_PCI_${alias.toUpperCase().replace(/[^A-Z0-9_]/g, "_")}`;
}

/** Number of devices by class, or null when the text cannot be parsed. */
export function devicesWanted(
  text: string,
  pciAliases: Readonly<Record<string, string>>,
): ReadonlyMap<string, number> | null {
  const wanted = new Map<string, number>();
  for (const part of text.split(",").filter((item) => item.trim() !== "")) {
    const [, alias, count] = /^\s*([^:,\s]+):(\d{1,4})\s*$/.exec(part) ?? [];
    if (alias === undefined) return null;
    const name = pciClassOf(alias, pciAliases);
    wanted.set(name, (wanted.get(name) ?? 0) + Number(count));
  }
  return wanted;
}
