import type { ControlGroup } from "./control-group.ts";
import { formatNumberList } from "./format-number-list.ts";
import { type HostFiles, numberedEntries, type Warn } from "./host-files.ts";
import { joinNearestMemory } from "./nearest-memory.ts";
import { type NumaNode, wholeMemoryOf } from "./numa-node.ts";
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

/** The part of the machine that guests can use. Null means unknown. */
export interface MemoryLimits {
  readonly usableCpus: readonly number[] | null;
  /** The control group's path and the nodes whose memory it allows. */
  readonly group: Pick<ControlGroup, "path" | "memoryNodes">;
}

/**
 * Reads NUMA nodes, memory and pools of huge pages. The host's memory is that of /proc/meminfo without the memory of GPUs, which some
 * drivers present as NUMA nodes, and without that of nodes whose memory the control group does not allow. The nodes only say how that memory
 * is divided. A kernel without NUMA support counts as one node.
 */
export function discoverMemory(files: HostFiles, { usableCpus: online, group }: MemoryLimits, warn: Warn): HostMemory {
  const gpuNodes = nodesOfGpus(files);
  const forbidden = forbiddenNodes(files, group, warn);
  const nodes = numaNodes(files, { online, gpuNodes, forbidden, warn });
  const memoryBytes = hostMemory(files, { nodes, gpuNodes, forbidden, warn });
  const hugepages = hugepagePools(files, { nodes, forbidden, warn });
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

/** The CPUs of the nodes whose memory the control group allows. */
export function cpusBesideMemory(files: HostFiles, { memoryNodes }: MemoryLimits["group"]): ReadonlySet<number> {
  return new Set((memoryNodes ?? []).flatMap((id) => cpusOf(files, id) ?? []));
}

/** The nodes that are online, as the kernel numbers them. */
function onlineNodes(files: HostFiles): readonly number[] {
  const stated = parseNumberList(files.texts.get(`${NODES}/online`));
  return (numberedEntries(files, NODES, "node") ?? []).filter((id) => stated?.includes(id) ?? true);
}

/** Nodes whose memory guests cannot have. A group that allows the memory of no node of the machine is that of another one, and is left out of account. */
function forbiddenNodes(
  files: HostFiles,
  { path, memoryNodes }: MemoryLimits["group"],
  warn: Warn,
): ReadonlySet<number> {
  const ids = onlineNodes(files);
  const forbidden = ids.filter((id) => memoryNodes !== null && !memoryNodes.includes(id));
  if (forbidden.length === 0) return new Set();
  if (forbidden.length < ids.length) {
    warn(
      `the control group ${path} does not allow the memory of the NUMA nodes ${formatNumberList(forbidden)}: it is left out, since guests are started in this group`,
    );
    return new Set(forbidden);
  }
  warn(`the control group ${path} allows the memory of no NUMA node, which cannot be: it is left out of account`);
  return new Set();
}

interface NodesContext {
  readonly online: readonly number[] | null;
  readonly gpuNodes: ReadonlySet<number>;
  readonly forbidden: ReadonlySet<number>;
  readonly warn: Warn;
}

function numaNodes(files: HostFiles, context: NodesContext): readonly NumaNode[] | null {
  const { gpuNodes, forbidden, warn } = context;
  const text = files.texts.get(`${NODES}/online`);
  if (text !== undefined && parseNumberList(text) === null)
    warn(`${NODES}/online is not a list of nodes and is ignored`);
  const ids = onlineNodes(files);
  if (ids.length === 0) return null;
  const nodes = ids.filter((id) => !gpuNodes.has(id)).map((id) => numaNode(files, id, context));
  const joined = joinNearestMemory({ nodes: joinOverlaps(nodes, context), online: ids, forbidden }, warn);
  // Without distances, the CPUs of a node whose memory is not allowed belong to no node.
  for (const { id, cpus } of joined)
    if (forbidden.has(id) && cpus?.length !== 0)
      warn(`the CPUs of NUMA node ${id} belong to no node: which memory is near to them is unknown`);
  return withDistancesAmong(
    joined.filter(({ id }) => !forbidden.has(id)),
    ids,
  );
}

function numaNode(files: HostFiles, id: number, { online, forbidden, warn }: NodesContext): NumaNode {
  const directory = `${NODES}/node${id}`;
  const ofNode = parseMemoryLine(files.texts.get(`${directory}/meminfo`), "MemTotal");
  const memoryBytes = forbidden.has(id) ? 0 : ofNode;
  if (ofNode === null) warn(`the memory of NUMA node ${id} is unknown: ${directory}/meminfo has no MemTotal`);
  const cpus = cpusOf(files, id);
  if (cpus === null) warn(`the CPUs of NUMA node ${id} are unknown: ${directory} has neither cpulist nor cpumap`);
  const distances = files.texts.get(`${directory}/distance`)?.trim().split(/\s+/).map(parseCount) ?? [null];
  return {
    id,
    memoryBytes,
    cpus: cpus?.filter((cpu) => online?.includes(cpu) ?? true) ?? null,
    distances: distances.includes(null) ? null : (distances as number[]),
  };
}

/** Old kernels have only the mask. Both may name CPUs that are offline. */
function cpusOf(files: HostFiles, id: number): readonly number[] | null {
  const directory = `${NODES}/node${id}`;
  return (
    parseNumberList(files.texts.get(`${directory}/cpulist`)) ?? parseNumberMask(files.texts.get(`${directory}/cpumap`))
  );
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

/**
 * Merges nodes that name the same CPUs. A CPU belongs to one node, so firmware that says otherwise does not describe these nodes. Of several nodes
 * the first one with memory that is allowed gives its id and its own size, as `lstopo` counts such nodes. The memory of the others is memory of the host all the same.
 */
function joinOverlaps(nodes: readonly NumaNode[], { forbidden, warn }: NodesContext): readonly NumaNode[] {
  const groups = nodes.reduce<readonly (readonly NumaNode[])[]>((all, node) => {
    const meets = (group: readonly NumaNode[]) =>
      group.some(({ cpus }) => cpus?.some((cpu) => node.cpus?.includes(cpu)));
    return [...all.filter((group) => !meets(group)), [...all.filter(meets).flat(), node]];
  }, []);
  const rank = ({ id, memoryBytes }: NumaNode) => (forbidden.has(id) ? 2 : Number(memoryBytes === 0));
  const byUse = (a: NumaNode, b: NumaNode) => rank(a) - rank(b) || a.id - b.id;
  return groups.map((group) => joinedNode(group.toSorted(byUse), warn)).sort((a, b) => a.id - b.id);
}

function joinedNode(nodes: readonly NumaNode[], warn: Warn): NumaNode {
  const [first, ...others] = nodes as readonly [NumaNode, ...NumaNode[]];
  if (others.length === 0) return first;
  const ids = nodes.map(({ id }) => id).sort((a, b) => a - b);
  warn(`the NUMA nodes ${formatNumberList(ids)} are treated as one: they name the same CPUs`);
  return {
    id: first.id,
    memoryBytes: first.memoryBytes,
    cpus: [...new Set(nodes.flatMap((node) => node.cpus ?? []))].sort((a, b) => a - b),
    distances: null,
    joinedNodes: others.map(({ id }) => id),
    joinedMemoryBytes: sumOrNull(others.map((node) => node.memoryBytes)),
  };
}

/** NUMA nodes that are the memory of a GPU, as NVIDIA's driver says. */
function nodesOfGpus(files: HostFiles): ReadonlySet<number> {
  const gpus = files.entries.get(GPUS) ?? [];
  const nodes = gpus.map(
    (gpu) => /^Node:\s*(\d{1,6})\s*$/m.exec(files.texts.get(`${GPUS}/${gpu}/numa_status`) ?? "")?.[1],
  );
  return new Set(nodes.filter((node) => node !== undefined).map(Number));
}

interface SumContext extends Pick<NodesContext, "gpuNodes" | "forbidden" | "warn"> {
  readonly nodes: readonly NumaNode[] | null;
}

function hostMemory(files: HostFiles, { nodes, gpuNodes, forbidden, warn }: SumContext): number | null {
  const ofNodes = nodes === null ? null : sumOrNull(nodes.map(wholeMemoryOf));
  const stated = parseMemoryLine(files.texts.get("/proc/meminfo"), "MemTotal");
  if (stated === null) {
    if (ofNodes === null) warn("the memory is unknown: neither /proc/meminfo nor the NUMA nodes have MemTotal");
    else warn("/proc/meminfo has no MemTotal: the memory is the sum of the NUMA nodes");
    return ofNodes;
  }
  // The memory of a GPU's node that cannot be read counts as 0.
  const ofGpus = memoryOf(files, gpuNodes).reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0);
  const memory = Math.max(0, stated - ofGpus);
  const ofForbidden = sumOrNull([0, ...memoryOf(files, forbidden.difference(gpuNodes))]);
  const all = sumOrNull([ofNodes, ofForbidden]);
  if (all !== null && Math.abs(all - memory) > SUM_TOLERANCE * memory)
    warn(
      `/proc/meminfo says ${memory} bytes of memory, and the NUMA nodes together ${all}: the former is used, divided among the nodes`,
    );
  if (ofForbidden === 0) return memory;
  // Without the sizes of all nodes, nobody knows how much of the memory is that of the allowed ones.
  return all === null || ofNodes === null ? null : Math.floor((memory / all) * ofNodes);
}

/** The memory of each node, or null where it cannot be read. */
function memoryOf(files: HostFiles, nodes: ReadonlySet<number>): readonly (number | null)[] {
  return [...nodes].map((id) => parseMemoryLine(files.texts.get(`${NODES}/node${id}/meminfo`), "MemTotal"));
}

/** The pages that guests can have. The host's own sums count if the memory of all nodes is allowed. */
function hugepagePools(
  files: HostFiles,
  { nodes, forbidden, warn }: Omit<SumContext, "gpuNodes">,
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
      const ofHost = (kind: string) => (forbidden.size > 0 ? null : count(all, kind));
      const total = ofHost("nr") ?? sumOrNull(ofNodes.map((node) => node.total));
      if (total === null) warn(`the number of huge pages of ${sizeKib} KiB is unknown: nr_hugepages cannot be read`);
      return {
        sizeKib,
        total,
        free: ofHost("free") ?? sumOrNull(ofNodes.map((node) => node.free)),
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
