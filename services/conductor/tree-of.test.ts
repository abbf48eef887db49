import { expect, test } from "vitest";
import { mergeReport } from "../../core/ledger/merge-report.ts";
import type { InventoryReport, TreeReport } from "../../proto/gen/berth/agent.ts";
import { derivedProviderUuid } from "../../runtime/derived-provider-uuid.ts";
import { foreignRoot, treeOfReport, verdictOn } from "./tree-of.ts";

const uuid = "00000000-0000-4000-8000-000000000001";
const inventory = { total: 8, reserved: 0, minUnit: 1, maxUnit: 8, stepSize: 1, allocationRatio: 1 };
const report = (change: Partial<InventoryReport>, id = uuid): TreeReport => ({
  host: "h",
  rootProvider: id,
  providers: [
    { uuid: id, name: "h", parent: "", inventories: { VCPU: { ...inventory, ...change } }, traits: ["CUSTOM_A"] },
  ],
  revision: 1,
  hypervisor: undefined,
});

function renamed(name: string): TreeReport {
  return { ...report({}), providers: report({}).providers.map((provider) => ({ ...provider, name })) };
}

function traits(...names: string[]): TreeReport["providers"] {
  return report({}).providers.map((provider) => ({ ...provider, traits: names }));
}

/** Three providers that offer so many different classes together, some of them all three. */
function offering(classes: number): TreeReport["providers"] {
  const names = Array.from({ length: classes }, (_, at) => `CUSTOM_C${at}`);
  const inventoriesOf = (index: number) => names.filter((_, at) => at < 20 || at % 3 === index);
  return chain(3).map((provider, index) => ({
    ...provider,
    inventories: Object.fromEntries(inventoriesOf(index).map((name) => [name, inventory])),
  }));
}

/** A tree with a provider below its root. */
function below(name: string, id: string): TreeReport {
  const [root] = report({}).providers;
  return { ...report({}), providers: [root!, { ...root!, uuid: id, name, parent: uuid }] };
}

/** Providers each of which is below the one before. */
function chain(length: number): TreeReport["providers"] {
  const uuidOf = (index: number) => `00000000-0000-4000-8000-${String(index + 1).padStart(12, "0")}`;
  return Array.from({ length }, (_, index) => ({
    ...{ uuid: uuidOf(index), name: index === 0 ? "h" : `h_${index}`, traits: [] },
    ...{ parent: index === 0 ? "" : uuidOf(index - 1), inventories: {} },
  }));
}

test("accepts the deepest tree that is small enough, and it can be merged and removed again", () => {
  const tree = treeOfReport({ ...report({}), providers: chain(1_000) });
  if ("refused" in tree) throw new Error(tree.refused);
  const none = { reported: new Map(), kept: [], ratios: new Map(), displacedRatio: () => undefined };
  const first = mergeReport(tree, { ...none, providers: [] });
  if (first.kind !== "merged") throw new Error(first.kind);
  const providers = first.tree.providers.map((spec) => ({
    ...{ uuid: spec.uuid, name: spec.name, parent: spec.parent, root: tree.root, generation: 0 },
    ...{ inventories: new Map(), traits: spec.traits, aggregates: new Set<never>() },
  }));
  const alone = { root: tree.root, providers: tree.providers.slice(0, 1) };
  const second = mergeReport(alone, { ...none, providers, reported: first.reported });
  expect(second).toMatchObject({ kind: "merged", tree: { providers: [{ uuid: tree.root }] } });
});

test("accepts as many traits of a provider and classes of a host as there may be", () => {
  const [root, ...below] = offering(100);
  const full = { ...root!, traits: Array.from({ length: 1_000 }, (_, at) => `CUSTOM_${at}`) };
  const tree = treeOfReport({ ...report({}), providers: [full, ...below] });
  expect(tree).toMatchObject({ root: uuid, providers: [{ traits: { size: 1_000 } }, {}, {}] });
});

test("names the classes whose ratio is an initial one, and keeps that word out of the inventories", () => {
  const tree = treeOfReport(report({ allocationRatio: 4, isInitialRatio: true }));
  if ("refused" in tree) throw new Error(tree.refused);
  const [root] = tree.providers;
  expect([...root!.initialRatios!]).toEqual(["VCPU"]);
  expect(Object.fromEntries(root!.inventories)).toEqual({ VCPU: { ...inventory, allocationRatio: 4 } });
});

test("shows only the beginning of a long name", () => {
  const refused = treeOfReport(renamed("x".repeat(1_000_000)));
  expect(JSON.stringify(refused).length).toBeLessThan(500);
});

test("accepts a report as the tree of the agent", () => {
  expect(treeOfReport(report({}))).toMatchObject({ root: uuid, providers: [{ parent: null, expected: "any" }] });
});

test.each([
  ["no UUID", report({}, "h1"), "is not a UUID"],
  ["a total of nothing", report({ total: 0 }), "the inventory of VCPU is out of range: total is 0"],
  ["a fraction", report({ maxUnit: 1.5 }), "max_unit is 1.5"],
  [
    "more reserved than there is",
    report({ reserved: 9 }),
    "reserved is 9, and must be an integer from 0 to the total, 8",
  ],
  ["a ratio of zero", report({ allocationRatio: 0 }), "allocation_ratio is 0"],
  ["a ratio with which no capacity can be computed", report({ allocationRatio: 1e300 }), "out of range"],
  ["a total that no database keeps", report({ total: 2 ** 31 }), "out of range"],
  ["a negative total", report({ total: -8 }), "out of range"],
  ["more providers than a host has", { ...report({}), providers: chain(1_001) }, "1001 providers"],
  [
    "more traits than a host has",
    { ...report({}), providers: traits(...Array.from({ length: 20_001 }, (_, at) => `CUSTOM_${at}`)) },
    "20002 inventories and traits",
  ],
  [
    "more traits than a provider has",
    { ...report({}), providers: traits(...Array.from({ length: 1_001 }, (_, at) => `CUSTOM_${at}`)) },
    'provider "h" has 1001 traits, and a provider has 1000 at most',
  ],
  [
    "more resource classes than a host has",
    { ...report({}), providers: offering(101) },
    "101 different resource classes",
  ],
  ["a host's name that no database keeps", { ...report({}), host: "h\u0000" }, "is not the name of a host"],
  ["a root that is named after another host", renamed("h2"), "it must have the name of its host, h"],
  [
    "a provider below the root that has the name of a host",
    below("h2", "00000000-0000-4000-8000-000000000002"),
    'provider "h2" must have a name that begins with "h_"',
  ],
  [
    "a provider whose name only begins like the host's",
    below("h2_gpu", "00000000-0000-4000-8000-000000000002"),
    'must have a name that begins with "h_"',
  ],
  [
    "a provider with the UUID that another host's root gets",
    below("h_gpu", derivedProviderUuid("h2")),
    "is derived from another name",
  ],
  ["a list without its root", { ...report({}), rootProvider: "nonsense" }, "lacks its root provider"],
  ["a provider without a name", renamed(""), "is not the name of a provider"],
  ["a provider's name that no database keeps", renamed("h\u0000"), "is not the name of a provider"],
  [
    "a trait that none may have",
    { ...report({}), providers: traits("CUSTOM_A\u0000") },
    "is not a resource class or trait",
  ],
])("refuses %s", (_, given, why) => {
  expect(treeOfReport(given)).toEqual({ refused: expect.stringContaining(why) });
});

test.each([
  ["a UUID of its own", "h_gpu", "00000000-0000-4000-8000-000000000002"],
  ["the UUID that belongs to its name", "h_numa0_gpu", derivedProviderUuid("h_numa0_gpu")],
  ["the UUID that it has in a flat tree", "h_numa0_gpu_1", derivedProviderUuid("h_gpu_1")],
])("accepts a provider below the root with %s", (_, name, id) => {
  expect(treeOfReport(below(name, id))).toMatchObject({ providers: [{}, { name, uuid: id }] });
});

test("a new root may have the UUID that is derived from the name of its own host, and of no other", () => {
  const unknown = { name: null, hosts: [] };
  expect(foreignRoot(report({}, derivedProviderUuid("h")), unknown)).toBeNull();
  expect(foreignRoot(report({}, derivedProviderUuid("h2")), unknown)).toContain("the name of another host");
  // Such a root of an older version stays.
  expect(foreignRoot(report({}, derivedProviderUuid("h2")), { name: "h", hosts: ["h"] })).toBeNull();
});

test("describes why the ledger refused a tree, or which resources it keeps", () => {
  const provider = uuid as never;
  expect(verdictOn({ kind: "in-use", provider, resourceClass: "VCPU" as never }, null)).toEqual({
    refused: expect.stringContaining("still use VCPU"),
  });
  expect(verdictOn({ kind: "name-taken", provider, name: "host-7" }, null)).toEqual({
    refused: expect.stringMatching(
      /cannot be named "host-7", because another provider .* a device of another host.* rename or delete/,
    ),
  });
  expect(verdictOn({ kind: "unchanged", kept: [] }, null)).toEqual({ kept: [] });
  const kept = [{ provider, name: "gpu", resourceClass: "PGPU" as never, used: 1, capacity: null, byReport: true }];
  expect(verdictOn({ kind: "replaced", kept }, null)).toEqual({
    kept: [expect.stringContaining("PGPU of provider gpu")],
  });
  expect(verdictOn({ kind: "reshape-refused", why: "it is full" }, null)).toEqual({
    kept: [expect.stringContaining("it is full")],
  });
});

test("a host that is closed for a reason of its own gives the reason once, and not its use of each class", () => {
  const used = { provider: uuid as never, name: "h", used: 3, byReport: true };
  const [vcpu, memory, gpu] = ["VCPU", "MEMORY_MB", "PGPU"].map((name) => ({ ...used, resourceClass: name as never }));
  const kept = [
    { ...vcpu!, capacity: 0 },
    { ...memory!, capacity: 0 },
    { ...gpu!, capacity: null },
  ];
  expect(
    verdictOn({ kind: "replaced", kept }, "the directory of guests /g has not answered for 15 s or longer"),
  ).toEqual({
    kept: [
      "the host takes no new servers, and what its servers use is kept: the directory of guests /g has not answered for 15 s or longer",
      expect.stringContaining("PGPU of provider h is no longer offered"),
    ],
  });
  const full = [{ ...vcpu!, capacity: 2 }];
  const overCapacity = expect.stringContaining("VCPU of provider h is over capacity, 3 of 2 are in use");
  for (const reason of ["it is closed", null])
    expect(verdictOn({ kind: "replaced", kept: full }, reason)).toEqual({ kept: [overCapacity] });
});

test.each([
  ["a provider that nobody knows", { name: null, hosts: [] }, null],
  ["the host's own root", { name: "h", hosts: ["h"] }, null],
  ["the host's own root, renamed by an operator", { name: "h.example", hosts: ["h"] }, null],
  ["a provider of the host's name that was imported", { name: "h", hosts: [] }, null],
  ["another host's root", { name: "h2", hosts: ["h2"] }, "is the root of host h2"],
  ["another host's root of this host's name", { name: "h", hosts: ["h2"] }, "is the root of host h2"],
  ["the root of both", { name: "h", hosts: ["h", "h2"] }, "is the root of host h2"],
  [
    "a provider that an operator made for something else",
    { name: "shared disk", hosts: [] },
    'is "shared disk" in the',
  ],
])("whether a report may bring %s", (_, known, why) => {
  const refused = foreignRoot(report({}), known);
  if (why === null) expect(refused).toBeNull();
  else expect(refused).toContain(why);
});
