import { createHash } from "node:crypto";
import type { PlacementClient } from "./placement-client.ts";

/** Makes the same UUID from the same words. */
export function uuidFromWords(...words: readonly (string | number)[]): string {
  const hex = createHash("md5").update(words.join("/")).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}

export const TRAIT = "CUSTOM_BENCH";
export const AGGREGATE = uuidFromWords("aggregate");

/** A provider of a cloud; a tree lists its root first and parents before children. */
export interface Node {
  readonly uuid: string;
  readonly parent: string | null;
  readonly inventories: Readonly<Record<string, number>>;
  readonly traits: readonly string[];
}

/** Hosts without children: VCPU, MEMORY_MB, DISK_GB, one trait, one aggregate. */
export function flatCloud(count: number, prefix: string): readonly (readonly Node[])[] {
  return Array.from({ length: count }, (_, at) => [
    {
      uuid: uuidFromWords(prefix, at),
      parent: null,
      inventories: { VCPU: 64, MEMORY_MB: 262_144, DISK_GB: 2_000 },
      traits: [TRAIT],
    },
  ]);
}

/** Hosts with 2 NUMA nodes (VCPU, MEMORY_MB), each with a NIC of 2 functions, and DISK_GB at the root. */
export function nestedCloud(count: number, prefix: string): readonly (readonly Node[])[] {
  return Array.from({ length: count }, (_, at) => {
    const root = uuidFromWords(prefix, at);
    const numa = [0, 1].flatMap((cell) => {
      const uuid = uuidFromWords(prefix, at, "numa", cell);
      return [
        { uuid, parent: root, inventories: { VCPU: 32, MEMORY_MB: 131_072 }, traits: ["HW_NUMA_ROOT"] },
        {
          uuid: uuidFromWords(prefix, at, "nic", cell),
          parent: uuid,
          inventories: { SRIOV_NET_VF: 2 },
          traits: [TRAIT],
        },
      ];
    });
    return [{ uuid: root, parent: null, inventories: { DISK_GB: 2_000 }, traits: [] }, ...numa];
  });
}

/** One host with this number of identical children, of one unit each. */
export function wideHost(children: number, prefix: string): readonly (readonly Node[])[] {
  const root = uuidFromWords(prefix);
  const child = (_: unknown, at: number) => ({
    uuid: uuidFromWords(prefix, at),
    parent: root,
    inventories: { VGPU: 1 },
    traits: [TRAIT],
  });
  return [
    [{ uuid: root, parent: null, inventories: { VCPU: 8 }, traits: [] }, ...Array.from({ length: children }, child)],
  ];
}

/**
 * Creates the trees over HTTP, as an agent would: provider, inventories, traits, aggregates. Returns the number of providers created a
 * second.
 */
export async function fill(client: PlacementClient, cloud: readonly (readonly Node[])[]): Promise<number> {
  const start = performance.now();
  await client.rate(cloud.length, async (at) => {
    for (const node of cloud[at]!) await createNode(client, node);
  });
  const providers = cloud.reduce((sum, tree) => sum + tree.length, 0);
  return (providers / (performance.now() - start)) * 1_000;
}

async function createNode(client: PlacementClient, node: Node): Promise<void> {
  const url = `/resource_providers/${node.uuid}`;
  await client.must("POST", "/resource_providers", {
    name: node.uuid,
    uuid: node.uuid,
    parent_provider_uuid: node.parent,
  });
  const inventories = Object.fromEntries(Object.entries(node.inventories).map(([name, total]) => [name, { total }]));
  await client.must("PUT", `${url}/inventories`, { resource_provider_generation: 0, inventories });
  if (node.traits.length > 0)
    await client.must("PUT", `${url}/traits`, { resource_provider_generation: 1, traits: node.traits });
  await client.must("PUT", `${url}/aggregates`, {
    resource_provider_generation: node.traits.length > 0 ? 2 : 1,
    aggregates: [AGGREGATE],
  });
}
