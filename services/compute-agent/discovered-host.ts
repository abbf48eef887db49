import { machine as architectureOfMachine } from "node:os";
import { numaProviderName, type TreePlace } from "../../core/discovery/host-tree.ts";
import type { InspectedHost } from "../../core/discovery/inspect-host.ts";
import { keepKnown } from "../../core/discovery/keep-known.ts";
import type { DeviceProvider } from "../../core/discovery/pci-providers.ts";
import type { TreeProvider } from "../../core/discovery/tree-provider.ts";
import type { DevicePlace } from "../../core/pinning/host-device.ts";
import type { MachineLayout } from "../../core/pinning/machine-layout.ts";
import { derivedProviderUuid } from "../../runtime/derived-provider-uuid.ts";
import { type MachineOptions, readMachine, treeOfMachine } from "./discover-machine.ts";
import type { HostConfig } from "./host-config.ts";
import type { HostSource, LookAtHosts } from "./host-source.ts";

/**
 * The machine that the agent runs on (or a copy of one) as its only host. Each look reads the machine. A value that was known once and cannot
 * be read later keeps its last known value. CPUs of the operator's sets that are lost later are left out; at the first look they are an error.
 */
export class DiscoveredHost implements HostSource {
  readonly isLive = true;
  readonly #options: MachineOptions;
  #known: InspectedHost | null = null;
  #layout: MachineLayout | null = null;

  constructor(options: MachineOptions) {
    this.#options = options;
  }

  look(): LookAtHosts {
    const read = readMachine(this.#options, this.#known);
    const known = this.#known === null ? read : keepKnown(this.#known, read);
    const { machine, tree, places, devices } = treeOfMachine(known, this.#options, {
      isRunning: this.#known !== null,
    });
    this.#known = known;
    this.#layout = {
      ...this.#layoutWith(tree.name, machine, places),
      devices: devicePlaces(tree.name, devices),
      deviceClasses: this.#deviceClasses(),
      deviceProviders: (machine.pci ?? []).map(({ address }) => deviceProviderUuid(tree.name, address)),
    };
    const architecture = this.#options.sysroot === null ? architectureOfMachine() : null;
    return { hosts: [hostOf(machine, tree, architecture)], warnings: machine.warnings };
  }

  layoutOf(): MachineLayout | null {
    return this.#layout;
  }

  #deviceClasses(): readonly string[] {
    const { pciDevices, mdevClasses } = this.#options;
    const named = [
      ...(pciDevices ?? []).map((one) => one.resourceClass),
      ...(mdevClasses ?? []).map((one) => one.value),
    ];
    return [...new Set(named.filter((name) => name !== null))];
  }

  /**
   * Guests without dedicated CPUs are kept to the shared CPUs of their provider. A machine whose only provider has all CPUs, and that names no set,
   * leaves the choice to the kernel.
   */
  #layoutWith(root: string, { cpu }: InspectedHost, places: readonly TreePlace[]): MachineLayout {
    const { flat, cpuSharedSet, cpuDedicatedSet } = this.#options;
    const isFree = places.length === 1 && cpuSharedSet === null && cpuDedicatedSet === null;
    return {
      places: places.map(({ node, dedicated, shared, pagesKib }) => ({
        provider: derivedProviderUuid(flat || node === null ? root : `${root}_${numaProviderName(node)}`),
        node,
        dedicated,
        shared: isFree ? null : shared,
        pagesKib,
      })),
      cores: cpu.siblings,
    };
  }
}

const deviceProviderUuid = (root: string, device: string): string => derivedProviderUuid(`${root}_${device}`);

function devicePlaces(root: string, devices: readonly DeviceProvider[]): readonly DevicePlace[] {
  return devices.flatMap(({ provider: { name }, functions, divided, vendorInfo, physicalNetwork }) => {
    const provider = deviceProviderUuid(root, name);
    return [
      ...Object.entries(functions).map(([resourceClass, addresses]) => ({
        provider,
        resourceClass,
        addresses,
        mdev: null,
        ...(vendorInfo !== null && { vendorInfo }),
        ...(physicalNetwork !== null && { physicalNetwork }),
      })),
      ...(divided === null ? [] : [mdevPlace(provider, name, divided)]),
    ];
  });
}

function mdevPlace(
  provider: string,
  parent: string,
  { type, resourceClass, heads }: NonNullable<DeviceProvider["divided"]>,
): DevicePlace {
  return { provider, resourceClass, addresses: [], mdev: { parent, type }, ...(heads > 0 && { headsOfEach: heads }) };
}

function hostOf(machine: InspectedHost, tree: TreeProvider, architecture: string | null): HostConfig {
  return {
    name: tree.name,
    inventories: { ...tree.inventories },
    traits: [...tree.traits],
    children: (tree.children ?? []).map((child) => ({
      name: child.name,
      inventories: { ...child.inventories },
      traits: [...child.traits],
      // A device keeps its provider when the host changes between a flat tree and one by NUMA nodes.
      children: (child.children ?? []).map(({ name, inventories, traits }) => ({
        ...{ name, inventories: { ...inventories }, traits: [...traits] },
        uuid: deviceProviderUuid(tree.name, name),
      })),
    })),
    hypervisor: {
      ...(architecture === null ? {} : { supported_instances: [[architecture, "fake", "hvm"]] }),
      cpu_info: cpuInfo(machine, architecture),
    },
  };
}

/** As Nova's cpu_info: sockets are counted for each NUMA node, cores for each socket and threads for each core. */
function cpuInfo(machine: InspectedHost, architecture: string | null): Readonly<Record<string, unknown>> {
  const { packages, cores, threads, numaNodes, cpu } = machine;
  const cells = numaNodes?.filter((node) => node.cpus?.length !== 0).length || 1;
  const share = (all: number | null, among: number | null) =>
    all === null || among === null ? null : Math.max(1, Math.floor(all / among));
  const topology = {
    cells,
    sockets: share(packages, cells),
    cores: share(cores, packages),
    threads: share(threads, cores),
  };
  return {
    ...(architecture === null ? {} : { arch: architecture }),
    ...(cpu.model === null ? {} : { model: cpu.model }),
    ...(cpu.vendor === null ? {} : { vendor: cpu.vendor }),
    topology: Object.fromEntries(Object.entries(topology).filter(([, count]) => count !== null)),
    features: cpu.flags ?? [],
  };
}
