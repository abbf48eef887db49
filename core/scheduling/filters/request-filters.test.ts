import { describe, expect, test } from "vitest";
import { numbered, serverId } from "../../../test/contract/cell-fixtures.ts";
import { specWith } from "../../../test/rigs/facts-builders.ts";
import { type FilterCase, passing } from "../../../test/rigs/filter-cases.ts";
import type { FilterName } from "./filter-names.ts";

const hint = (name: string, ...values: string[]) => ({ hints: [{ name, values }] });
const group = (policy: string, maxServerPerHost = 0) => ({
  group: { uuid: numbered(0xe, 1), policy, maxServerPerHost },
});
const kvm = (version = 0, cpuInfo = {}) => ({
  hypervisor: {
    type: "QEMU",
    version,
    supportedInstances: [
      ["x86_64", "kvm", "hvm"],
      ["i686", "kvm", "hvm"],
    ] as [string, string, string][],
    cpuInfo,
  },
});

const CASES = {
  ServerGroupAffinityFilter: [
    {
      title: "passes all while the group is empty",
      hosts: { a: {}, b: {} },
      spec: specWith(9, group("affinity")),
      passes: "a b",
    },
    {
      title: "passes the host of the group",
      hosts: { a: {}, b: { servers: [specWith(1, group("affinity"))] } },
      spec: specWith(9, group("affinity")),
      passes: "b",
    },
    {
      title: "does not bind the group's only server to its own host",
      hosts: { a: {}, b: { servers: [specWith(9, group("affinity"))] } },
      spec: specWith(9, group("affinity")),
      passes: "a b",
    },
    {
      title: "says nothing of other policies",
      hosts: { a: {}, b: { servers: [specWith(1, group("soft-affinity"))] } },
      spec: specWith(9, group("soft-affinity")),
      passes: "a b",
    },
  ],
  ServerGroupAntiAffinityFilter: [
    {
      title: "passes hosts without the group",
      hosts: { a: {}, b: { servers: [specWith(1, group("anti-affinity"))] } },
      spec: specWith(9, group("anti-affinity")),
      passes: "a",
    },
    {
      title: "passes fewer than max_server_per_host",
      hosts: {
        a: { servers: [specWith(1, group("anti-affinity"))] },
        b: { servers: [specWith(2, group("anti-affinity")), specWith(3, group("anti-affinity"))] },
      },
      spec: specWith(9, group("anti-affinity", 2)),
      passes: "a",
    },
    {
      title: "passes the host that has the server itself",
      hosts: { b: { servers: [specWith(9, group("anti-affinity"))] } },
      spec: specWith(9, group("anti-affinity")),
      passes: "b",
    },
  ],
  DifferentHostFilter: [
    {
      title: "refuses the hosts of the servers named",
      hosts: { a: { servers: [specWith(1)] }, b: { servers: [specWith(2)] }, c: {} },
      spec: specWith(9, hint("different_host", serverId(1), serverId(2))),
      passes: "c",
    },
  ],
  SameHostFilter: [
    {
      title: "passes the hosts of the servers named alone",
      hosts: { a: { servers: [specWith(1)] }, b: {} },
      spec: specWith(9, hint("same_host", serverId(1), serverId(7))),
      passes: "a",
    },
  ],
  SimpleCIDRAffinityFilter: [
    {
      title: "takes /24 unless told",
      hosts: { a: { hypervisor: { hostIp: "10.0.1.7" } }, b: { hypervisor: { hostIp: "10.0.2.7" } }, c: {} },
      spec: specWith(9, hint("build_near_host_ip", "10.0.1.1")),
      passes: "a",
    },
    {
      title: "takes the network's size from the hint",
      hosts: { a: { hypervisor: { hostIp: "10.0.1.7" } }, b: { hypervisor: { hostIp: "10.0.2.7" } } },
      spec: specWith(9, {
        hints: [
          { name: "build_near_host_ip", values: ["10.0.1.1"] },
          { name: "cidr", values: ["/16"] },
        ],
      }),
      passes: "a b",
    },
    {
      title: "knows IPv6",
      hosts: { a: { hypervisor: { hostIp: "2001:db8::7" } }, b: { hypervisor: { hostIp: "10.0.2.7" } } },
      spec: specWith(9, {
        hints: [
          { name: "build_near_host_ip", values: ["2001:db8::"] },
          { name: "cidr", values: ["/64"] },
        ],
      }),
      passes: "a",
    },
    {
      title: "passes no host for an invalid address",
      hosts: { a: {} },
      spec: specWith(9, hint("build_near_host_ip", "here")),
      passes: "",
    },
  ],
  JsonFilter: [
    {
      title: "compares attributes",
      hosts: { a: {}, b: { inventories: { MEMORY_MB: 512 } } },
      spec: specWith(9, hint("query", '[">=", "$free_ram_mb", 1024]')),
      passes: "a",
    },
    {
      title: "combines",
      hosts: { a: {}, b: {}, c: {} },
      spec: specWith(9, hint("query", '["and", ["in", "$host", "a", "b"], ["not", ["=", "$host", "a"]]]')),
      passes: "b",
    },
    {
      title: "follows paths, and is false where there is nothing",
      hosts: { a: kvm(0, { arch: "x" }), b: {} },
      spec: specWith(9, hint("query", '["=", "$cpu_info.arch", "x"]')),
      passes: "a",
    },
    { title: "passes all by an empty query", hosts: { a: {} }, spec: specWith(9, hint("query", "[]")), passes: "a" },
    {
      title: "passes no host for an invalid query",
      hosts: { a: {} },
      spec: specWith(9, hint("query", '["rm", "-rf"]')),
      passes: "",
    },
  ],
} satisfies Partial<Record<FilterName, readonly FilterCase[]>>;

describe("host filters about hints and groups", () => {
  const cases = Object.entries(CASES).flatMap(([filter, of]) =>
    of.map((one) => ({ filter: filter as FilterName, one })),
  );
  test.each(cases.map(({ filter, one }) => [filter, one.title, one] as const))("%s %s", (filter, _, one) => {
    expect(passing(filter, one)).toBe(one.passes);
  });
});
