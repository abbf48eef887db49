import type { MdevType, PciDevice } from "./discover-pci.ts";
import type { InspectedHost } from "./inspect-host.ts";
import type { NumaNode } from "./numa-node.ts";

/**
 * The host as it is now, with the values that were known before in place of those that could not be read this time, and a warning for each. A
 * value that has become unreadable says nothing about the host, so it must not take anything away. Devices that are no longer listed are not
 * restored.
 */
export function keepKnown(before: InspectedHost, now: InspectedHost): InspectedHost {
  const warnings = [...now.warnings];
  const keep = <Value>(what: string, old: Value, value: Value): Value => {
    if (value !== null || old === null) return value;
    warnings.push(`${what} could not be read this time: the last known value is kept`);
    return old;
  };
  // Which memory guests can have depends on its node.
  const ofNodes = now.numaNodes === null && before.numaNodes !== null ? before : now;
  const numaNodes = knownNodes(keep("the NUMA nodes", before.numaNodes, now.numaNodes), before, keep);
  const host: InspectedHost = {
    ...now,
    packages: keep("the number of packages", before.packages, now.packages),
    cores: keep("the number of cores", before.cores, now.cores),
    threads: keep("the number of threads", before.threads, now.threads),
    memoryBytes: keep("the memory", before.memoryBytes, ofNodes.memoryBytes),
    diskBytes: keep("the size of the disk", before.diskBytes, now.diskBytes),
    numaNodes,
    hugepages: knownPages(keep("the huge pages", before.hugepages, ofNodes.hugepages), { before, numaNodes, keep }),
    pci: knownDevices(keep("the PCI devices", before.pci, now.pci), before, keep),
    cpu: {
      ...now.cpu,
      online: keep("the online CPUs", before.cpu.online, now.cpu.online),
      // Unknown together with the online ones.
      usable: now.cpu.usable ?? before.cpu.usable,
      offline: keep("the offline CPUs", before.cpu.offline, now.cpu.offline),
      siblings: now.cores === null ? before.cpu.siblings : now.cpu.siblings,
      isolated: keep("the isolated CPUs", before.cpu.isolated, now.cpu.isolated),
      vendor: keep("the vendor of the CPU", before.cpu.vendor, now.cpu.vendor),
      model: keep("the model of the CPU", before.cpu.model, now.cpu.model),
      flags: keep("the flags of the CPU", before.cpu.flags, now.cpu.flags),
    },
    sev: {
      ...now.sev,
      sev: keep("SEV", before.sev.sev, now.sev.sev),
      sevGuestsMax: keep("the number of SEV guests", before.sev.sevGuestsMax, now.sev.sevGuestsMax),
    },
  };
  return { ...host, warnings };
}

type Keep = <Value>(what: string, old: Value, value: Value) => Value;

function knownNodes(nodes: readonly NumaNode[] | null, before: InspectedHost, keep: Keep): readonly NumaNode[] | null {
  const unread = nodes === null || before.numaNodes === null ? null : partedBy(nodes, before.numaNodes);
  if (unread !== null) return keep<readonly NumaNode[] | null>(unread, before.numaNodes, null);
  return (
    nodes?.map((node) => {
      const old = before.numaNodes?.find(({ id }) => id === node.id);
      if (old === undefined) return node;
      return {
        ...node,
        memoryBytes: keep(`the memory of NUMA node ${node.id}`, old.memoryBytes, node.memoryBytes),
        ...knownJoinedMemory(node, old, keep),
        cpus: keep(`the CPUs of NUMA node ${node.id}`, old.cpus, node.cpus),
      };
    }) ?? null
  );
}

function knownJoinedMemory(node: NumaNode, old: NumaNode, keep: Keep): Pick<NumaNode, "joinedMemoryBytes"> {
  const { id, joinedMemoryBytes } = node;
  if (joinedMemoryBytes === undefined) return {};
  const name = `the memory of the nodes that are treated as one with NUMA node ${id}`;
  return { joinedMemoryBytes: keep(name, old.joinedMemoryBytes ?? null, joinedMemoryBytes) };
}

/** What could not be read of a node whose CPUs were given to another one, so that it stands alone now. Null if there is none. */
function partedBy(nodes: readonly NumaNode[], before: readonly NumaNode[]): string | null {
  for (const { id, cpus, memoryBytes, distances } of nodes) {
    if (!before.some(({ joinedNodes }) => joinedNodes?.includes(id))) continue;
    if (cpus === null) return `the CPUs of NUMA node ${id}`;
    if (memoryBytes === null) return `the memory of NUMA node ${id}`;
    if (memoryBytes === 0 && distances === null) return "the distances of a NUMA node without memory";
  }
  return null;
}

function knownPages(
  pools: InspectedHost["hugepages"],
  {
    before,
    numaNodes,
    keep,
  }: Pick<InspectedHost, "numaNodes"> & { readonly before: InspectedHost; readonly keep: Keep },
): InspectedHost["hugepages"] {
  const isLeftOut = (id: number) => numaNodes?.some((node) => node.id === id) === false;
  return (
    pools?.map((pool) => {
      const old = before.hugepages?.find(({ sizeKib }) => sizeKib === pool.sizeKib);
      if (old === undefined) return pool;
      const name = `the number of huge pages of ${pool.sizeKib} KiB`;
      return {
        ...pool,
        total: keep(name, old.total, pool.total),
        nodes: nodesOfPool(pool, withoutNodes(old, isLeftOut), (id, total, nowTotal) =>
          keep(`${name} of NUMA node ${id}`, total, nowTotal),
        ),
      };
    }) ?? null
  );
}

type Pool = NonNullable<InspectedHost["hugepages"]>[number];

/** The pools of nodes that have gone, since their memory is not allowed any more, are not those of nodes that cannot be read. */
function withoutNodes(pool: Pool, isLeftOut: (id: number) => boolean): Pool {
  return { ...pool, nodes: pool.nodes.filter(({ id }) => !isLeftOut(id)) };
}

/**
 * A node's pool does not vanish while the host runs and the node's memory is allowed. A pool that is missing could not be read, like the pools of a node that could not be
 * read.
 */
function nodesOfPool(
  pool: Pool,
  old: Pool,
  keepTotal: (id: number, old: number | null, now: number | null) => number | null,
): Pool["nodes"] {
  const missing = old.nodes.filter(({ id }) => !pool.nodes.some((node) => node.id === id));
  const nodes = [...pool.nodes, ...missing.map(({ id }) => ({ id, total: null, free: null }))];
  return nodes.map((node) => {
    const before = old.nodes.find(({ id }) => id === node.id)?.total ?? null;
    return { ...node, total: keepTotal(node.id, before, node.total) };
  });
}

function knownDevices(
  devices: readonly PciDevice[] | null,
  before: InspectedHost,
  keep: Keep,
): readonly PciDevice[] | null {
  return (
    devices?.map((device) => {
      const old = before.pci?.find(({ address }) => address === device.address);
      if (old === undefined) return device;
      const of = (what: string) => `${what} of PCI device ${device.address}`;
      return {
        ...device,
        vendor: keep(of("the vendor"), old.vendor, device.vendor),
        device: keep(of("the device id"), old.device, device.device),
        class: keep(of("the class"), old.class, device.class),
        sriov:
          device.sriov === null || old.sriov === null
            ? device.sriov
            : {
                ...device.sriov,
                totalVfs: keep(
                  of("the greatest number of virtual functions"),
                  old.sriov.totalVfs,
                  device.sriov.totalVfs,
                ),
                numVfs: keep(of("the number of virtual functions"), old.sriov.numVfs, device.sriov.numVfs),
              },
        nics: device.nics.map((nic) => {
          const known = old.nics.find(({ name }) => name === nic.name)?.speedMbps ?? null;
          return { ...nic, speedMbps: keep(`the speed of ${nic.name}`, known, nic.speedMbps) };
        }),
        mdevTypes: device.mdevTypes.map((type) => knownMdevType(type, old, keep, of)),
      };
    }) ?? null
  );
}

function knownMdevType(type: MdevType, device: PciDevice, keep: Keep, of: (what: string) => string): MdevType {
  const old = device.mdevTypes.find((one) => one.type === type.type);
  if (old === undefined) return type;
  const name = of(`the number of mediated devices of type ${type.type}`);
  return {
    ...type,
    description: keep(of(`the description of type ${type.type}`), old.description, type.description),
    available: keep(name, old.available, type.available),
    existing: keep(name, old.existing, type.existing),
  };
}
