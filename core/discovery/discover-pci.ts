import type { HostFiles, Warn } from "./host-files.ts";
import { parseCount, parseInteger, parsePciId, parseWord } from "./parse-values.ts";

const DEVICES = "/sys/bus/pci/devices";

/** A network interface of a device. Its physical network is not in /sys: operators name it. */
export interface PciNic {
  readonly name: string;
  readonly macAddress: string | null;
  /** Null when the interface has no link, too. */
  readonly speedMbps: number | null;
  /** The bridge or bond that the interface belongs to. */
  readonly master: string | null;
}

/** A kind of mediated device (vGPU) that a device can be divided into. */
export interface MdevType {
  readonly type: string;
  readonly name: string | null;
  readonly deviceApi: string | null;
  readonly description: string | null;
  /** How many more of them can be created. */
  readonly available: number | null;
  readonly existing: number | null;
}

/** A PCI function. Null means unknown, unless the field's comment adds another meaning. */
export interface PciDevice {
  readonly address: string;
  /** Four hexadecimal digits. */
  readonly vendor: string | null;
  readonly device: string | null;
  /** Six hexadecimal digits. */
  readonly class: string | null;
  readonly subsystemVendor: string | null;
  readonly subsystemDevice: string | null;
  /** Also null when the device belongs to no node. */
  readonly numaNode: number | null;
  /** Also null when the device has no driver. */
  readonly driver: string | null;
  /** Also null when the host has no IOMMU. */
  readonly iommuGroup: string | null;
  /** SR-IOV of a physical function, or null when the device has none. */
  readonly sriov: {
    readonly totalVfs: number | null;
    readonly numVfs: number | null;
    readonly vfs: readonly string[];
  } | null;
  /** The physical function of a virtual function; null for any other device. */
  readonly physicalFunction: string | null;
  readonly nics: readonly PciNic[];
  readonly mdevTypes: readonly MdevType[];
  /** The vGPU type that NVIDIA's driver has set on a function, and the types that it could be given, as the driver prints them. */
  readonly vgpu: { readonly current: string | null; readonly creatable: string | null } | null;
}

/** All PCI functions in the order of their addresses, or null when the bus cannot be read. */
export function discoverPci(files: HostFiles, warn: Warn): readonly PciDevice[] | null {
  const addresses = files.entries.get(DEVICES);
  if (addresses === undefined) {
    warn(`PCI devices are unknown: ${DEVICES} cannot be read`);
    return null;
  }
  return addresses
    .filter((name) => /^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/i.test(name))
    .sort()
    .map((address) => {
      const device = readDevice(files, address);
      if (device.vendor === null || device.device === null || device.class === null)
        warn(`PCI device ${address} is not known completely: its vendor, device or class cannot be read`);
      if (device.sriov !== null && (device.sriov.totalVfs === null || device.sriov.numVfs === null))
        warn(`the number of virtual functions of ${address} is unknown: sriov_totalvfs or sriov_numvfs cannot be read`);
      return device;
    });
}

function readDevice(files: HostFiles, address: string): PciDevice {
  const directory = `${DEVICES}/${address}`;
  const text = (name: string) => files.texts.get(`${directory}/${name}`);
  const names = files.entries.get(directory) ?? [];
  const link = (name: string) => files.links.get(`${directory}/${name}`) ?? null;
  const totalVfs = parseCount(text("sriov_totalvfs"));
  const isPhysical = names.includes("sriov_totalvfs");
  const node = parseInteger(text("numa_node"));
  return {
    address,
    vendor: parsePciId(text("vendor"), 4),
    device: parsePciId(text("device"), 4),
    class: parsePciId(text("class"), 6),
    subsystemVendor: parsePciId(text("subsystem_vendor"), 4),
    subsystemDevice: parsePciId(text("subsystem_device"), 4),
    numaNode: node === null || node < 0 ? null : node,
    driver: link("driver"),
    iommuGroup: link("iommu_group"),
    sriov: isPhysical
      ? { totalVfs, numVfs: parseCount(text("sriov_numvfs")), vfs: virtualFunctions(names, link) }
      : null,
    physicalFunction: link("physfn"),
    nics: (files.entries.get(`${directory}/net`) ?? []).map((name) => readNic(files, `${directory}/net/${name}`, name)),
    mdevTypes: (files.entries.get(`${directory}/mdev_supported_types`) ?? []).map((type) =>
      readMdevType(files, `${directory}/mdev_supported_types/${type}`, type),
    ),
    vgpu: names.includes("nvidia")
      ? {
          current: parseWord(text("nvidia/current_vgpu_type")),
          creatable: parseWord(text("nvidia/creatable_vgpu_types")),
        }
      : null,
  };
}

function virtualFunctions(names: readonly string[], link: (name: string) => string | null): readonly string[] {
  return names
    .filter((name) => /^virtfn\d+$/.test(name))
    .sort((a, b) => Number(a.slice(6)) - Number(b.slice(6)))
    .map(link)
    .filter((address) => address !== null);
}

function readNic(files: HostFiles, directory: string, name: string): PciNic {
  const speed = parseCount(files.texts.get(`${directory}/speed`));
  return {
    name,
    macAddress: parseWord(files.texts.get(`${directory}/address`)),
    // Without a link some drivers report -1 and others the greatest 32-bit number.
    speedMbps: speed === null || speed === 0 || speed >= 2 ** 31 ? null : speed,
    master: files.links.get(`${directory}/master`) ?? null,
  };
}

function readMdevType(files: HostFiles, directory: string, type: string): MdevType {
  const text = (name: string) => files.texts.get(`${directory}/${name}`);
  return {
    type,
    name: parseWord(text("name")),
    deviceApi: parseWord(text("device_api")),
    description: parseWord(text("description")),
    available: parseCount(text("available_instances")),
    existing: files.entries.get(`${directory}/devices`)?.length ?? null,
  };
}
