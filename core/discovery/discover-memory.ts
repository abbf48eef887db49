import { type HostFiles, numberedEntries, type Warn } from "./host-files.ts";
import { joinNearestMemory } from "./nearest-memory.ts";
import type { NumaNode } from "./numa-node.ts";
import { parseCount, parseMemoryLine, parseNumberList, parseNumberMask } from "./parse-values.ts";

const NODES = "/sys/devices/system/node";
const GPUS = "/proc/driver/nvidia/gpus";
/** The two sums in the kernel's own data differ a little. Only a difference greater than this share is worth a warning. */
const SUM_TOLERANCE = 0.05;

/** Huge pages of one size: the totals and the counts of each node. */
export interface HugepagePool {
  readonly sizeKib: number;
  readonly total: number | null;
  readonly free: number | null;
  readonly nodes: readonly { readonly id: number; readonly total: number | null; readonly free: number | null }[];
}

/** Memory by node, in total, and by page size. Null means unknown. */
export interface HostMemory {
  readonly numaNodes: readonly NumaNode[] | null;
  readonly memoryBytes: number | null;
  readonly hugepages: readonly HugepagePool[] | null;
}

/**
 * Reads NUMA nodes, memory and pools of huge pages. The host's memory is that of /proc/meminfo without the memory of GPUs, which some
 * drivers present as NUMA nodes. The nodes only say how that memory is divided. A kernel without NUMA support counts as one node.
 */
export function discoverMemory(files: HostFiles, online: readonly number[] | null, warn: Warn): HostMemory {
  const gpuNodes = nodesOfGpus(files);
  const nodes = numaNodes(files, { online, gpuNodes, warn });
  const memoryBytes = hostMemory(files, { nodes, gpuNodes, warn });
  const hugepages = hugepagePools(files, nodes, warn);
  if (nodes !== null) return { numaNodes: nodes, memoryBytes, hugepages };
  // A kernel without NUMA support has no such directory. One that exists and cannot be read now says nothing about the nodes.
  const isUnread = files.unread.some(({ path }) => path === NODES);
  if (online === null || isUnread) {
    warn(`NUMA nodes are unknown: ${NODES} cannot be read${isUnread ? "" : ", nor can the CPUs"}`);
    return { numaNodes: null, memoryBytes, hugepages };
  }
  warn(`the host is treated as one NUMA node: ${NODES} has no node`);
  return { numaNodes: [{ id: 0, memoryBytes, cpus: online, distances: null }], memoryBytes, hugepages };
}

interface NodesContext {
  readonly online: readonly number[] | null;
  readonly gpuNodes: ReadonlySet<number>;
  readonly warn: Warn;
}

function numaNodes(files: HostFiles, { online, gpuNodes, warn }: NodesContext): readonly NumaNode[] | null {
  const text = files.texts.get(`${NODES}/online`);
  const stated = parseNumberList(text);
  if (text !== undefined && stated === null) warn(`${NODES}/online is not a list of nodes and is ignored`);
  const ids = (numberedEntries(files, NODES, "node") ?? []).filter((id) => stated?.includes(id) ?? true);
  if (ids.length === 0) return null;
  const nodes = ids.filter((id) => !gpuNodes.has(id)).map((id) => numaNode(files, id, { online, gpuNodes, warn }));
  if (overlap(nodes)) return joined(nodes, warn);
  return withDistancesAmong(joinNearestMemory({ nodes, online: ids }, warn), ids);
}

function numaNode(files: HostFiles, id: number, { online, warn }: NodesContext): NumaNode {
  const directory = `${NODES}/node${id}`;
  const memoryBytes = parseMemoryLine(files.texts.get(`${directory}/meminfo`), "MemTotal");
  if (memoryBytes === null) warn(`the memory of NUMA node ${id} is unknown: ${directory}/meminfo has no MemTotal`);
  // Old kernels have only the mask. Both may name CPUs that are offline.
  const cpus =
    parseNumberList(files.texts.get(`${directory}/cpulist`)) ?? parseNumberMask(files.texts.get(`${directory}/cpumap`));
  if (cpus === null) warn(`the CPUs of NUMA node ${id} are unknown: ${directory} has neither cpulist nor cpumap`);
  const distances = files.texts.get(`${directory}/distance`)?.trim().split(/\s+/).map(parseCount) ?? [null];
  return {
    id,
    memoryBytes,
    cpus: cpus?.filter((cpu) => online?.includes(cpu) ?? true) ?? null,
    distances: distances.includes(null) ? null : (distances as number[]),
  };
}

/** The kernel's distances are to all nodes that are online. Those to nodes that are left out are left out, too. */
function withDistancesAmong(nodes: readonly NumaNode[], online: readonly number[]): readonly NumaNode[] {
  if (nodes.length === online.length) return nodes;
  const isKept = new Set(nodes.map(({ id }) => id));
  return nodes.map((node) => {
    const isWhole = node.distances?.length === online.length;
    return isWhole
      ? { ...node, distances: node.distances.filter((_, index) => isKept.has(online[index] ?? -1)) }
      : node;
  });
}

function overlap(nodes: readonly NumaNode[]): boolean {
  const cpus = nodes.flatMap((node) => node.cpus ?? []);
  return new Set(cpus).size < cpus.length;
}

/** Merges the nodes into one. A CPU belongs to one node, so firmware that says otherwise does not describe NUMA. */
function joined(nodes: readonly NumaNode[], warn: Warn): readonly NumaNode[] {
  warn(`the host is treated as one NUMA node: its ${nodes.length} nodes name the same CPUs`);
  const cpus = [...new Set(nodes.flatMap((node) => node.cpus ?? []))].sort((a, b) => a - b);
  return [
    { id: nodes[0]?.id ?? 0, memoryBytes: sumOrNull(nodes.map((node) => node.memoryBytes)), cpus, distances: null },
  ];
}

/** NUMA nodes that are the memory of a GPU, as NVIDIA's driver says. */
function nodesOfGpus(files: HostFiles): ReadonlySet<number> {
  const gpus = files.entries.get(GPUS) ?? [];
  const nodes = gpus.map(
    (gpu) => /^Node:\s*(\d{1,6})\s*$/m.exec(files.texts.get(`${GPUS}/${gpu}/numa_status`) ?? "")?.[1],
  );
  return new Set(nodes.filter((node) => node !== undefined).map(Number));
}

interface SumContext {
  readonly nodes: readonly NumaNode[] | null;
  readonly gpuNodes: ReadonlySet<number>;
  readonly warn: Warn;
}

function hostMemory(files: HostFiles, { nodes, gpuNodes, warn }: SumContext): number | null {
  const ofNodes = nodes === null ? null : sumOrNull(nodes.map((node) => node.memoryBytes));
  const stated = parseMemoryLine(files.texts.get("/proc/meminfo"), "MemTotal");
  if (stated === null) {
    if (ofNodes === null) warn("the memory is unknown: neither /proc/meminfo nor the NUMA nodes have MemTotal");
    else warn("/proc/meminfo has no MemTotal: the memory is the sum of the NUMA nodes");
    return ofNodes;
  }
  const ofGpus = [...gpuNodes].map(
    (id) => parseMemoryLine(files.texts.get(`${NODES}/node${id}/meminfo`), "MemTotal") ?? 0,
  );
  const memory = Math.max(0, stated - ofGpus.reduce((sum, bytes) => sum + bytes, 0));
  if (ofNodes !== null && Math.abs(ofNodes - memory) > SUM_TOLERANCE * memory)
    warn(
      `/proc/meminfo says ${memory} bytes of memory, and the NUMA nodes together ${ofNodes}: the former is used, divided among the nodes`,
    );
  return memory;
}

function hugepagePools(
  files: HostFiles,
  nodes: readonly NumaNode[] | null,
  warn: Warn,
): readonly HugepagePool[] | null {
  const all = "/sys/kernel/mm/hugepages";
  const perNode = (nodes ?? []).map(({ id }) => ({ id, directory: `${NODES}/node${id}/hugepages` }));
  const known = [all, ...perNode.map((node) => node.directory)].filter((directory) => files.entries.has(directory));
  if (known.length === 0) {
    warn(`huge pages are unknown: ${all} cannot be read`);
    return null;
  }
  const sizes = new Set(known.flatMap((directory) => files.entries.get(directory)?.flatMap(pageKib) ?? []));
  return [...sizes]
    .sort((a, b) => a - b)
    .map((sizeKib) => {
      const count = (directory: string, kind: string) =>
        parseCount(files.texts.get(`${directory}/hugepages-${sizeKib}kB/${kind}_hugepages`));
      const ofNodes = perNode
        .filter(({ directory }) => files.entries.get(directory)?.includes(`hugepages-${sizeKib}kB`))
        .map(({ id, directory }) => ({ id, total: count(directory, "nr"), free: count(directory, "free") }));
      const total = count(all, "nr") ?? sumOrNull(ofNodes.map((node) => node.total));
      if (total === null) warn(`the number of huge pages of ${sizeKib} KiB is unknown: nr_hugepages cannot be read`);
      return {
        sizeKib,
        total,
        free: count(all, "free") ?? sumOrNull(ofNodes.map((node) => node.free)),
        nodes: ofNodes,
      };
    });
}

function pageKib(name: string): readonly number[] {
  const size = /^hugepages-(\d{1,10})kB$/.exec(name)?.[1];
  return size === undefined ? [] : [Number(size)];
}

/** The sum, or null when any count is unknown or there is none. */
function sumOrNull(counts: readonly (number | null)[]): number | null {
  if (counts.length === 0 || counts.includes(null)) return null;
  return counts.reduce((sum: number, count) => sum + (count ?? 0), 0);
}
