import type { InventoryColumn } from "../../ledger/inventory-column.ts";
import { resourceClassPattern } from "./resource-class-pattern.ts";
import type { RelativeWeigher } from "./weigher.ts";
import type { WeigherSettings } from "./weigher-settings.ts";

const isPciClass = resourceClassPattern(/^CUSTOM_PCI_/);
/** A host with more free devices than this is as good as any other. */
const DEVICES_MAX = 100;

/**
 * Prefers hosts with fewer free PCI devices: servers without devices avoid them, and servers with devices fill one host after the other
 * (Nova's PCIWeigher). Devices are inventories of classes CUSTOM_PCI_… and of those that PCI aliases name.
 */
export function pci({ pciAliases }: Pick<WeigherSettings, "pciAliases">): RelativeWeigher {
  const aliased = new Set(Object.values(pciAliases));
  return {
    name: "pci",
    kind: "relative",
    weigh({ request: { view }, roots, count }, weights, offset) {
      const columns: Readonly<InventoryColumn>[] = [];
      for (const name of view.resourceClasses())
        if (isPciClass(name) || aliased.has(name)) columns.push(view.column(name)!);
      if (columns.length === 0) return false;
      for (let index = 0; index < count; index += 1) {
        const root = roots[index]!;
        let free = 0;
        for (const column of columns) {
          free += Math.max(0, column.free[root]!);
          for (const slot of view.slots.descendants(root)) free += Math.max(0, column.free[slot]!);
        }
        weights[offset + index] = DEVICES_MAX - Math.min(free, DEVICES_MAX - 1);
      }
      return true;
    },
  };
}
