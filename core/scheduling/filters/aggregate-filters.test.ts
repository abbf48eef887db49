import { describe, expect, test } from "vitest";
import { aggregate, specWith } from "../../../test/rigs/facts-builders.ts";
import { type FilterCase, passing } from "../../../test/rigs/filter-cases.ts";
import type { FilterName } from "./filter-names.ts";

const image = (imageProperties: Record<string, string>) => specWith(9, { imageProperties });
const three = [specWith(1), specWith(2), specWith(3)];

const CASES = {
  AvailabilityZoneFilter: [
    {
      title: "passes all without a zone",
      hosts: { a: {}, b: {} },
      aggregates: [aggregate(1, { availability_zone: "z" }, ["a"])],
      spec: specWith(9, { availabilityZone: "" }),
      passes: "a b",
    },
    {
      title: "passes those of the zone",
      hosts: { a: {}, b: {} },
      aggregates: [aggregate(1, { availability_zone: "z" }, ["a"])],
      spec: specWith(9, { availabilityZone: "z" }),
      passes: "a",
    },
    {
      title: "takes hosts in none for the default zone's",
      hosts: { a: {}, b: {} },
      aggregates: [aggregate(1, { availability_zone: "z" }, ["a"])],
      spec: specWith(9, { availabilityZone: "nova" }),
      passes: "b",
    },
  ],
  NumInstancesFilter: [
    {
      title: "passes hosts with fewer servers than allowed",
      hosts: { a: { servers: three }, b: {} },
      spec: specWith(9),
      settings: { max_instances_per_host: 3 },
      passes: "b",
    },
  ],
  AggregateNumInstancesFilter: [
    {
      title: "takes the lowest of the host's aggregates",
      hosts: { a: { servers: three }, b: {} },
      aggregates: [
        aggregate(1, { max_instances_per_host: "9" }, ["a"]),
        aggregate(2, { max_instances_per_host: "3" }, ["a"]),
      ],
      spec: specWith(9),
      passes: "b",
    },
    {
      title: "uses the setting if an aggregate's value is not a number",
      hosts: { a: { servers: three } },
      aggregates: [aggregate(1, { max_instances_per_host: "few" }, ["a"])],
      spec: specWith(9),
      passes: "a",
    },
  ],
  IoOpsFilter: [
    {
      title: "passes hosts with fewer operations than allowed",
      hosts: { a: { builds: three }, b: { servers: [specWith(4)], builds: [specWith(5)] } },
      spec: specWith(9),
      settings: { max_io_ops_per_host: 3 },
      passes: "b",
    },
  ],
  AggregateIoOpsFilter: [
    {
      title: "takes the lowest of the host's aggregates",
      hosts: { a: { builds: three }, b: { builds: [specWith(4)] } },
      aggregates: [aggregate(1, { max_io_ops_per_host: "2" }, ["a", "b"])],
      spec: specWith(9),
      passes: "b",
    },
  ],
  AggregateTypeAffinityFilter: [
    {
      title: "passes where the flavor is listed, or no list is",
      hosts: { a: {}, b: {}, c: {} },
      aggregates: [
        aggregate(1, { instance_type: "m1.tiny, m1.big" }, ["a"]),
        aggregate(2, { instance_type: "m1.big" }, ["b"]),
      ],
      spec: specWith(9),
      passes: "a c",
    },
  ],
  AggregateMultiTenancyIsolation: [
    {
      title: "keeps others from a project's hosts",
      hosts: { a: {}, b: {}, c: {} },
      aggregates: [
        aggregate(1, { filter_tenant_id: "x,project-1" }, ["a"]),
        aggregate(2, { filter_tenant_id2: "x" }, ["b"]),
      ],
      spec: specWith(9),
      passes: "a c",
    },
    {
      title: "adds up the keys with suffixes",
      hosts: { b: {} },
      aggregates: [aggregate(1, { filter_tenant_id: "x", filter_tenant_id3: "project-1" }, ["b"])],
      spec: specWith(9),
      passes: "b",
    },
  ],
  AggregateImagePropertiesIsolation: [
    {
      title: "wants metadata not to contradict the image",
      hosts: { a: {}, b: {}, c: {} },
      aggregates: [aggregate(1, { os_distro: "ubuntu, debian" }, ["a"]), aggregate(2, { os_distro: "windows" }, ["b"])],
      spec: image({ os_distro: "debian" }),
      passes: "a c",
    },
    {
      title: "looks at its namespace alone",
      hosts: { b: {} },
      aggregates: [aggregate(2, { os_distro: "windows" }, ["b"])],
      spec: image({ os_distro: "debian" }),
      settings: { aggregate_image_properties_isolation_namespace: "iso" },
      passes: "b",
    },
  ],
  AggregateInstanceExtraSpecsFilter: [
    {
      title: "requires the metadata of the scoped extra specs",
      hosts: { a: {}, b: {} },
      aggregates: [aggregate(1, { ssd: "true" }, ["a"])],
      spec: specWith(9, { extraSpecs: { "aggregate_instance_extra_specs:ssd": "true", "hw:cpu_policy": "shared" } }),
      passes: "a",
    },
    {
      title: "wants what no scope has, too",
      hosts: { a: {}, b: {} },
      aggregates: [aggregate(1, { ssd: "true" }, ["a"])],
      spec: specWith(9, { extraSpecs: { ssd: "true" } }),
      passes: "a",
    },
    {
      title: "wants one value of any aggregate to satisfy",
      hosts: { a: {}, b: {} },
      aggregates: [aggregate(1, { cores: "4,16" }, ["a"]), aggregate(2, { cores: "4" }, ["b"])],
      spec: specWith(9, { extraSpecs: { "aggregate_instance_extra_specs:cores": ">= 8" } }),
      passes: "a",
    },
  ],
} satisfies Partial<Record<FilterName, readonly FilterCase[]>>;

describe("host filters about aggregates and loads", () => {
  const cases = Object.entries(CASES).flatMap(([filter, of]) =>
    of.map((one) => ({ filter: filter as FilterName, one })),
  );
  test.each(cases.map(({ filter, one }) => [filter, one.title, one] as const))("%s %s", (filter, _, one) => {
    expect(passing(filter, one)).toBe(one.passes);
  });
});
