import { randomUUID } from "node:crypto";
import type { NewAttachment, VolumeRecord } from "../../../../core/stores/api/volume-store.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, conflict } from "../../http/fault.ts";
import { statusOf } from "../../volume/volume-view.ts";
import { nextDevice, ROOT_DEVICE } from "../server-volumes/root-device.ts";
import { serverVolumeOf } from "../server-volumes/server-volume-of.ts";
import type { ServerVolumes } from "../server-volumes/server-volumes.ts";
import { volumeMissing, type WantedVolume } from "./read-block-devices.ts";

/** The attachments that a new server has reserved. */
export interface ReservedVolumes {
  readonly spec: ServerSpec;
  readonly ids: readonly string[];
}

/** An existing volume, and how a new server is to have it. */
export interface FoundVolume {
  readonly volume: VolumeRecord;
  readonly wanted: WantedVolume;
}

/**
 * Finds the volumes of a new server. Refuses (400) an unknown volume, one of another project, one that a server has, a boot disk that is not
 * bootable, and volumes for several servers.
 */
export async function findVolumes(
  store: Pick<ServerVolumes, "find"> | null,
  wanted: readonly WantedVolume[],
  { call, servers }: { readonly call: KnownCall; readonly servers: number },
): Promise<readonly FoundVolume[]> {
  if (wanted.length === 0) return [];
  if (servers > 1) throw badRequest("Cannot attach one or more volumes to multiple instances");
  const ids = wanted.map(({ volumeId }) => volumeId);
  const found = (await store?.find(ids, call)) ?? [];
  return wanted.map((one) => {
    const volume = found.find(({ id }) => id === one.volumeId);
    if (volume === undefined) throw volumeMissing(one.volumeId);
    refuseReserved(volume);
    if (one.isRoot && !volume.isBootable) throw badRequest(`Block Device ${volume.id} is not bootable.`);
    return { volume, wanted: one };
  });
}

/**
 * Reserves the volumes for a server that is about to be accepted, and writes them into its spec: all of them, or none with a 400. From then on no other
 * server gets them. If this process dies before the server is accepted, the settler of volumes takes them back.
 */
export async function reserveVolumes(
  store: ServerVolumes | null,
  spec: ServerSpec,
  { found, call }: { readonly found: readonly FoundVolume[]; readonly call: KnownCall },
): Promise<ReservedVolumes> {
  if (store === null || found.length === 0) return { spec, ids: [] };
  const devices = devicesOf(found);
  const ids: string[] = [];
  const volumes = [];
  for (const [index, { volume, wanted }] of found.entries()) {
    const attachment: NewAttachment = {
      ...{ serverUuid: spec.uuid, cell: "", taskId: spec.uuid, attachmentId: randomUUID(), mappingUuid: randomUUID() },
      ...{ device: devices[index] ?? "", tag: wanted.tag, deleteOnTermination: wanted.deleteOnTermination },
    };
    const outcome = await store.reserve(volume, attachment, call);
    if (outcome.kind !== "reserved") {
      await releaseVolumes(store, { spec, ids });
      if (outcome.kind === "refused") throw outcome.fault;
      const [now] = await store.volumes([volume.id]);
      if (now === undefined) throw volumeMissing(volume.id);
      refuseReserved(now);
      throw conflict(`Volume ${volume.id} kept changing; try again.`);
    }
    ids.push(volume.id);
    volumes.push({ ...serverVolumeOf({ ...volume, attachment: outcome.attachment }), isRoot: wanted.isRoot });
  }
  const isVolumeBacked = volumes.some(({ isRoot }) => isRoot);
  return { spec: { ...spec, volumes, ...(isVolumeBacked && { imageRef: "", imageProperties: {} }) }, ids };
}

/** Takes back the volumes of a server that was not accepted. */
export async function releaseVolumes(
  store: Pick<ServerVolumes, "release"> | null,
  { spec, ids }: ReservedVolumes,
): Promise<void> {
  for (const id of ids) await store?.release(id, spec.uuid);
}

/** The device of each volume: the root device for the boot disk, the one that was asked for, or else the next free one. */
function devicesOf(found: readonly FoundVolume[]): readonly string[] {
  const used = new Set([ROOT_DEVICE]);
  for (const { wanted } of found) {
    if (wanted.isRoot || wanted.device === null) continue;
    if (used.has(wanted.device))
      throw badRequest(`Block Device Mapping is Invalid: the device ${wanted.device} is used twice.`);
    used.add(wanted.device);
  }
  return found.map(({ wanted: { isRoot, device } }) => {
    if (isRoot) return ROOT_DEVICE;
    const given = device ?? nextDevice(used);
    used.add(given);
    return given;
  });
}

function refuseReserved(volume: VolumeRecord): void {
  const { id, attachment } = volume;
  if (attachment !== null)
    throw badRequest(
      `Invalid volume: volume '${id}' status must be 'available'. Currently in '${statusOf(volume)}' status`,
    );
}
