import { link, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { writeConfigDrive } from "../../../adapters/qemu/config-drive.ts";
import { createDisk } from "../../../adapters/qemu/disk-image.ts";
import { type GuestRecord, loadGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { readyHostDevices } from "../../../adapters/qemu/host-devices.ts";
import type { BaseImage, ImageCache } from "../../../adapters/qemu/image-cache.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import type { QmpEvent } from "../../../adapters/qemu/qmp-client.ts";
import { listenForDisks, listenForMemory } from "../../../adapters/qemu/transfer.ts";
import { newTransferKey, useTransferKey } from "../../../adapters/qemu/transfer-key.ts";
import type { UserNetwork, VirtualMachine } from "../../../adapters/qemu/virtual-machine.ts";
import type { VolumeFiles } from "../../../adapters/qemu/volume-files.ts";
import { type GuestVolume, volumePlaces } from "../../../adapters/qemu/volume-places.ts";
import type { GuestPinning } from "../../../core/pinning/guest-pinning.ts";
import { diskImageOf } from "../../../core/tasks/server-spec.ts";
import { bootsFromVolume } from "../../../core/tasks/server-volumes.ts";
import type { ServerVolume } from "../../../proto/gen/berth/shared.ts";
import { movesMemory, type PrepareControl, type PrepareOrder, staysPaused } from "../driver.ts";
import type { GuestDirs } from "./guest-dirs.ts";
import type { GuestFunctions } from "./guest-functions.ts";
import { ensureInterfaceSlots, followUserNetwork } from "./guest-interfaces.ts";
import { ensureFile, ensureVolumeBus, plugVolumes, reachedPlace } from "./guest-volumes.ts";
import {
  blankDisksOf,
  CONFIG_DRIVE,
  expectedImageOf,
  guestMetadataOf,
  type MachineDefaults,
  machineOf,
} from "./machine-of-server.ts";
import { blameKernel, readKernel } from "./read-kernel.ts";
import {
  baseMark,
  displayMark,
  formatTransferAddress,
  interfacesMark,
  rolesMark,
  TAKES_NOTHING,
} from "./transfer-address.ts";

export interface PreparerOptions {
  readonly program: string;
  readonly images: ImageCache;
  /** The files of volumes. Null on a host that has none. */
  readonly volumes: VolumeFiles | null;
  readonly defaults: MachineDefaults;
  /** The host's CPUs, memory and devices that were chosen for the guest. Absent when it may use all CPUs and memory, and has no devices. */
  readonly pinning: GuestPinning | undefined;
  /** What guests reach in QEMU's own network. */
  readonly userNetwork: UserNetwork;
  /** The address of this host at which prepared guests wait for others. */
  readonly transferHost: string;
  /** Whether transfers are encrypted, with a key for each that only the two hosts and their conductors know. */
  readonly hasSecretTransfers: boolean;
  /** The root of the files of /sys and /dev that describe the host's devices. */
  readonly sysroot: string;
  /** What the host's network cards know of the guest's virtual functions. */
  readonly functions: GuestFunctions;
  readonly dirs: GuestDirs;
}

const GIB = 1_024 ** 3;

/**
 * Builds the guest up to a QEMU that is halted. Returns the guest, and the address at which it waits for another one.
 */
export async function prepareGuest(
  options: PreparerOptions,
  order: PrepareOrder,
  control: PrepareControl & { readonly onEvent: (event: QmpEvent | null) => void },
): Promise<QemuGuest> {
  const { storage } = options.dirs;
  const dir = options.dirs.dirOf(order.attemptId);
  await storage.work(() => mkdir(dir, { recursive: true, mode: 0o700 }));
  // Each wait for a storage may have outlasted the order, and its server.
  control.signal.throwIfAborted();
  for (const volume of order.server.volumes) {
    await ensureFile(options.volumes, volume, { mayCreate: order.movedFrom === null });
    control.signal.throwIfAborted();
  }
  const shared = await sharedSourceOf(options, order);
  const built =
    shared === null ? await buildDisks(options, order, dir, control) : await linkDisks(options, shared, order, dir);
  control.signal.throwIfAborted();
  control.onStep("spawn");
  const { pinning, sysroot } = options;
  const record = {
    ...built,
    ...(pinning && { pinning }),
    host: order.host,
    serverUuid: order.serverUuid,
    attemptId: order.attemptId,
  };
  const receives = receivesOf(order, shared !== null);
  const volumes = volumePlaces(
    order.server.volumes.map(({ volumeId }) => volumeId),
    shared?.record.volumes,
  ).map((place) => volumeOf(place, order.server.volumes));
  const guest = await QemuGuest.create(
    dir,
    {
      ...{ ...record, volumes, isUnfinished: true, hasRun: false, runningIn: null },
      ...{ isSuspended: false, receives, listensAt: "", handedTo: null },
    },
    control.onEvent,
    storage,
  );
  control.signal.throwIfAborted();
  if (receives !== "memory") {
    await ensureVolumeBus(guest, options.volumes);
    await ensureInterfaceSlots(guest);
  }
  await followUserNetwork(guest, options.userNetwork);
  await readyHostDevices(pinning?.devices ?? [], sysroot);
  // The ports of a moved server belong to its present guest until this one is started.
  if (order.movedFrom === null) await options.functions.connect(guest, control.signal);
  // The server's present guest may have the devices open until it has stopped. A new server has none, and learns here whether QEMU can open them.
  const toBoot = { isReceiving: receives !== null, hasDevices: order.movedFrom === null, signal: control.signal };
  await guest.boot(options.program, toBoot).catch(async (error: unknown) => {
    const from = { images: options.images, image: order.server, signal: control.signal };
    throw await blameKernel(error, built.machine.kernel, from);
  });
  // Memory arrives only in a machine that has the same devices. QEMU does not lock the files for such a guest before it is started. Any other
  // guest gets its volumes when it is started, because until then the guest from which it comes may have them.
  if (receives === "memory") await plugVolumes(guest, options.volumes);
  const listensAt = await listen(options, guest, {
    hasSharedDisks: shared !== null,
    isMoved: order.movedFrom !== null,
    isPaused: staysPaused(order),
  });
  await guest.change({ listensAt, isUnfinished: undefined });
  return guest;
}

/**
 * The record of the guest that moves here, if its files are visible on this host because both hosts have the same directory. Only a live move
 * and an evacuation continue with the same disks. Every other move keeps the source's disks as they are, so that it can be reverted.
 */
async function sharedSourceOf(
  { dirs }: PreparerOptions,
  { movedFrom, serverUuid }: PrepareOrder,
): Promise<SharedSource | null> {
  if (movedFrom === null || !(movesMemory({ movedFrom }) || movedFrom.by === "evacuate")) return null;
  const dir = dirs.dirOf(movedFrom.attemptId);
  const record = await dirs.storage.work(() => loadGuestRecord(dir));
  const isIt = record?.host === movedFrom.host && record.serverUuid === serverUuid;
  return record !== null && isIt ? { dir, record } : null;
}

interface SharedSource {
  readonly dir: string;
  readonly record: GuestRecord;
}
type Built = Pick<GuestRecord, "machine" | "baseSha512">;

/**
 * Gives the new guest names of its own for the same files, so that destroying either guest leaves the other one's disks. QEMU locks the files
 * themselves: only one of the two guests can run.
 */
async function linkDisks(
  options: PreparerOptions,
  { dir: from, record }: SharedSource,
  order: PrepareOrder,
  dir: string,
): Promise<Built> {
  const { machine, baseSha512 } = record;
  const files = [
    ...machine.disks.map(({ file }) => file),
    ...(machine.configDrive === null ? [] : [machine.configDrive]),
  ];
  for (const file of files) await options.dirs.storage.work(() => link(join(from, file), join(dir, file)));
  const { accel } = options.defaults;
  return { machine: { ...machine, name: order.attemptId, accel }, baseSha512 };
}

async function buildDisks(
  options: PreparerOptions,
  order: PrepareOrder,
  dir: string,
  control: PrepareControl,
): Promise<Built> {
  const { server } = order;
  const blankDisks = blankDisksOf(server);
  control.onStep("image");
  const kernel = await readKernel(options.images, server, control.signal);
  const { defaults } = options;
  const cpuModel = (await defaults.chooseCpuModel?.(server)) ?? defaults.cpuModel;
  const machine = withFinalErrors(() =>
    machineOf(server, { ...defaults, cpuModel, name: order.attemptId, blankDisks, kernel }),
  );
  const expected = expectedImageOf(diskImageOf(server));
  const base = expected === null ? null : await options.images.image(expected, control.signal);
  control.signal.throwIfAborted();
  control.onStep("disk");
  const [root, ...further] = bootsFromVolume(server) ? [undefined, ...machine.disks] : machine.disks;
  if (root !== undefined) await createDisk(join(dir, root.file), rootBytes(order, base), base);
  for (const [index, { bytes }] of blankDisks.entries())
    await createDisk(join(dir, further[index]?.file ?? ""), bytes, null);
  const write = () => writeConfigDrive(join(dir, CONFIG_DRIVE), guestMetadataOf(server), control.signal);
  await options.dirs.storage.work(write, { isSlow: true });
  const bus = options.volumes === null ? {} : { hasVolumeBus: true };
  return { machine: { ...machine, ...bus }, baseSha512: base?.sha512 ?? "" };
}

/** The place of a volume, with what else the guest's record keeps of it. */
function volumeOf({ volumeId, target, lun }: GuestVolume, volumes: readonly ServerVolume[]): GuestVolume {
  const place = { volumeId, target, lun };
  const volume = volumes.find((one) => one.volumeId === volumeId);
  return volume === undefined ? place : reachedPlace(place, volume);
}

/** Nova: a flavor without a disk takes the image's size, and an image that is larger than the flavor's disk is refused everywhere. */
function rootBytes({ server }: PrepareOrder, base: BaseImage | null): number {
  const bytes = (server.flavor?.diskGib ?? 0) * GIB;
  const needed = base?.virtualBytes ?? 0;
  if (bytes === 0 && needed > 0) return needed;
  if (bytes === 0) throw new QemuError("image", "the server has neither an image nor a disk", { isFinal: true });
  if (needed <= bytes) return bytes;
  const words = `Flavor's disk is too small for requested image. Flavor disk is ${bytes} bytes, image is ${needed} bytes.`;
  throw new QemuError("image", words, { isFinal: true });
}

function receivesOf({ movedFrom }: PrepareOrder, hasSharedDisks: boolean): GuestRecord["receives"] {
  if (movesMemory({ movedFrom })) return "memory";
  const isCold = movedFrom?.by === "resize" || movedFrom?.by === "migrate";
  return isCold && !hasSharedDisks ? "disks" : null;
}

async function listen(
  { transferHost: host, hasSecretTransfers: isSecret }: PreparerOptions,
  guest: QemuGuest,
  { hasSharedDisks, isMoved, isPaused }: Readonly<Record<"hasSharedDisks" | "isMoved" | "isPaused", boolean>>,
): Promise<string> {
  const { receives, baseSha512, machine } = guest.record;
  if (receives === null) return isMoved ? TAKES_NOTHING : "";
  const key = isSecret ? newTransferKey() : null;
  if (key !== null) await useTransferKey(guest, key, "server");
  const memoryPort = receives === "memory" ? await listenForMemory(guest, { host, isSecret, isPaused }) : null;
  const disksPort = hasSharedDisks ? null : await listenForDisks(guest, { host, isSecret });
  return formatTransferAddress({
    host,
    memoryPort,
    disksPort,
    base: baseMark(baseSha512),
    display: displayMark(machine),
    cpuModel: machine.cpuModel,
    key,
    hasVolumeBus: machine.hasVolumeBus === true,
    interfaces: interfacesMark(machine),
    roles: rolesMark(machine),
  });
}

/** Errors of `make` are the request's fault: no host could do better, so no alternate is tried. */
function withFinalErrors(make: () => VirtualMachine): VirtualMachine {
  try {
    return make();
  } catch (error) {
    throw new QemuError("image", (error as Error).message, { isFinal: true, cause: error });
  }
}
