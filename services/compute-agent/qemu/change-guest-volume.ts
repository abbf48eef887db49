import { extendVolume } from "../../../adapters/qemu/extend-volume.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { copyVolume, endVolumeCopy, isCopied, useCopy } from "../../../adapters/qemu/volume-copies.ts";
import type { VolumeFiles } from "../../../adapters/qemu/volume-files.ts";
import type { GuestVolume } from "../../../adapters/qemu/volume-places.ts";
import type { VolumeStep } from "../../../core/agent/power-verbs.ts";
import type { ServerVolume } from "../../../proto/gen/berth/shared.ts";
import { LacksVolumeError, NO_VOLUMES } from "../driver.ts";
import { mayChangeDevices } from "./guest-volumes.ts";

/**
 * Changes a volume of a guest (`Driver.changeVolume`). One of a guest that runs is replaced step by step. The record is decided for the other volume before QEMU changes over to it.
 * The guest is halted from before QEMU is asked whether the copy is complete until it has changed over. So if the agent, QEMU or the host dies meanwhile, also several of them, and even if the copying fails in
 * that moment, the guest starts with a volume that has all that it has written. If only the agent dies, the guest stands still until the order is repeated, or until the replacement is called off.
 */
export async function changeGuestVolume(
  guest: QemuGuest,
  volume: ServerVolume,
  step: VolumeStep,
  control: { readonly files: VolumeFiles | null; readonly signal: AbortSignal },
): Promise<void> {
  const { volumeId, replacedBy } = volume;
  const place = guest.record.volumes?.find((one) => one.volumeId === volumeId);
  if (place === undefined) throw new LacksVolumeError(volumeId);
  const isReplaced = place.replacedBy === replacedBy && place.replacement === undefined;
  switch (step) {
    case "extend":
      if (await mayChangeDevices(guest, "volumes")) await extendVolume(guest, volumeId, volume.sizeBytes);
      return;
    case "mirror":
      return isReplaced ? goOn(guest, place) : mirror(guest, place, volume, control);
    case "pivot":
      return isReplaced ? goOn(guest, place) : pivot(guest, place, volume);
    case "keep":
      if (isReplaced || place.replacement?.isDecided === true)
        throw decidedFor(volumeId, place.replacement?.by ?? replacedBy);
      return keep(guest, place);
    default:
      step satisfies never;
  }
}

async function mirror(
  guest: QemuGuest,
  place: GuestVolume,
  volume: ServerVolume,
  { files, signal }: { readonly files: VolumeFiles | null; readonly signal: AbortSignal },
): Promise<void> {
  const { volumeId, replacedBy: by, connection } = volume;
  if (files === null) throw new QemuError("unavailable", NO_VOLUMES);
  if (place.isShared === true)
    throw new QemuError("state", `volume ${volumeId} is one of several servers, and cannot be replaced`);
  if (!(await mayChangeDevices(guest, "volumes"))) throw notRunning();
  if (place.replacement?.isDecided === true) {
    // A repetition of the order for the same one is a success.
    if (place.replacement.by === by) return;
    throw decidedFor(volumeId, place.replacement.by);
  }
  await goOn(guest, place);
  // The copy of an earlier replacement that was not called off here.
  if (place.replacement !== undefined && place.replacement.by !== by) await endVolumeCopy(guest, volumeId);
  const replacement = { by, connection, former: place.connection, node: null, isDecided: false };
  const { isRoot, imageRef } = volume;
  const other = { volumeId: by, sizeBytes: 0, isRoot, imageRef, inCinder: true, connection };
  const going = guest.record.volumes?.find((one) => one.volumeId === volumeId) ?? place;
  await change(guest, { ...going, replacement });
  const node = await copyVolume(guest, volumeId, () => files.fileOf(other, { mayCreate: false }), signal);
  await change(guest, { ...going, replacement: { ...replacement, node } });
}

async function pivot(guest: QemuGuest, place: GuestVolume, { volumeId, replacedBy }: ServerVolume): Promise<void> {
  const { replacement } = place;
  if (replacement === undefined || replacement.by !== replacedBy || replacement.node === null) throw noCopy(volumeId);
  const hasQemu = await mayChangeDevices(guest, "volumes");
  if (!replacement.isDecided && !hasQemu) throw notRunning();
  const { replacement: _, ...kept } = replacement.isDecided ? place : await haltCopied(guest, place);
  const replaced = { ...kept, connection: replacement.connection, replacedBy };
  const decided = { ...replaced, replacement: { ...replacement, isDecided: true } };
  if (!replacement.isDecided) await decide(guest, decided);
  if (hasQemu && !(await useCopy(guest, volumeId, replacement.node))) {
    await endVolumeCopy(guest, volumeId);
    const { replacedBy: _former, ...own } = kept;
    const former = { ...own, connection: replacement.former };
    await change(guest, former);
    await goOn(guest, former);
    throw noCopy(volumeId);
  }
  // The guest uses the other volume alone from here on, so it does not wait until QEMU has closed the former one.
  await goOn(guest, decided);
  if (hasQemu) await endVolumeCopy(guest, volumeId);
  const { isHalted: _halted, ...going } = replaced;
  await change(guest, going);
}

/** A guest that was halted for this goes on if it cannot be recorded. One whose record is decided already does not, since it may not use the other volume yet. */
async function decide(guest: QemuGuest, decided: GuestVolume): Promise<void> {
  try {
    await change(guest, decided);
  } catch (error) {
    if (decided.isHalted === true) await guest.execute("cont");
    throw error;
  }
}

/** Halts a guest that runs, and makes sure that its volume and the copy are the same from then on. The record says first that the guest is halted, for an agent that dies meanwhile. */
async function haltCopied(guest: QemuGuest, place: GuestVolume): Promise<GuestVolume> {
  let halted = place;
  if ((await guest.state()) === "running") {
    halted = { ...place, isHalted: true };
    await change(guest, halted);
    await guest.execute("stop");
  }
  if (await isCopied(guest, place.volumeId)) return halted;
  await goOn(guest, halted);
  throw noCopy(place.volumeId);
}

/** Lets a guest go on that was halted for its volume. Does nothing for another one. */
async function goOn(guest: QemuGuest, place: GuestVolume): Promise<void> {
  const { isHalted, ...going } = place;
  if (isHalted !== true) return;
  if ((await guest.state()) === "paused") await guest.execute("cont");
  await change(guest, going);
}

async function keep(guest: QemuGuest, place: GuestVolume): Promise<void> {
  if (await mayChangeDevices(guest, "volumes")) await endVolumeCopy(guest, place.volumeId);
  const { replacement: _, ...kept } = place;
  await change(guest, kept);
  await goOn(guest, kept);
}

const change = (guest: QemuGuest, place: GuestVolume): Promise<void> =>
  guest.change({
    volumes: (guest.record.volumes ?? []).map((one) => (one.volumeId === place.volumeId ? place : one)),
  });

const decidedFor = (volumeId: string, by: string) =>
  new QemuError("state", `the guest uses volume ${by} in the place of volume ${volumeId} already`);
const notRunning = () => new QemuError("state", "the guest does not run, so its volume is not replaced");
const noCopy = (volumeId: string) =>
  new QemuError(
    "state",
    `there is no complete copy of volume ${volumeId}: the copying has failed, or the guest has ended`,
  );
