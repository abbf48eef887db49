import { expect, test } from "vitest";
import { joinNearestMemory } from "./nearest-memory.ts";
import type { NumaNode } from "./numa-node.ts";

const GIB = 1024 ** 3;

function node(
  id: number,
  cpus: readonly number[] | null,
  memoryBytes: number | null,
  distances: NumaNode["distances"],
) {
  return { id, cpus, memoryBytes, distances };
}

function join(nodes: readonly NumaNode[], online = nodes.map(({ id }) => id), forbidden = new Set<number>()) {
  const warnings: string[] = [];
  return { nodes: joinNearestMemory({ nodes, online, forbidden }, (warning) => void warnings.push(warning)), warnings };
}

test("gives the CPUs of a node without memory to the nearest node that has some, whatever its place in the list", () => {
  const { nodes, warnings } = join([
    node(0, [0, 1], 0, [10, 21, 14, 11]),
    node(1, [2, 3], 0, [21, 10, 11, 14]),
    node(5, [8], GIB, [14, 11, 10, 13]),
    node(6, [], GIB, [11, 14, 13, 10]),
  ]);
  expect(nodes).toEqual([
    { ...node(5, [2, 3, 8], GIB, [14, 11, 10, 13]), joinedNodes: [1] },
    { ...node(6, [0, 1], GIB, [11, 14, 13, 10]), joinedNodes: [0] },
  ]);
  expect(warnings).toEqual([
    "NUMA node 0 has no memory: its CPUs count as those of node 6, which is the nearest with memory",
    "NUMA node 1 has no memory: its CPUs count as those of node 5, which is the nearest with memory",
  ]);
});

test("reads distances as those to all nodes that are online, also to nodes that are left out", () => {
  const nodes = [node(0, [0], 0, [10, 11, 30, 20]), node(2, [], GIB, null), node(3, [], GIB, null)];
  expect(join(nodes, [0, 1, 2, 3]).nodes.map(({ id, cpus }) => [id, cpus])).toEqual([
    [2, []],
    [3, [0]],
  ]);
});

test("chooses the lowest id of several that are equally near, and lets a node join that has no CPUs either", () => {
  const { nodes, warnings } = join([
    node(0, [], 0, [10, 15, 15]),
    node(1, [0], GIB, [15, 10, 20]),
    node(2, [1], GIB, [15, 20, 10]),
  ]);
  expect(nodes.map(({ id, cpus, joinedNodes }) => [id, cpus, joinedNodes])).toEqual([
    [1, [0], [0]],
    [2, [1], undefined],
  ]);
  expect(warnings).toEqual(["NUMA node 0 has no memory: it counts as node 1, which is the nearest with memory"]);
});

test("says of a node whose memory is forbidden that this is the reason, and keeps what has joined a node before", () => {
  const before = { ...node(1, [1], GIB, null), joinedNodes: [4] };
  const { nodes, warnings } = join([node(0, [0], 0, [10, 20]), before], [0, 1], new Set([0]));
  expect(nodes).toEqual([{ ...before, cpus: [0, 1], joinedNodes: [4, 0] }]);
  expect(warnings).toEqual([
    "NUMA node 0 has no memory that the control group allows: its CPUs count as those of node 1, which is the nearest with memory",
  ]);
});

test.each([
  ["its memory is unknown", [node(0, [0], null, [10, 20]), node(1, [1], GIB, [20, 10])]],
  ["its distances are unknown", [node(0, [0], 0, null), node(1, [1], GIB, [20, 10])]],
  ["its distances are not as many as the nodes", [node(0, [0], 0, [10]), node(1, [1], GIB, [20, 10])]],
  ["no node has memory", [node(0, [0], 0, [10, 20]), node(1, [1], 0, [20, 10])]],
])("leaves a node as it is if %s", (_, nodes) => {
  expect(join(nodes)).toEqual({ nodes, warnings: [] });
});

test("does not know the CPUs of a node if those of a node that joins it are unknown", () => {
  const { nodes } = join([node(0, null, 0, [10, 20]), node(1, [1], GIB, [20, 10])]);
  expect(nodes.map(({ id, cpus }) => [id, cpus])).toEqual([[1, null]]);
});
