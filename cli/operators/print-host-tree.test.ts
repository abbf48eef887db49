import { expect, test } from "vitest";
import type { ShownInventory, ShownProvider } from "./host-answer.ts";
import { hostTreeText } from "./print-host-tree.ts";

const provider = (name: string, parent: string | null, rest: Partial<ShownProvider> = {}): ShownProvider => ({
  ...{ uuid: name, name, parent, traits: [], owner: "agent", changed_at: null },
  ...rest,
});
const inventory = (
  of: string,
  resourceClass: string,
  [used, total, reserved, ratio]: readonly [number, number, number, number],
): ShownInventory => ({
  ...{ provider: of, resource_class: resourceClass, total, reserved, used, allocation_ratio: ratio },
  ...{ capacity: Math.floor((total - reserved) * ratio), ratio_source: "agent", reported_ratio: null },
});

test("draws a tree with bars, traits, other owners, and classes over capacity", () => {
  const tree = {
    notes: [],
    providers: [
      provider("h", null, { traits: ["CUSTOM_GOLD"] }),
      provider("h_numa0", "h", { traits: ["HW_NUMA_ROOT"], changed_at: "2026-01-02T03:04:05Z" }),
      provider("h_numa0_gpu", "h_numa0"),
      provider("licenses", "h", { owner: "other" }),
    ],
  };
  const inventories = [
    inventory("h", "DISK_GB", [0, 12, 6, 1]),
    inventory("h_numa0", "VCPU", [8, 8, 0, 2]),
    inventory("h_numa0_gpu", "VGPU", [1, 4, 4, 1]),
    inventory("licenses", "CUSTOM_LICENSE", [1, 1000, 0, 1]),
  ];
  expect(`\n${hostTreeText({ tree, inventories })}`).toBe(`
h
│  DISK_GB         ············░░░░░░░░░░░░  0 of 6 used (total 12, reserved 6, ratio 1)
│  CUSTOM_GOLD
├─ h_numa0 (changed 2026-01-02T03:04:05Z)
│  │  VCPU            ████████████············  8 of 16 used (total 8, reserved 0, ratio 2)
│  │  HW_NUMA_ROOT
│  └─ h_numa0_gpu
│        VGPU            ██████░░░░░░░░░░░░░░░░░░  1 of 0 used (total 4, reserved 4, ratio 1)  OVER CAPACITY: closed for new servers
└─ licenses (not the agent's)
      CUSTOM_LICENSE  █·······················  1 of 1000 used
`);
});
