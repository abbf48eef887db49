import type { VolumeFile } from "../../../adapters/qemu/mounted-volumes.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { endVolumeCopy } from "../../../adapters/qemu/volume-copies.ts";
import type { VolumeFiles } from "../../../adapters/qemu/volume-files.ts";
import { type GuestVolume, volumePlaces } from "../../../adapters/qemu/volume-places.ts";
import { deviceOf, hasDevice, plugVolume, unplugVolume } from "../../../adapters/qemu/volume-plugs.ts";
import type { ServerVolume } from "../../../proto/gen/berth/shared.ts";
import { NO_VOLUMES } from "../driver.ts";

/**
 * Connects a volume to the guest, and makes the volume's file if there is none. A guest without a QEMU gets it at its next start. The record names
 * the volume before QEMU gets it, so that an agent that dies in between leaves no volume that its next process does not know of.
 */
export async function giveVolume(
  guest: QemuGuest,
  volume: ServerVolume,
  { files, signal }: { readonly files: VolumeFiles | null; readonly signal: AbortSignal },
): Promise<void> {
  if (files === null) throw new QemuError("unavailable", NO_VOLUMES);
  const { volumeId } = volume;
  const { volumes: before = [], machine } = guest.record;
  const hasQemu = await mayChangeDevices(guest, "volumes");
  if (hasQemu && machine.hasVolumeBus !== true)
    throw new QemuError(
      "state",
      "the guest was built without a controller for volumes: stop and start the server, and attach the volume again",
    );
  const file = await ensureFile(files, volume, { mayCreate: true });
  signal.throwIfAborted();
  const volumes = volumePlaces(
    [...before.map((one) => one.volumeId).filter((id) => id !== volumeId), volumeId],
    before,
  ).map((place) => (place.volumeId === volumeId ? reachedPlace(staying(place), volume) : staying(place)));
  const isNew = volumes.length > before.length;
  if (isNew || before.some(isLeaving) || volume.inCinder) await guest.change({ volumes });
  const place = volumes.find((one) => one.volumeId === volumeId);
  if (!hasQemu || place === undefined) return;
  try {
    await plugVolume(guest, place, async () => file);
  } catch (error) {
    // If QEMU cannot be asked now, the record keeps the volume, which the guest may have.
    if (isNew && error instanceof QemuError)
      await guest.change({ volumes: before.map(staying) }).catch(() => undefined);
    throw error;
  }
}

/**
 * Disconnects a volume from the guest. The record names the volume until QEMU does not have it, and says before QEMU is asked to release it that it leaves, so that an agent that dies in between does not
 * leave its next process to connect it again. If QEMU does not release it, the record says so until the next order at the latest.
 */
export async function takeVolume(guest: QemuGuest, volumeId: string, signal: AbortSignal): Promise<void> {
  const { volumes = [] } = guest.record;
  const isKnown = volumes.some((one) => one.volumeId === volumeId);
  if (!isKnown && (await guest.state()) === "absent") return;
  if (await mayChangeDevices(guest, "volumes")) {
    // A host that was fenced was not told to give a replacement up.
    if (volumes.some((one) => one.volumeId === volumeId && one.replacement !== undefined))
      await endVolumeCopy(guest, volumeId);
    const wasHalted = volumes.some((one) => one.volumeId === volumeId && one.isHalted === true);
    if (wasHalted && (await guest.state()) === "paused") await guest.execute("cont");
    const left = volumes.map((one) => (one.volumeId === volumeId ? { ...one, isLeaving: true } : staying(one)));
    if (isKnown) await guest.change({ volumes: left });
    try {
      await unplugVolume(guest, volumeId, signal);
    } catch (error) {
      // The caller hears that the guest keeps the volume, and why. A record that cannot be written now is corrected by the next order.
      if (isKnown) await guest.change({ volumes: volumes.map(staying) }).catch(() => undefined);
      throw error;
    }
  }
  if (isKnown) await guest.change({ volumes: volumes.filter((one) => one.volumeId !== volumeId).map(staying) });
}

const isLeaving = (volume: GuestVolume): boolean => volume.isLeaving === true;
/** A server has one order at a time, so another volume whose disconnecting was begun is its server's still: that order was given up. */
const staying = ({ isLeaving: _, ...volume }: GuestVolume): GuestVolume => volume;

/**
 * Connects all volumes that the record names to the guest's QEMU, which must exist, also those that an agent was disconnecting when it died: nobody has said that the guest does not have them, so they are
 * its server's still. Does nothing for those that QEMU has.
 */
export async function plugVolumes(guest: QemuGuest, files: VolumeFiles | null): Promise<void> {
  await endReplacements(guest);
  const { volumes = [] } = guest.record;
  if (volumes.some(isLeaving)) await guest.change({ volumes: volumes.map(staying) });
  for (const volume of volumes) await plugVolume(guest, volume, () => recordedFile(files, volume));
}

/** The file of a volume that a guest's record names. */
export function recordedFile(files: VolumeFiles | null, { volumeId, connection }: GuestVolume): Promise<VolumeFile> {
  const reached = { inCinder: connection !== undefined, connection: connection ?? "" };
  const known = { volumeId, sizeBytes: 0, isRoot: false, imageRef: "", ...reached };
  return ensureFile(files, known, { mayCreate: false });
}

/** A QEMU that does not have a volume yet has no copy of it either, and was not halted for one: it gets the one for which the record is decided. */
async function endReplacements(guest: QemuGuest): Promise<void> {
  const { volumes = [] } = guest.record;
  for (const { volumeId, replacement, isHalted } of volumes) {
    if ((replacement === undefined && isHalted !== true) || (await hasDevice(guest, deviceOf(volumeId)))) continue;
    const without = ({ replacement: _, isHalted: _halted, ...kept }: GuestVolume): GuestVolume => kept;
    const now = guest.record.volumes ?? [];
    await guest.change({ volumes: now.map((one) => (one.volumeId === volumeId ? without(one) : one)) });
  }
}

/** Makes sure that a guest which is paused on purpose does not go on when the change of a volume is over for which it was halted. */
export async function forgetHalts(guest: QemuGuest): Promise<void> {
  const { volumes = [] } = guest.record;
  if (!volumes.some(({ isHalted }) => isHalted === true)) return;
  await guest.change({ volumes: volumes.map(({ isHalted: _, ...volume }) => volume) });
}

/** Gives the guest's machine a controller for volumes, if it has none and the host has volumes. The guest must have no QEMU, and no saved memory. */
export async function ensureVolumeBus(guest: QemuGuest, files: VolumeFiles | null): Promise<void> {
  const { machine } = guest.record;
  if (files !== null && machine.hasVolumeBus !== true)
    await guest.change({ machine: { ...machine, hasVolumeBus: true } });
}

/** The place of a volume with what the guest needs to know of it. The source of a move gets its server's boot volume again after the volume was replaced. */
export const reachedPlace = (place: GuestVolume, volume: ServerVolume): GuestVolume =>
  reachedBy(volume.isRoot ? { ...place, isRoot: true } : place, volume);

/** The volume's place with the way to it, if it is in Cinder, and whether other guests may have it. */
const reachedBy = (place: GuestVolume, { inCinder, connection, isMultiattach }: ServerVolume): GuestVolume =>
  inCinder ? { ...place, connection, ...(isMultiattach && { isShared: true }) } : place;

/** The file of a volume. Rejects with a QemuError for a volume that this driver cannot provide. */
export async function ensureFile(
  files: VolumeFiles | null,
  volume: Pick<ServerVolume, "volumeId" | "sizeBytes" | "isRoot" | "imageRef" | "inCinder" | "connection">,
  { mayCreate }: { readonly mayCreate: boolean },
): Promise<VolumeFile> {
  if (files === null) throw new QemuError("unavailable", NO_VOLUMES);
  // Nothing can be booted from an empty file. A file whose content comes from an image cannot be told from an empty one afterwards.
  const mayBeEmpty = !volume.isRoot && volume.imageRef === "";
  return files.fileOf(volume, { mayCreate: mayCreate && mayBeEmpty });
}

/**
 * Whether the guest has a QEMU whose volumes or interfaces can be changed; without one only its record changes. Rejects while neither can be done. `what` is
 * "volumes" or "interfaces".
 */
export async function mayChangeDevices(guest: QemuGuest, what: string): Promise<boolean> {
  const { isSuspended, receives } = guest.record;
  if (isSuspended)
    throw new QemuError(
      "state",
      `the guest is suspended, and its saved memory needs its present ${what}: resume it first`,
    );
  const state = await guest.state();
  if (receives === "memory") throw new QemuError("state", "the guest waits for the memory of another one");
  if (state === "starting") throw new QemuError("state", "the guest's QEMU does not answer");
  if (state === "postmigrate") throw new QemuError("state", "the guest was handed over to another host");
  return state !== "absent";
}
