import { describe, expect, it } from "vitest";
import fc from "../../test/rigs/property.ts";
import { host, provider, viewOf } from "../../test/rigs/view-builders.ts";
import { ChangedRoots } from "./changed-roots.ts";
import { aggregateUuid, providerUuid, resourceClass, trait } from "./ids.ts";
import type { LedgerView } from "./ledger-view.ts";
import type { RowChange } from "./row-change.ts";

/** The roots that changed since the mark, or "all". */
function since(changes: ChangedRoots, mark: number): number[] | "all" {
  const roots: number[] = [];
  return changes.since(mark, (root) => roots.push(root)) ? roots : "all";
}

describe("ChangedRoots", () => {
  it('reports to each reader every root that changed since its mark, or "all" after too many changes', () => {
    const steps = fc.array(fc.oneof(fc.nat({ max: 3 }), fc.constantFrom("mark" as const, "all" as const)));
    fc.assert(
      fc.property(steps, (taken) => {
        const changes = new ChangedRoots(4);
        const readers: { mark: number; roots: Set<number>; all: boolean }[] = [];
        for (const step of taken) {
          if (step === "mark") readers.push({ mark: changes.mark(), roots: new Set(), all: false });
          else if (step === "all") changes.touchAll();
          else changes.touch(step);
          for (const reader of readers) {
            if (step === "all") reader.all = true;
            else if (typeof step === "number") reader.roots.add(step);
          }
        }
        for (const { mark, roots, all } of readers) {
          const told = since(changes, mark);
          if (all) expect(told).toBe("all");
          else if (told !== "all") expect(new Set(told)).toEqual(roots);
        }
      }),
    );
  });

  it("remembers as many changes while its room grows, also after everything has changed", () => {
    const changes = new ChangedRoots(1_000);
    for (let round = 0; round < 3; round += 1) {
      const mark = changes.mark();
      const roots = Array.from({ length: 700 }, (_, root) => root + round);
      for (const root of roots) changes.touch(root);
      expect(since(changes, mark)).toEqual(roots);
      changes.touchAll();
      expect(since(changes, mark)).toBe("all");
    }
  });

  it("remembers exactly the given number of changes", () => {
    const changes = new ChangedRoots(4);
    const mark = changes.mark();
    for (const root of [1, 1, 2, 3, 4]) changes.touch(root);
    expect(since(changes, mark)).toEqual([1, 2, 3, 4]);
    changes.touch(5);
    expect(since(changes, mark)).toBe("all");
  });
});

describe("a view's changed roots", () => {
  const tree = () =>
    viewOf(
      provider("other", { VCPU: 1 }),
      provider("root", { VCPU: 8 }),
      provider("child", { VGPU: 1 }, { parent: "root" }),
      host("h", "root"),
    );
  const changed = (view: LedgerView, change: (view: LedgerView) => void): string[] | "all" => {
    const mark = view.changes.mark();
    change(view);
    const roots = since(view.changes, mark);
    return roots === "all" ? roots : [...new Set(roots)].map((root) => view.slots.uuid(root));
  };
  const child = providerUuid("child");
  const inventory = { total: 2, reserved: 0, minUnit: 1, maxUnit: 2, stepSize: 1, allocationRatio: 1 };
  const rows: [string, RowChange][] = [
    [
      "an inventory",
      { kind: "inventory-put", provider: child, resourceClass: resourceClass("VGPU"), inventory, used: 1 },
    ],
    ["an inventory's end", { kind: "inventory-removed", provider: child, resourceClass: resourceClass("VGPU") }],
    ["a trait", { kind: "trait-added", provider: child, trait: trait("X") }],
    ["an aggregate", { kind: "aggregate-added", provider: child, aggregate: aggregateUuid("A") }],
    ["a host", { kind: "host-put", host: "h", provider: providerUuid("root"), up: false, disabled: false }],
    ["a host's end", { kind: "host-removed", host: "h" }],
    ["a provider's end", { kind: "provider-removed", uuid: child }],
  ];
  it.each(rows)("name the root for %s", (_, row) => {
    expect(changed(tree(), (view) => view.apply(row))).toContain("root");
    expect(changed(tree(), (view) => view.apply(row))).not.toContain("other");
  });

  it("name the tree that a provider leaves and the one that it joins", () => {
    const moved = changed(tree(), (view) => view.applyAll(provider("child", {}, { parent: "other" })));
    expect(new Set(moved)).toEqual(new Set(["root", "other"]));
  });

  it("name the roots of held and released claims, and of hosts that `touch` names", () => {
    const view = tree();
    const items = [{ provider: child, resourceClass: resourceClass("VGPU"), amount: 1 }];
    expect(changed(view, () => view.reserve("claim", items))).toEqual(["root"]);
    expect(changed(view, () => view.release("claim"))).toEqual(["root"]);
    expect(changed(view, () => view.touch(view.hosts.slotOf("h")))).toEqual(["root"]);
    expect(changed(view, () => view.touchAll())).toBe("all");
    expect(changed(view, () => view.adopt(tree()))).toBe("all");
  });
});
