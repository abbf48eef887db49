import { setTimeout as delay } from "node:timers/promises";
import { blockNodes, hasExternalData, removeNode } from "./block-nodes.ts";
import type { VolumeFile } from "./mounted-volumes.ts";
import { QemuError } from "./qemu-error.ts";
import type { QemuMonitor } from "./qemu-guest.ts";
import { QmpError } from "./qmp-error.ts";
import { VOLUME_BUS } from "./virtual-machine.ts";
import type { GuestVolume } from "./volume-places.ts";

const POLL_MS = 20;
/** How long QEMU may need to finish the guest's last writes to a volume that is unplugged. */
const UNPLUG_MS = 30_000;
/** How long QEMU may use the file of a volume whose device has gone. */
const REMOVE_MS = 10_000;

/**
 * The names of a volume's nodes in QEMU: that with which the guest begins, and that of a copy, which the guest may use later. A name may have 31
 * characters, which a UUID with a word before it exceeds.
 */
export const nodesOf = (volumeId: string): readonly [string, string] => {
  const node = `volume-${Buffer.from(volumeId.replaceAll("-", ""), "hex").toString("base64url")}`;
  return [node, `${node}-2`];
};
export const deviceOf = (volumeId: string): string => `volume-${volumeId}`;

/**
 * Connects a volume to a guest whose QEMU exists: one that runs, is halted, or waits for another guest's memory. Does nothing if QEMU has the volume
 * already; otherwise `fileOf` tells its file. The device's serial number is the volume's id. QEMU locks the file, except for a guest that
 * waits, and refuses it while another guest has it, unless both share it. After a QemuError QEMU does not have the volume; after another error it may have it.
 */
export async function plugVolume(
  guest: QemuMonitor,
  volume: GuestVolume,
  fileOf: () => Promise<VolumeFile>,
): Promise<void> {
  const { volumeId, target, lun, isRoot, isShared = false } = volume;
  const [[node], device] = [nodesOf(volumeId), deviceOf(volumeId)];
  if (await hasDevice(guest, device)) return;
  const file = await fileOf();
  if (isShared && file.format !== "raw")
    throw new QemuError(
      "storage",
      `volume ${volumeId} is a ${file.format} file, which only one guest can have at a time: use a raw one for a volume of several servers`,
    );
  // An agent that died in the middle left a node, perhaps with another path.
  for (const untilMs = performance.now() + REMOVE_MS; !(await areRemoved(guest, volumeId)); await delay(POLL_MS)) {
    if (performance.now() > untilMs)
      throw new QemuError("state", `QEMU did not close a former file of volume ${volumeId} in ${REMOVE_MS / 1_000} s`);
  }
  try {
    await addVolumeNode(guest, { volumeId, node, file, isShared });
    await guest.execute("device_add", {
      ...{ driver: "scsi-hd", id: device, drive: node, bus: `${VOLUME_BUS}.0`, channel: 0, "scsi-id": target, lun },
      ...{ serial: volumeId, device_id: volumeId },
      // The disks of the machine are numbered from 1 on.
      ...(isRoot === true && { bootindex: 0 }),
      ...(isShared && { "share-rw": true }),
    });
  } catch (error) {
    if (!(error instanceof QmpError) || error.code !== "refused") throw error;
    await removeNode(guest, node);
    const why = / lock$/.test(error.message) ? "another guest has it connected" : "QEMU refuses it";
    throw new QemuError("storage", `volume ${volumeId} cannot be connected: ${why} (${error.message})`, {
      cause: error,
    });
  }
}

/** Opens a volume's file, which the guest does not have yet. Rejects with a QemuError if it refers to a file that is not its own. */
export async function addVolumeNode(
  guest: QemuMonitor,
  {
    volumeId,
    node,
    file,
    isShared,
  }: { readonly volumeId: string; readonly node: string; readonly file: VolumeFile; readonly isShared: boolean },
): Promise<void> {
  await guest.execute("blockdev-add", { "node-name": node, ...blockdevOf(file), ...(isShared && UNCACHED) });
  if (file.format === "qcow2") await refuseExternalData(guest, node, volumeId);
}

/** Guests of other hosts do not see what this host has cached in its memory. */
const UNCACHED = { cache: { direct: true } };

/** QEMU is told of all files, so that it follows no header, which a guest elsewhere may have changed since it was read. */
function blockdevOf({ path, format, backing }: VolumeFile): object {
  const file = { driver: "file", filename: path, locking: "on", discard: "unmap" };
  const behind = backing === undefined ? null : { ...blockdevOf(backing), "read-only": true };
  return { driver: format, discard: "unmap", file, ...(format === "qcow2" && { backing: behind }) };
}

/** The guest does not have the volume yet. */
async function refuseExternalData(guest: QemuMonitor, node: string, volumeId: string): Promise<void> {
  if (!(await hasExternalData(guest, node))) return;
  await removeNode(guest, node);
  throw new QemuError("storage", `volume ${volumeId} is not used: it keeps its data in another file`);
}

/**
 * Disconnects a volume from a guest whose QEMU exists, without asking the guest, and closes the file. Does nothing if QEMU does not have the
 * volume. Rejects with a QemuError if QEMU does not release it in time.
 */
export async function unplugVolume(guest: QemuMonitor, volumeId: string, signal: AbortSignal): Promise<void> {
  const device = deviceOf(volumeId);
  const untilMs = performance.now() + UNPLUG_MS;
  // A device that is asked to go once more, because an earlier process has asked already, refuses that while it goes.
  if (await hasDevice(guest, device)) await unlessRefused(guest.execute("device_del", { id: device }));
  for (;;) {
    if (!(await hasDevice(guest, device)) && (await areRemoved(guest, volumeId))) return;
    signal.throwIfAborted();
    if (performance.now() > untilMs)
      throw new QemuError("state", `QEMU did not release volume ${volumeId} within ${UNPLUG_MS / 1_000} s`);
    await delay(POLL_MS);
  }
}

/** Whether QEMU has the device, also if it has been told to remove it. */
export async function hasDevice(guest: QemuMonitor, device: string): Promise<boolean> {
  const devices = (await guest.execute("qom-list", { path: "/machine/peripheral" })) as readonly { name: string }[];
  return devices.some(({ name }) => name === device);
}

/** Whether the volume's nodes are gone. QEMU refuses to remove one for a moment after its device has gone, and while another one refers to it. */
async function areRemoved(guest: QemuMonitor, volumeId: string): Promise<boolean> {
  for (const node of await volumeNodesIn(guest, volumeId))
    await unlessRefused(guest.execute("blockdev-del", { "node-name": node }));
  return (await volumeNodesIn(guest, volumeId)).length === 0;
}

/** The names of all nodes of the volume that QEMU has: those of `nodesOf`, and those of files that it got by snapshots. */
export async function volumeNodesIn(guest: QemuMonitor, volumeId: string): Promise<readonly string[]> {
  const [first] = nodesOf(volumeId);
  const names = (await blockNodes(guest)).map((one) => one["node-name"]);
  return names.filter((name) => name === first || (name.startsWith(`${first}-`) && name.length === first.length + 2));
}

/** Ignores that QEMU refuses a command. */
export async function unlessRefused(done: Promise<unknown>): Promise<void> {
  try {
    await done;
  } catch (error) {
    if (!(error instanceof QmpError) || error.code !== "refused") throw error;
  }
}
