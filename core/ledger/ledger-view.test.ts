import { describe, expect, it } from "vitest";
import fc from "../../test/rigs/property.ts";
import { aggregateUuid, providerUuid, resourceClass, trait } from "./ids.ts";
import { LedgerView } from "./ledger-view.ts";
import type { Inventory } from "./model.ts";
import type { RowChange } from "./row-change.ts";

const VCPU = resourceClass("VCPU");
const inventory = (total: number): Inventory => ({
  total,
  reserved: 0,
  minUnit: 1,
  maxUnit: total,
  stepSize: 1,
  allocationRatio: 1,
});

const putProvider = (uuid: string, root: string, parent: string | null): RowChange => ({
  kind: "provider-put",
  uuid: providerUuid(uuid),
  name: `name of ${uuid}`,
  parent: parent === null ? null : providerUuid(parent),
  root: providerUuid(root),
  generation: 3,
});
const putInventory = (provider: string, total: number, used: number): RowChange => ({
  kind: "inventory-put",
  provider: providerUuid(provider),
  resourceClass: VCPU,
  inventory: inventory(total),
  used,
});

const HOST_ROWS: readonly RowChange[] = [
  putProvider("root", "root", null),
  putProvider("child", "root", "root"),
  putInventory("root", 16, 4),
  putInventory("child", 8, 0),
  { kind: "trait-added", provider: providerUuid("root"), trait: trait("CUSTOM_A") },
  { kind: "trait-added", provider: providerUuid("child"), trait: trait("CUSTOM_B") },
  { kind: "aggregate-added", provider: providerUuid("root"), aggregate: aggregateUuid("agg") },
  { kind: "host-put", host: "h1", provider: providerUuid("root"), up: true, disabled: false },
];

/** The content of a view, without slot numbers. */
function contentOf(view: LedgerView) {
  const slots = view.slots;
  const roots = [...slots.roots.subarray(0, slots.rootCount)].map((slot) => slots.uuid(slot)).sort();
  const trees = roots.map((root) => view.tree(root).sort());
  return {
    trees,
    providers: trees.flat().map((uuid) => view.provider(uuid)),
    hosts: [...view.hosts.all()]
      .map(({ name, provider, up, disabled }) => ({ name, provider, up, disabled }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}
const viewOf = (changes: readonly RowChange[]): LedgerView => {
  const view = new LedgerView();
  view.applyAll(changes);
  return view;
};

describe("LedgerView", () => {
  it("shows the same whatever the order of a transaction's rows", () => {
    const expected = contentOf(viewOf(HOST_ROWS));
    expect(expected.providers).toHaveLength(2);
    fc.assert(
      fc.property(fc.shuffledSubarray([...HOST_ROWS], { minLength: HOST_ROWS.length }), (rows) => {
        expect(contentOf(viewOf(rows))).toEqual(expected);
      }),
    );
  });

  it("shows the same when rows come twice", () => {
    expect(contentOf(viewOf([...HOST_ROWS, ...HOST_ROWS]))).toEqual(contentOf(viewOf(HOST_ROWS)));
  });

  it("takes the later of two changes of one row", () => {
    const view = viewOf([...HOST_ROWS, putInventory("root", 16, 9)]);
    expect(view.provider(providerUuid("root"))?.inventories.get(VCPU)?.used).toBe(9);
    const column = view.column(VCPU)!;
    expect(column.free[view.slots.find(providerUuid("root"))]).toBe(7);
  });

  it("uses the slots of removed providers again", () => {
    const view = viewOf(HOST_ROWS);
    const capacity = view.slots.capacity;
    for (let round = 0; round < 1000; round += 1) {
      view.applyAll([putProvider(`p${round}`, `p${round}`, null), putInventory(`p${round}`, 4, 0)]);
      view.applyAll([
        { kind: "inventory-removed", provider: providerUuid(`p${round}`), resourceClass: VCPU },
        { kind: "provider-removed", uuid: providerUuid(`p${round}`) },
      ]);
    }
    expect(view.slots.capacity).toBe(capacity);
    expect(contentOf(view)).toEqual(contentOf(viewOf(HOST_ROWS)));
  });

  it("stores one set for a provider with many traits, and none that a provider had before", () => {
    const view = viewOf(HOST_ROWS);
    const before = { sets: view.traits.count, made: view.traits.revision, bytes: view.traits.memoryBytes };
    const names = Array.from({ length: 1_000 }, (_, at) => trait(`CUSTOM_${at}`));
    const rows = (kind: "trait-added" | "trait-removed", of: readonly string[]) =>
      names.flatMap((name) => of.map((uuid): RowChange => ({ kind, provider: providerUuid(uuid), trait: name })));
    view.applyAll(rows("trait-added", ["root", "child"]));
    expect(view.traits.revision - before.made).toBe(2);
    expect(view.traits.count - before.sets).toBeLessThanOrEqual(2);
    expect(view.traits.memoryBytes - before.bytes).toBeLessThan(400_000);
    for (const name of names) view.apply({ kind: "trait-removed", provider: providerUuid("child"), trait: name });
    view.applyAll(rows("trait-removed", ["root"]));
    expect(view.traits.count - before.sets).toBeLessThanOrEqual(2);
    expect(contentOf(view)).toEqual(contentOf(viewOf(HOST_ROWS)));
  });

  it("frees the columns of classes that no provider has any longer, and keeps claims reserved in the others", () => {
    const view = viewOf(HOST_ROWS);
    const root = providerUuid("root");
    const free = () => view.column(VCPU)!.free[view.slots.find(root)];
    const other = (at: number) => ({ ...{ provider: root, resourceClass: resourceClass(`CUSTOM_${at}`) }, amount: 1 });
    view.reserve("claim", [{ ...other(0), resourceClass: VCPU }, other(7)]);
    for (let at = 0; at < 50; at += 1) {
      view.applyAll([{ ...other(at), kind: "inventory-put", inventory: inventory(4), used: 0 }]);
      expect([...view.resourceClasses()]).toEqual([VCPU, other(at).resourceClass]);
      view.applyAll([{ ...other(at), kind: "inventory-removed" }]);
    }
    expect([[...view.resourceClasses()], free()]).toEqual([[VCPU], 11]);
    view.release("claim");
    expect(free()).toBe(12);
  });

  it("moves a tree's providers to a new root", () => {
    const view = viewOf([...HOST_ROWS, putProvider("other", "other", null), putProvider("child", "other", "other")]);
    expect(view.tree(providerUuid("root"))).toEqual(["root"]);
    expect(view.tree(providerUuid("other"))).toEqual(["other", "child"]);
  });

  it("subtracts a held claim from the free amount until it is released, whatever happens to the slots", () => {
    const view = viewOf(HOST_ROWS);
    const free = (uuid: string) => view.column(VCPU)!.free[view.slots.find(providerUuid(uuid))];
    view.reserve("claim", [
      { provider: providerUuid("root"), resourceClass: VCPU, amount: 5 },
      { provider: providerUuid("child"), resourceClass: VCPU, amount: 3 },
    ]);
    expect([free("root"), free("child")]).toEqual([7, 5]);
    view.apply(putInventory("root", 16, 9));
    expect(free("root")).toBe(2);
    view.apply({ kind: "provider-removed", uuid: providerUuid("child") });
    view.applyAll([putProvider("new", "root", "root"), putInventory("new", 8, 0)]);
    expect(free("new")).toBe(8);
    view.release("claim");
    view.release("claim");
    expect([free("root"), free("new"), view.reservedCount]).toEqual([7, 8, 0]);
  });

  it("keeps held claims through a reload", () => {
    const view = viewOf(HOST_ROWS);
    const layout = view.layout;
    view.adopt(viewOf([putProvider("new", "new", null)]));
    expect(view.layout).toBeGreaterThan(layout);
    expect(contentOf(view).trees).toEqual([["new"]]);
    const load = view.beginLoad();
    load.applyAll([putProvider("newer", "newer", null)]);
    expect(contentOf(view).trees).toEqual([["new"]]);
    load.show();
    expect(contentOf(view).trees).toEqual([["newer"]]);
  });

  it("agrees with a plain model under random changes", () => {
    const names = fc.constantFrom("a", "b", "c", "d");
    const change: fc.Arbitrary<RowChange> = fc.oneof(
      fc.tuple(names, names).map(([uuid, root]) => putProvider(uuid, root, uuid === root ? null : root)),
      names.map((uuid): RowChange => ({ kind: "provider-removed", uuid: providerUuid(uuid) })),
      fc.tuple(names, fc.integer({ min: 1, max: 9 })).map(([uuid, total]) => putInventory(uuid, total, 1)),
      names.map(
        (uuid): RowChange => ({ kind: "inventory-removed", provider: providerUuid(uuid), resourceClass: VCPU }),
      ),
      fc
        .tuple(fc.constantFrom("trait-added" as const, "trait-removed" as const), names, fc.constantFrom("X", "Y"))
        .map(([kind, uuid, name]): RowChange => ({ kind, provider: providerUuid(uuid), trait: trait(name) })),
      fc.tuple(names, fc.constantFrom("h1", "h2"), fc.boolean()).map(
        ([uuid, host, up]): RowChange => ({
          kind: "host-put",
          host,
          provider: providerUuid(uuid),
          up,
          disabled: false,
        }),
      ),
      fc.constantFrom("h1", "h2").map((host): RowChange => ({ kind: "host-removed", host })),
    );
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), fc.integer({ min: 1, max: 20 }), (changes, atATime) => {
        const view = new LedgerView();
        const model = new Map<string, { root: string; total: number | null; traits: Set<string> }>();
        const of = (uuid: string) => {
          const found = model.get(uuid) ?? { root: "", total: null, traits: new Set<string>() };
          model.set(uuid, found);
          return found;
        };
        for (let from = 0; from < changes.length; from += atATime) view.applyAll(changes.slice(from, from + atATime));
        for (const row of changes) {
          if (row.kind === "provider-put") of(row.uuid).root = row.root;
          if (row.kind === "provider-removed") model.delete(row.uuid);
          if (row.kind === "inventory-put") of(row.provider).total = row.inventory.total;
          if (row.kind === "inventory-removed") of(row.provider).total = null;
          if (row.kind === "trait-added") of(row.provider).traits.add(row.trait);
          if (row.kind === "trait-removed") of(row.provider).traits.delete(row.trait);
        }
        const known = [...model].filter(([, entry]) => entry.root !== "");
        expect(view.providerCount).toBe(known.length);
        expect(view.slots.rootCount).toBe(known.filter(([uuid, entry]) => entry.root === uuid).length);
        for (const [uuid, entry] of known) {
          const provider = view.provider(providerUuid(uuid))!;
          expect(provider.root).toBe(entry.root);
          expect(provider.inventories.get(VCPU)?.total ?? null).toBe(entry.total);
          expect([...provider.traits].sort()).toEqual([...entry.traits].sort());
        }
        // There are four sets of two names. More numbers come into use only while a batch replaces sets.
        expect(view.traits.count).toBeLessThanOrEqual(8);
      }),
    );
  });

  it("applies the lower free amount that a refused claim learned, until the inventory's next row arrives", () => {
    const view = new LedgerView();
    view.applyAll(HOST_ROWS);
    const column = view.column(VCPU)!;
    const slot = view.slots.find(providerUuid("root"));
    const shortfall = { provider: providerUuid("root"), resourceClass: VCPU, requested: 4, limit: 16 } as const;
    const unknown = { ...shortfall, provider: providerUuid("unknown"), reason: "capacity", used: 16 } as const;
    view.learnShortfalls([unknown, { ...shortfall, reason: "capacity", used: 14 }]);
    expect([column.free[slot], column.used[slot], column.capacity(slot)]).toEqual([2, 14, 16]);
    view.learnShortfalls([
      { ...shortfall, reason: "capacity", used: 3 },
      { ...shortfall, reason: "max_unit", used: 16 },
    ]);
    expect(column.free[slot]).toBe(2);
    view.apply(putInventory("root", 16, 5));
    expect([column.free[slot], column.used[slot]]).toEqual([11, 5]);
  });
});
