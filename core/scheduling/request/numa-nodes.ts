import type { Asked } from "./asked.ts";
import { type CpuPlan, cpuPlan } from "./cpu-plan.ts";
import { contradiction, type HardwareRequest, hardwareRequest } from "./hardware-request.ts";
import type { HostRequestDraft } from "./host-request-draft.ts";
import { parseCpuMask } from "./parse-cpu-mask.ts";
import { badExtraSpec, badImageProperty, type RequestRefusal } from "./request-refusal.ts";
import type { TranslationRule } from "./translation-rule.ts";

const NODES_MAX = 128;

/** One NUMA node of a guest. */
export interface GuestNode {
  /** Suffix of the node's request group. */
  readonly suffix: string;
  readonly cpus: ReadonlySet<number>;
  readonly memoryMib: number;
}

export type GuestNodes = { readonly kind: "nodes"; readonly nodes: readonly GuestNode[] } | RequestRefusal;

/** Suffix of the request group of a guest's NUMA node. Other rules and extra specs may name it. */
export function nodeSuffix(index: number): string {
  return `_NUMA${index}`;
}

/**
 * Reads `hw:numa_nodes=N`: it adds one group for each node with its CPUs and memory, divided evenly or as `hw:numa_cpus.N` and
 * `hw:numa_mem.N` say. The groups are kept apart: on a host whose NUMA nodes are providers each gets a different one, and on a flat host
 * the root serves all.
 */
export const numaNodes: TranslationRule = (asked, draft) => {
  const plan = cpuPlan(asked);
  if (plan.kind !== "plan") return plan;
  const read = guestNodes(asked);
  if (read.kind !== "nodes") return read;
  const { nodes } = read;
  if (nodes.length === 0) return null;
  if (nodes.length > 1) draft.apart.push(nodes.map(({ suffix }) => suffix));
  if (!draft.names("VCPU") && !draft.names("PCPU")) addCpus(draft, nodes, plan);
  if (!draft.names("MEMORY_MB")) for (const { suffix, memoryMib } of nodes) draft.add(suffix, "MEMORY_MB", memoryMib);
  return null;
};

/** Adds the CPUs of each node. The emulator's threads belong to the first node. */
function addCpus(draft: HostRequestDraft, nodes: readonly GuestNode[], { dedicated, extraPcpus }: CpuPlan): void {
  nodes.forEach(({ suffix, cpus }, index) => {
    const pcpus = [...cpus].filter((cpu) => dedicated.has(cpu)).length;
    const vcpus = cpus.size - pcpus;
    if (vcpus > 0) draft.add(suffix, "VCPU", vcpus);
    const more = index === 0 ? extraPcpus : 0;
    if (pcpus + more > 0) draft.add(suffix, "PCPU", pcpus + more);
  });
}

/** The guest's NUMA nodes. There are none unless `hw:numa_nodes` gives their number. */
export function guestNodes(asked: Asked): GuestNodes {
  const request = hardwareRequest(asked, "numa_nodes");
  if (request.flavor && request.image)
    return contradiction(request.flavor, request.image, "only one of the two may lay out NUMA nodes");
  const said = request.flavor ?? request.image;
  const { vcpus, memoryMib } = asked.flavor;
  if (said === null) return unexpectedLayout(asked) ?? { kind: "nodes", nodes: [] };
  const count = Number(said.value);
  if (!/^\d{1,3}$/.test(said.value) || count < 1 || count > Math.min(vcpus, NODES_MAX))
    return refuse(request, `a whole number from 1 to the flavor's CPUs (${vcpus})`);
  const contradicted = overlap(asked, request) ?? tooMany(asked, count);
  if (contradicted) return contradicted;
  const layouts = Array.from({ length: count }, (_, index) => ({
    cpus: hardwareRequest(asked, `numa_cpus.${index}`),
    memory: hardwareRequest(asked, `numa_mem.${index}`),
  }));
  const isLaidOut = layouts.some(({ cpus, memory }) => wordOf(cpus) !== undefined || wordOf(memory) !== undefined);
  if (isLaidOut) return laidOut(asked, layouts, request);
  if (vcpus % count !== 0 || memoryMib % count !== 0)
    return refuse(
      request,
      `a divisor of the flavor's CPUs (${vcpus}) and memory (${memoryMib} MiB), or accompanied by numa_cpus.N and numa_mem.N`,
    );
  const share = vcpus / count;
  const nodes = Array.from({ length: count }, (_, index) => ({
    suffix: nodeSuffix(index),
    cpus: new Set(Array.from({ length: share }, (_unused, cpu) => index * share + cpu)),
    memoryMib: memoryMib / count,
  }));
  return { kind: "nodes", nodes };
}

interface NodeLayout {
  readonly cpus: HardwareRequest;
  readonly memory: HardwareRequest;
}

/**
 * Reads an explicit layout. Each node must have CPUs and memory, each CPU must be in one node, and the memory must add up to the flavor's.
 */
function laidOut(asked: Asked, layouts: readonly NodeLayout[], request: HardwareRequest): GuestNodes {
  const { vcpus, memoryMib } = asked.flavor;
  const seen = new Set<number>();
  const nodes: GuestNode[] = [];
  for (const [index, { cpus, memory }] of layouts.entries()) {
    const cpuText = wordOf(cpus);
    const memoryText = wordOf(memory);
    if (cpuText === undefined || memoryText === undefined)
      return refuse(
        request,
        `accompanied by numa_cpus.${index} and numa_mem.${index}, because those of other nodes are given`,
      );
    const set = parseCpuMask(cpuText);
    if (set === null || set.size === 0 || [...set].some((cpu) => cpu >= vcpus || seen.has(cpu)))
      return refuse(cpus, `CPUs from 0 to ${vcpus - 1} that no other node has`);
    for (const cpu of set) seen.add(cpu);
    if (!/^\d{1,10}$/.test(memoryText) || Number(memoryText) < 1) return refuse(memory, "a whole number of MiB");
    nodes.push({ suffix: nodeSuffix(index), cpus: set, memoryMib: Number(memoryText) });
  }
  if (seen.size !== vcpus) return refuse(request, `accompanied by numa_cpus.N that name all of the ${vcpus} CPUs`);
  const total = nodes.reduce((sum, node) => sum + node.memoryMib, 0);
  return total === memoryMib
    ? { kind: "nodes", nodes }
    : refuse(request, `accompanied by numa_mem.N that add up to ${memoryMib} MiB, not ${total}`);
}

const LAYOUT = /^hw[:_]numa_(?:cpus|mem)\.(\d+)$/;

/** Refuses CPUs or memory of nodes when the number of nodes is not given. */
function unexpectedLayout({ flavor, imageProperties }: Asked): RequestRefusal | null {
  for (const [key, value] of Object.entries(flavor.extraSpecs))
    if (LAYOUT.test(key)) return badExtraSpec(key, value, "left out without hw:numa_nodes");
  for (const [key, value] of Object.entries(imageProperties))
    if (LAYOUT.test(key)) return badImageProperty(key, value, "left out without hw_numa_nodes");
  return null;
}

/** Refuses CPUs or memory of a node that does not exist. */
function tooMany({ flavor, imageProperties }: Asked, count: number): RequestRefusal | null {
  const isBeyond = (key: string) => Number(LAYOUT.exec(key)?.[1] ?? 0) >= count;
  const allowed = `left out: there are ${count} NUMA nodes, the first is 0`;
  for (const [key, value] of Object.entries(flavor.extraSpecs))
    if (isBeyond(key)) return badExtraSpec(key, value, allowed);
  for (const [key, value] of Object.entries(imageProperties))
    if (isBeyond(key)) return badImageProperty(key, value, allowed);
  return null;
}

/**
 * Refuses a layout that comes partly from the flavor and partly from the image: the one that sets the number of nodes must also lay them
 * out.
 */
function overlap({ flavor, imageProperties }: Asked, request: HardwareRequest): RequestRefusal | null {
  const ofFlavor = Object.entries(flavor.extraSpecs).find(([key]) => LAYOUT.test(key));
  const ofImage = Object.entries(imageProperties).find(([key]) => LAYOUT.test(key));
  const flavorsWord = request.flavor ?? (ofFlavor && { key: ofFlavor[0], value: ofFlavor[1] });
  const imagesWord = request.image ?? (ofImage && { key: ofImage[0], value: ofImage[1] });
  if (!flavorsWord || !imagesWord) return null;
  return contradiction(flavorsWord, imagesWord, "only one of the two may lay out NUMA nodes");
}

function wordOf({ flavor, image }: HardwareRequest): string | undefined {
  return (flavor ?? image)?.value;
}

function refuse({ flavor, image }: HardwareRequest, allowed: string): RequestRefusal {
  if (flavor) return badExtraSpec(flavor.key, flavor.value, allowed);
  return badImageProperty(image?.key ?? "", image?.value ?? "", allowed);
}
