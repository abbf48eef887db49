import type { ShownHost, ShownInventory, ShownProvider } from "./host-answer.ts";

const BAR_WIDTH = 24;

/**
 * Draws a host's tree of providers. Below each provider a bar for each class shows what is used (█), what is free (·), and what is reserved (░).
 * For a class whose ratio is not 1, all amounts are in units that may be allocated.
 */
export function hostTreeText({ tree, inventories }: Pick<ShownHost, "tree" | "inventories">): string {
  const children = Map.groupBy(tree.providers, ({ parent }) => parent);
  const classWidth = Math.max(0, ...inventories.map((one) => one.resource_class.length));
  const lines = (provider: ShownProvider, first: string, rest: string): readonly string[] => {
    const below = children.get(provider.uuid) ?? [];
    const own = inventories.filter((one) => one.provider === provider.name);
    const margin = `${rest}${below.length > 0 ? "│" : " "}  `;
    return [
      `${first}${titleOf(provider)}`,
      ...own.map((one) => `${margin}${one.resource_class.padEnd(classWidth)}  ${barOf(one)}  ${sumsOf(one)}`),
      ...(provider.traits.length > 0 ? [`${margin}${provider.traits.join(" ")}`] : []),
      ...below.flatMap((child, index) => {
        const isLast = index === below.length - 1;
        return lines(child, `${rest}${isLast ? "└─ " : "├─ "}`, `${rest}${isLast ? "   " : "│  "}`);
      }),
    ];
  };
  const drawn = (children.get(null) ?? []).flatMap((root) => lines(root, "", ""));
  return drawn.map((line) => `${line.trimEnd()}\n`).join("");
}

function titleOf({ name, owner, changed_at: changedAt }: ShownProvider): string {
  const words = [
    ...(owner === "agent" ? [] : ["not the agent's"]),
    ...(changedAt === null ? [] : [`changed ${changedAt}`]),
  ];
  return words.length === 0 ? name : `${name} (${words.join(", ")})`;
}

function barOf(inventory: ShownInventory): string {
  const whole = Math.max(inventory.total * inventory.allocation_ratio, inventory.used, 1);
  const cells = (amount: number) => Math.round((Math.max(0, amount) / whole) * BAR_WIDTH);
  // A small use must still be visible in the bar.
  const used = inventory.used > 0 ? Math.max(1, cells(inventory.used)) : 0;
  const free = Math.min(BAR_WIDTH - used, cells(inventory.capacity - inventory.used));
  return `${"█".repeat(used)}${"·".repeat(free)}${"░".repeat(BAR_WIDTH - used - free)}`;
}

function sumsOf({ used, capacity, total, reserved, allocation_ratio: ratio }: ShownInventory): string {
  const from = ratio === 1 && reserved === 0 ? "" : ` (total ${total}, reserved ${reserved}, ratio ${ratio})`;
  return `${used} of ${capacity} used${from}${used > capacity ? "  OVER CAPACITY: closed for new servers" : ""}`;
}
