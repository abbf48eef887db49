import { mkdirSync, statfsSync, writeFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { NANO_IMAGE_ID, nanoImage } from "../../adapters/qemu/nano-image.ts";
import { refuseMissingTools } from "../../adapters/qemu/refuse-missing-tools.ts";
import { systemClock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import { generateHosts, type HostConfig } from "../../services/compute-agent/host-config.ts";
import type { OwnedDriver } from "../../services/compute-agent/open-driver.ts";
import { openQemuDriver } from "../../services/compute-agent/qemu/open-qemu-driver.ts";
import type { QemuSettings } from "../../services/compute-agent/qemu/qemu-settings.ts";

const MIB = 1_048_576;
const GIB = 1_024 * MIB;
/** How many VCPUs of guests share a thread. The nano guest sleeps most of the time. */
const VCPUS_PER_THREAD = 8;

/** The directories of a cloud whose hosts run virtual machines. */
export interface VirtualHostsDirs {
  readonly instancesPath: string;
  readonly imagesPath: string;
  /** The files of volumes, which all hosts share. */
  readonly volumeDir: string;
}

/** Makes the directories, of which all but the given one are below the data directory, and puts the nano guest's image there. */
export function makeVirtualHostsDirs(dataDir: string, imagesPath: string): VirtualHostsDirs {
  const dirs = {
    instancesPath: join(dataDir, "instances"),
    imagesPath: resolve(imagesPath),
    volumeDir: join(dataDir, "volumes"),
  };
  for (const dir of Object.values(dirs)) mkdirSync(dir, { recursive: true });
  writeFileSync(nanoImageFile(dirs), nanoImage());
  return dirs;
}

/** The file of the nano guest's image. */
export function nanoImageFile({ imagesPath }: VirtualHostsDirs): string {
  return join(imagesPath, `${NANO_IMAGE_ID}.raw`);
}

/** Hosts that share this machine: each offers its part of the memory and of the free disk. */
export function virtualHosts(
  prefix: string,
  count: number,
  { instancesPath }: VirtualHostsDirs,
): readonly HostConfig[] {
  const { bavail, bsize } = statfsSync(instancesPath);
  // Half of the machine stays for everything else.
  const memory = Math.max(1, Math.floor(totalmem() / MIB / 2 / count));
  const disk = Math.max(1, Math.floor((bavail * bsize) / GIB / 2 / count));
  const inventories = {
    VCPU: { total: availableParallelism(), allocation_ratio: VCPUS_PER_THREAD },
    MEMORY_MB: { total: memory },
    DISK_GB: { total: disk },
  };
  return generateHosts(prefix, count).map((host) => ({ ...host, inventories, hypervisor: { type: "QEMU" } }));
}

/** Opens the driver of such hosts. Throws a SettingsError when QEMU or one of its tools is not installed. */
export function openVirtualHosts(
  settings: Omit<QemuSettings, "imagesPath" | "imageCache" | "volumeDir" | "volumeMounts">,
  dirs: VirtualHostsDirs,
  logger: Logger,
): (hosts: readonly HostConfig[]) => OwnedDriver {
  refuseMissingTools();
  const { driver, close } = openQemuDriver(
    { ...settings, ...dirs, imageCache: null, sysroot: null, volumeMounts: null },
    { clock: systemClock, logger },
  );
  return (hosts) => {
    const names = new Set(hosts.map(({ name }) => name));
    return { driver, guests: () => driver.guests(names), close };
  };
}
