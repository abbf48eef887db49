import { controlGroupFiles, GROUP_FILES } from "../../core/discovery/control-group.ts";
import type { HostFiles } from "../../core/discovery/host-files.ts";
import { DiskMeter } from "./disk-meter.ts";
import { Sysroot, type SysrootBounds } from "./sysroot.ts";

const SMALL_BYTES_MAX = 65_536;
/** Each CPU takes up to 4 KiB of this file. */
const CPUINFO_BYTES_MAX = 16 * 1024 ** 2;
/** A host of containers has thousands of mounts. */
const MOUNTS_BYTES_MAX = 4 * 1024 ** 2;
const BOUNDS: SysrootBounds = { entriesPerDirectory: 16_384, reads: 1_000_000 };

const CPU = "/sys/devices/system/cpu";
const NODE = "/sys/devices/system/node";
const PCI = "/sys/bus/pci/devices";

/** Files that are read where they exist. A `*` stands for each entry of its directory, and `cpu#` for each entry named cpu and a number. */
const TEXTS: readonly string[] = [
  "/proc/meminfo",
  ...["online", "present", "isolated"].map((name) => `${CPU}/${name}`),
  ...["online", "cpu_capacity"].map((name) => `${CPU}/cpu#/${name}`),
  ...["package_cpus", "core_siblings", "core_cpus", "thread_siblings"].flatMap((name) => [
    `${CPU}/cpu#/topology/${name}`,
    `${CPU}/cpu#/topology/${name}_list`,
  ]),
  ...["physical_package_id", "core_id"].map((name) => `${CPU}/cpu#/topology/${name}`),
  ...["core", "lowpower", "atom"].map((name) => `/sys/devices/cpu_${name}/cpus`),
  `${NODE}/online`,
  ...["cpulist", "cpumap", "meminfo", "distance"].map((name) => `${NODE}/node#/${name}`),
  ...["nr", "free"].flatMap((kind) => [
    `${NODE}/node#/hugepages/*/${kind}_hugepages`,
    `/sys/kernel/mm/hugepages/*/${kind}_hugepages`,
  ]),
  "/proc/driver/nvidia/gpus/*/numa_status",
  ...["vendor", "device", "class", "subsystem_vendor", "subsystem_device"].map((name) => `${PCI}/*/${name}`),
  ...["numa_node", "sriov_totalvfs", "sriov_numvfs"].map((name) => `${PCI}/*/${name}`),
  ...["address", "speed"].map((name) => `${PCI}/*/net/*/${name}`),
  ...["name", "device_api", "description", "available_instances"].map(
    (name) => `${PCI}/*/mdev_supported_types/*/${name}`,
  ),
  ...["current_vgpu_type", "creatable_vgpu_types"].map((name) => `${PCI}/*/nvidia/${name}`),
  ...["sys_vendor", "product_name", "bios_vendor", "bios_version", "bios_date"].map(
    (name) => `/sys/class/dmi/id/${name}`,
  ),
  "/sys/class/tpm/tpm#/tpm_version_major",
  ...["sev", "sev_es", "sev_snp"].map((name) => `/sys/module/kvm_amd/parameters/${name}`),
  "/sys/fs/cgroup/misc.capacity",
];

const DIRECTORIES: readonly string[] = [
  `${CPU}/cpu#/topology`,
  `${PCI}/*`,
  `${PCI}/*/mdev_supported_types/*/devices`,
  ...["/sys/firmware", "/sys/class/tpm", "/sys/module", "/sys/kernel/mm/hugepages", `${NODE}/node#/hugepages`],
];

const LINKS: readonly string[] = [
  `${PCI}/*/driver`,
  `${PCI}/*/iommu_group`,
  `${PCI}/*/physfn`,
  `${PCI}/*/net/*/master`,
];

const disks = new DiskMeter();

export interface HostFilesSource {
  /** The directory that stands for the host's root. Null means this machine. */
  readonly sysroot: string | null;
  /** Directory of the guests' disks. Only this machine's file systems can be asked for their size. */
  readonly instancesPath: string;
}

/**
 * Copies the files of /proc and /sys that describe a host into memory. It reads only named files, each up to a bound, and nothing outside
 * the sysroot. Throws if the sysroot is not a directory.
 */
export function readHostFiles(source: HostFilesSource): HostFiles {
  const reader = new HostFilesReader(new Sysroot(source.sysroot ?? "/", BOUNDS));
  return { ...reader.read(), diskBytes: source.sysroot === null ? disks.measure(source.instancesPath) : null };
}

class HostFilesReader {
  readonly #sysroot: Sysroot;
  readonly #texts = new Map<string, string>();
  readonly #links = new Map<string, string>();
  /** The value is undefined for a directory that does not exist, so that each is looked up only once. */
  readonly #entries = new Map<string, readonly string[] | undefined>();

  constructor(sysroot: Sysroot) {
    this.#sysroot = sysroot;
  }

  read(): Omit<HostFiles, "diskBytes"> {
    for (const pattern of TEXTS) for (const path of this.#expand(pattern)) this.#readText(path, SMALL_BYTES_MAX);
    this.#readText("/proc/cpuinfo", CPUINFO_BYTES_MAX);
    for (const pattern of DIRECTORIES) for (const path of this.#expand(pattern)) this.#list(path);
    for (const path of LINKS.flatMap((pattern) => this.#expand(pattern))) this.#readLink(path);
    // The links of a physical function name its virtual functions.
    for (const directory of this.#expand(`${PCI}/*`)) {
      for (const name of this.#list(directory)) if (/^virtfn\d+$/.test(name)) this.#readLink(`${directory}/${name}`);
    }
    this.#readControlGroup();
    const entries = [...this.#entries].flatMap(([path, names]) =>
      names === undefined ? [] : [[path, names] as const],
    );
    return { texts: this.#texts, links: this.#links, entries: new Map(entries), unread: this.#sysroot.unread };
  }

  /** Other files say where those of the group are. */
  #readControlGroup(): void {
    const { cpuset, cgroup, mountInfo, mounts } = GROUP_FILES;
    for (const path of [cpuset, cgroup]) this.#readText(path, SMALL_BYTES_MAX);
    this.#readText(mountInfo, MOUNTS_BYTES_MAX);
    if (!this.#texts.has(mountInfo)) this.#readText(mounts, MOUNTS_BYTES_MAX);
    for (const path of controlGroupFiles(this.#texts)) this.#readText(path, SMALL_BYTES_MAX);
  }

  /** The paths that match a pattern. The last part of a path need not exist. */
  #expand(pattern: string): readonly string[] {
    const [, before = "", wanted, after = ""] = /^(.*?)\/([^/]*[*#])(\/.*)?$/.exec(pattern) ?? [];
    if (wanted === undefined) return [pattern];
    const prefix = wanted.slice(0, -1);
    return this.#list(before)
      .filter((name) => wanted === "*" || (name.startsWith(prefix) && /^\d{1,6}$/.test(name.slice(prefix.length))))
      .flatMap((name) => this.#expand(`${before}/${name}${after}`));
  }

  #list(path: string): readonly string[] {
    if (!this.#entries.has(path))
      this.#entries.set(path, this.#isListedAbove(path) ? this.#sysroot.entries(path) : undefined);
    return this.#entries.get(path) ?? [];
  }

  #readText(path: string, bytesMax: number): void {
    if (!this.#isListedAbove(path)) return;
    const text = this.#sysroot.text(path, bytesMax);
    if (text !== undefined) this.#texts.set(path, text);
  }

  #readLink(path: string): void {
    if (!this.#isListedAbove(path)) return;
    const slash = path.lastIndexOf("/");
    const link = this.#sysroot.link(path.slice(0, slash), path.slice(slash + 1));
    if (link !== undefined) this.#links.set(path, link);
  }

  /** Returns false for a path that cannot exist, because its directory was listed without it or does not exist. That saves a look-up. */
  #isListedAbove(path: string): boolean {
    const slash = path.lastIndexOf("/");
    const directory = path.slice(0, slash);
    if (!this.#entries.has(directory)) return true;
    return this.#entries.get(directory)?.includes(path.slice(slash + 1)) ?? false;
  }
}
