import { accessSync, constants, existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type DevicePort, deviceName, type HostDevice, type MdevSource } from "../../core/pinning/host-device.ts";
import { QemuError } from "./qemu-error.ts";

const PCI = "sys/bus/pci/devices";
const MDEV = "sys/bus/mdev/devices";
const GROUPS = "sys/kernel/iommu_groups";
/** The driver that gives functions to guests, and those that are made of it for some vendor's functions. */
const VFIO_DRIVER = /vfio[-_]pci$/;
/** Drivers that leave the other functions of their group alone. */
const HARMLESS_DRIVERS: readonly string[] = ["pci-stub", "pcieport"];
/** The driver of NVIDIA's vGPUs without mediated devices, which gives functions to guests itself once a type is set. */
const NVIDIA_DRIVER = "nvidia";
const POLL_MS = 20;
/** How long the kernel may need to make a mediated device. */
const MADE_MS = 5_000;

/** Names a device in QEMU, by its port, or by its place among the guest's devices without ports, so that the names of the others stay when a port goes. */
export function hostDeviceId(devices: readonly HostDevice[], device: HostDevice): string {
  if (device.kind === "pci" && device.port !== undefined) return `port-${device.port.portId}`;
  const others = devices.filter((one) => one.kind !== "pci" || one.port === undefined);
  return `hostdev${others.indexOf(device)}`;
}

/**
 * The options of QEMU for the devices. They come after all others, so that the other devices of the guest stay in their places. `placeOf` returns the properties
 * that put a device into the slot of its port's interface, from which it can be taken while the guest runs.
 */
export function hostDeviceArguments(
  devices: readonly HostDevice[],
  placeOf: (port: DevicePort) => Readonly<Record<string, string>>,
): readonly string[] {
  return devices.flatMap((device) => {
    const source = device.kind === "pci" ? `host=${device.address}` : `sysfsdev=/${MDEV}/${device.uuid}`;
    const place = device.kind === "pci" && device.port !== undefined ? placeOf(device.port) : {};
    const properties = Object.entries({ id: hostDeviceId(devices, device), ...place });
    return ["-device", `vfio-pci,${[source, ...properties.map(([key, value]) => `${key}=${value}`)].join()}`];
  });
}

/**
 * Checks that a guest can be started with these devices, and makes its mediated devices if the host lacks them: a host forgets them when it
 * restarts. `root` is `/`, or a copy of a host's files. Rejects with a QemuError that says what the operator can do.
 */
export async function readyHostDevices(devices: readonly HostDevice[], root: string): Promise<void> {
  for (const device of devices) {
    if (device.kind === "pci") checkFunction(device.address, root);
    else await ensureMdev(device, root);
  }
}

/** The UUIDs of the mediated devices of a function and a type that the host has, whoever made them, in order. */
export function existingMdevs({ parent, type }: MdevSource, root: string): readonly string[] {
  return [...entriesOf(join(root, PCI, parent, "mdev_supported_types", type, "devices"))].sort();
}

/** Removes the mediated devices of a guest that is gone. One that the host does not have, or had before the guest, is left out. */
export function removeMdevs(devices: readonly HostDevice[], root: string): void {
  for (const device of devices) {
    const dir = join(root, MDEV, deviceName(device));
    if (device.kind === "mdev" && device.isFound !== true && existsSync(dir)) writeFileSync(join(dir, "remove"), "1");
  }
}

function checkFunction(address: string, root: string): void {
  const dir = join(root, PCI, address);
  if (!existsSync(dir))
    throw unavailable(
      `the host no longer has the guest's PCI device ${address}: look whether it is plugged in, or whether its virtual functions were made after the host's start`,
    );
  const driver = linkOf(join(dir, "driver"));
  if (!givesToGuests(driver, dir))
    throw unavailable(
      `PCI device ${address} is bound to ${driver === null ? "no driver" : `the driver ${driver}`}, and so cannot be given to the guest: bind it to vfio-pci (driverctl set-override ${address} vfio-pci)`,
    );
  const group = linkOf(join(dir, "iommu_group"));
  if (group === null)
    throw unavailable(
      `the host has no IOMMU for PCI device ${address}: switch it on in its firmware and its kernel (intel_iommu=on), and restart it`,
    );
  for (const other of entriesOf(join(root, GROUPS, group, "devices"))) {
    const user = other === address ? null : userOf(join(root, PCI, other));
    if (user !== null)
      throw unavailable(
        `PCI device ${address} shares its IOMMU group ${group} with ${other}, which the driver ${user} uses: bind that one to vfio-pci, too, or offer another device`,
      );
  }
  try {
    accessSync(join(root, "dev/vfio", group), constants.R_OK | constants.W_OK);
  } catch (error) {
    throw unavailable(
      `the agent may not open /dev/vfio/${group} of PCI device ${address} (${(error as Error).message}): give its user the right to read and write it`,
    );
  }
}

function givesToGuests(driver: string | null, dir: string): boolean {
  if (driver === null) return false;
  if (VFIO_DRIVER.test(driver)) return true;
  return driver === NVIDIA_DRIVER && /[1-9]/.test(textOf(join(dir, "nvidia/current_vgpu_type")));
}

/** The driver that uses a function for the host itself, or null. */
function userOf(dir: string): string | null {
  const driver = linkOf(join(dir, "driver"));
  return driver === null || HARMLESS_DRIVERS.includes(driver) || givesToGuests(driver, dir) ? null : driver;
}

async function ensureMdev({ uuid, parent, type }: HostDevice & { kind: "mdev" }, root: string): Promise<void> {
  const device = join(root, MDEV, uuid);
  if (existsSync(device)) return;
  const create = join(root, PCI, parent, "mdev_supported_types", type, "create");
  try {
    writeFileSync(create, uuid, { flag: "r+" });
  } catch (error) {
    throw unavailable(
      `the host cannot make a ${type} of ${parent} for the guest (${(error as Error).message}): look at available_instances of the type, and at the rights of the agent's user`,
    );
  }
  for (let waited = 0; !existsSync(device); waited += POLL_MS) {
    if (waited >= MADE_MS) throw unavailable(`the host did not make the ${type} ${uuid} of ${parent} for the guest`);
    await delay(POLL_MS);
  }
}

function linkOf(path: string): string | null {
  try {
    return basename(readlinkSync(path));
  } catch {
    return null;
  }
}

function entriesOf(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

const unavailable = (reason: string): QemuError => new QemuError("unavailable", reason);
