import { describe, expect, it } from "vitest";
import { aggregate, sceneOf, specWith } from "../../../test/rigs/facts-builders.ts";
import { settingsOf } from "../../../test/rigs/filter-cases.ts";
import { CellFilters } from "./cell-filters.ts";
import { FILTER_NAMES, type FilterName } from "./filter-names.ts";
import { guardFilter } from "./guard-filter.ts";
import type { HostFilter } from "./host-filter.ts";
import { hostFilters } from "./host-filters.ts";

const settings = (enabled: string) =>
  settingsOf({
    ...{ enabled_filters: enabled, isolated_hosts: "a", isolated_images: "isolated", metrics_required: "true" },
    ...{ metrics_weight_setting: "heat=1" },
  });
const METADATA = { filter_tenant_id: "p2", instance_type: "big", hw_x: "1", max_io_ops_per_host: "1", ssd: "true" };
/** Cells that differ in all facts on which a filter may depend. */
const CELLS = [
  sceneOf({ a: {} }),
  sceneOf({ a: { up: false }, b: {} }, [aggregate(1, METADATA, ["b"])]),
  sceneOf({ c: { servers: [specWith(1, { projectId: "p2" })], builds: [specWith(2)] } }),
  sceneOf({}),
];
/** Requests to which different filters apply. */
const SPECS = [
  specWith(9),
  specWith(9, { availabilityZone: "z" }),
  specWith(9, { imageRef: "isolated", imageProperties: { hw_architecture: "x86_64", hw_x: "2" } }),
  specWith(9, { extraSpecs: { ssd: "true", "capabilities:cpu_info:arch": "x86_64" } }),
  specWith(9, { extraSpecs: { "hw:numa_nodes": "2", "pci_passthrough:alias": "gpu:1" } }),
  specWith(9, { extraSpecs: { "pci_passthrough:alias": "gpu" } }),
  specWith(9, { forcedHost: "a" }),
];
const kindNames = (filters: readonly HostFilter[], cells: typeof CELLS, spec = SPECS[0]!) =>
  new CellFilters(filters, spec, cells).kindNames();

describe("the filters of one request over several cells", () => {
  const all = hostFilters(settings(FILTER_NAMES.join()));

  it.each(all.filter(({ isForAllCells }) => isForAllCells).map(({ name }) => name as FilterName))(
    "%s applies to a request in all cells or in none, as it declares",
    (name) => {
      const filter = all.find((one) => one.name === name)!;
      for (const spec of SPECS) {
        const applies = CELLS.map((cell) => filter.bind(spec, cell) !== null);
        expect(new Set(applies).size).toBe(1);
      }
    },
  );

  it("are named when they apply in any cell", () => {
    for (const spec of SPECS) {
      const applying = all.filter(
        (filter) =>
          filter.decidedBy === "kind" &&
          spec.forcedHost === "" &&
          CELLS.some((cell) => filter.bind(spec, cell) !== null),
      );
      expect(kindNames(all, CELLS, spec).toSorted()).toEqual(applying.map(({ name }) => name).toSorted());
    }
    expect(kindNames(all, CELLS)).toContain("AggregateMultiTenancyIsolation");
    expect(kindNames(all, [CELLS[0]!])).not.toContain("AggregateMultiTenancyIsolation");
  });

  it("ask a cloud's own filter for each cell, even if it declares that one cell decides", () => {
    const own = guardFilter({
      ...{ name: "Own", decidedBy: "kind", isForAllCells: true },
      bind: (_, { facts }) => (facts.at(0)?.name === "c" ? () => null : null),
    });
    expect(kindNames([own], CELLS)).toEqual(["Own"]);
  });

  it("are bound to a cell once, when its hosts are examined, and to the first cell also to learn whether they apply", () => {
    const bound: string[] = [];
    const noting: HostFilter = {
      ...{ name: "Noting", decidedBy: "kind", isForAllCells: true },
      bind(_, { facts }) {
        bound.push([...facts.metadataKeys()].join() || "none");
        return () => null;
      },
    };
    const filters = new CellFilters([noting], SPECS[0]!, CELLS);
    filters.kindNames();
    expect(new Set(bound)).toEqual(new Set(["none"]));
    expect(filters.kindOf(1)).toBe(filters.kindOf(1));
    expect(filters.requestOf(1)).toEqual([]);
    expect(bound.filter((keys) => keys !== "none").length).toBe(1);
  });

  it("do not apply without a spec, or in cells without facts", () => {
    const [first] = CELLS;
    const bare = { name: "bare", view: first!.view };
    expect(new CellFilters(all, null, CELLS).of(0).kind).toEqual([]);
    const filters = new CellFilters(all, SPECS[0]!, [bare, ...CELLS]);
    expect(filters.of(0)).toEqual({ kind: [], request: [] });
    expect(filters.kindNames()).toContain("ComputeFilter");
  });
});
