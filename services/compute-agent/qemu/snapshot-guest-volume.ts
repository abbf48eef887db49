import { basename } from "node:path";
import type { VolumeFile as HostFile } from "../../../adapters/qemu/mounted-volumes.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { runTool } from "../../../adapters/qemu/run-tool.ts";
import type { VolumeFiles } from "../../../adapters/qemu/volume-files.ts";
import { addLayer, layersOf, leaveLayer, mergeLayers, mergeTop } from "../../../adapters/qemu/volume-layers.ts";
import type { GuestVolume } from "../../../adapters/qemu/volume-places.ts";
import type { SnapshotStep } from "../../../core/agent/power-verbs.ts";
import type { ServerVolume, VolumeFile, VolumeSnapshot } from "../../../proto/gen/berth/shared.ts";
import { NO_VOLUMES } from "../driver.ts";
import { mayChangeDevices } from "./guest-volumes.ts";

interface Control {
  readonly files: VolumeFiles | null;
  readonly signal: AbortSignal;
}

/**
 * The host's part in a snapshot of a volume in Cinder (`Driver.snapshotVolume`). The file to which the guest writes is that which its QEMU has open, whatever its record says; a guest without a
 * QEMU has that of its record.
 */
export async function snapshotGuestVolume(
  guest: QemuGuest,
  volume: ServerVolume,
  { snapshot, step }: { readonly snapshot: VolumeSnapshot; readonly step: SnapshotStep },
  { files, signal }: Control,
): Promise<void> {
  if (files === null) throw new QemuError("unavailable", NO_VOLUMES);
  const { volumeId } = volume;
  const place = guest.record.volumes?.find((one) => one.volumeId === volumeId);
  if (place?.connection === undefined) {
    // A guest without the volume writes to none of its files, so it need not go back to one.
    if (step === "return") return;
    throw new QemuError("state", `the guest does not have volume ${volumeId} of Cinder`);
  }
  if (place.replacement !== undefined)
    throw new QemuError("state", `volume ${volumeId} is being replaced by another one`);
  const hasQemu = await mayChangeDevices(guest, "volumes");
  const host = { files, signal, hasQemu };
  switch (step) {
    case "switch":
      return switchTo(guest, place, volume, snapshot.newFile, host);
    case "return":
      return returnFrom(guest, { ...place, connection: place.connection }, snapshot.newFile, host);
    case "merge": {
      if (!hasQemu)
        throw new QemuError("state", "the guest does not run, so its files are not merged: start the server");
      const named = await fileAt(files, volumeId, volume.connection);
      refuseOther(await usedPath(guest, place, host), named, volumeId);
      return mergeLayers(guest, volumeId, snapshot, signal);
    }
    default:
      step satisfies never;
  }
}

type Host = { readonly files: VolumeFiles; readonly signal: AbortSignal; readonly hasQemu: boolean };

/** The record names the new file before QEMU changes over to it: a guest that ends in between starts with the new one, beneath which is all that it has written. */
async function switchTo(
  guest: QemuGuest,
  place: GuestVolume,
  { volumeId, connection: present }: ServerVolume,
  newFile: string,
  host: Host,
): Promise<void> {
  const named = await fileAt(host.files, volumeId, present);
  const connection = withFile(present, { path: newFile, format: "qcow2" });
  const next = await fileAt(host.files, volumeId, connection);
  const used = await usedPath(guest, place, host);
  const isDone = used === next.path;
  if (!isDone && next.backing?.path !== named.path)
    throw new QemuError("storage", `${newFile} does not refer to ${basename(named.path)}, to which the guest writes`);
  if (!isDone) refuseOther(used, named, volumeId);
  host.signal.throwIfAborted();
  await change(guest, { ...place, connection });
  if (!host.hasQemu) return;
  try {
    await addLayer(guest, volumeId, next);
  } catch (error) {
    // If QEMU cannot be asked now, the record keeps the new file, which is right in either case.
    if (error instanceof QemuError) await change(guest, place).catch(() => undefined);
    throw error;
  }
}

/**
 * The former file gets what the new one has. The guest does not run for the moment in which QEMU changes over, so both files are the same until the record names the former one. The
 * record says so, for an agent that dies meanwhile.
 */
async function returnFrom(
  guest: QemuGuest,
  place: GuestVolume & { readonly connection: string },
  newFile: string,
  { files, signal, hasQemu }: Host,
): Promise<void> {
  const { volumeId } = place;
  const { isHalted: wasHalted = false, ...kept } = place;
  const recorded = await fileAt(files, volumeId, place.connection);
  const former = basename(recorded.path) === newFile ? recorded.backing : undefined;
  const back = former === undefined ? kept : { ...kept, connection: withFile(place.connection, former) };
  if (!hasQemu) {
    if (former === undefined) return;
    await runTool("qemu-img", ["commit", "-q", "-f", "qcow2", recorded.path], signal);
    return change(guest, back);
  }
  const [top, below] = (await layersOf(guest, volumeId)) ?? [];
  const isUsed = basename(top?.path ?? "") === newFile;
  if (!isUsed && former === undefined && !wasHalted) return;
  let isHalted = wasHalted;
  if (isUsed) {
    await mergeTop(guest, volumeId, signal);
    if ((await guest.state()) === "running") {
      isHalted = true;
      await change(guest, { ...place, isHalted });
      await guest.execute("stop");
    }
    if ((await leaveLayer(guest, volumeId)) !== below?.path)
      throw new QemuError("state", `QEMU did not go back to the former file of volume ${volumeId}`);
  }
  await change(guest, isHalted ? { ...back, isHalted } : back);
  if (!isHalted) return;
  await guest.execute("cont");
  await change(guest, back);
}

/** Makes sure that the guest has these files at its next start (`Driver.useFiles`). */
export async function useVolumeFiles(
  guest: QemuGuest,
  wanted: readonly VolumeFile[],
  files: VolumeFiles | null,
): Promise<void> {
  for (const { volumeId, file } of wanted) {
    const place = guest.record.volumes?.find((one) => one.volumeId === volumeId);
    if (place?.connection === undefined || nameIn(place.connection) === file) continue;
    if (files === null) throw new QemuError("unavailable", NO_VOLUMES);
    const connection = withFile(place.connection, { path: file, format: "qcow2" });
    const used = await fileAt(files, volumeId, place.connection);
    let one: HostFile | undefined = await fileAt(files, volumeId, connection);
    while (one !== undefined && one.path !== used.path) one = one.backing;
    if (one === undefined)
      throw new QemuError(
        "storage",
        `the guest has written to ${basename(used.path)}, to which the present file ${file} of volume ${volumeId} does not refer: see docs/cinder.md`,
      );
    await change(guest, { ...place, connection });
  }
}

/** The path of the file to which the guest writes. */
async function usedPath(guest: QemuGuest, { volumeId, connection = "" }: GuestVolume, host: Host): Promise<string> {
  if (!host.hasQemu) return (await fileAt(host.files, volumeId, connection)).path;
  const [top] = (await layersOf(guest, volumeId)) ?? [];
  if (top === undefined) throw new QemuError("state", `the guest's QEMU does not have volume ${volumeId}`);
  return top.path;
}

function refuseOther(used: string, named: HostFile, volumeId: string): void {
  if (used === named.path) return;
  throw new QemuError(
    "state",
    `the guest writes to ${basename(used)}, and Cinder names ${basename(named.path)} for volume ${volumeId}, so nothing is changed: see docs/cinder.md`,
  );
}

const fileAt = (files: VolumeFiles, volumeId: string, connection: string): Promise<HostFile> =>
  files.fileOf({ volumeId, sizeBytes: 0, inCinder: true, connection }, { mayCreate: false });

const change = (guest: QemuGuest, place: GuestVolume): Promise<void> =>
  guest.change({
    volumes: (guest.record.volumes ?? []).map((one) => (one.volumeId === place.volumeId ? place : one)),
  });

function nameIn(connection: string): unknown {
  return (JSON.parse(connection) as { readonly name?: unknown }).name;
}

/** The way to another file beside that of a connection. */
function withFile(connection: string, { path, format }: Pick<HostFile, "path" | "format">): string {
  const fields = JSON.parse(connection) as Readonly<Record<string, unknown>>;
  if (typeof fields.name !== "string")
    throw new QemuError(
      "storage",
      "only volumes of Cinder's drivers for shared file systems have snapshots of this kind",
    );
  return JSON.stringify({ ...fields, name: basename(path), format });
}
