import type { KnownCall } from "../../http/call.ts";
import { badRequest } from "../../http/fault.ts";
import { volumeNotFound } from "../../volume/change-volumes.ts";
import { statusOf } from "../../volume/volume-view.ts";
import { refuseOldMultiattach } from "../server-volumes/refuse-old-multiattach.ts";
import type { FoundRecord, ServerVolumes } from "../server-volumes/server-volumes.ts";
import { snapshotMissing, type WantedVolume } from "./read-block-devices.ts";

/** A volume that a new server gets. */
export interface FoundVolume {
  readonly wanted: WantedVolume;
  /** Null for one that is to be made. */
  readonly volume: FoundRecord | null;
  /** The properties of the image that an existing volume, or the volume of a snapshot, was filled from. */
  readonly imageProperties: Readonly<Record<string, string>>;
}

/** How many volumes one call makes at most, for all its servers together, so that it ends in time. A server may have as many block devices. */
const NEW_VOLUMES_MAX = 256;

/**
 * Finds the volumes of a new server, and what new volumes are made from. Refuses (400) an unknown volume or snapshot, one of another project, a volume that a
 * server has, a boot disk that is not bootable, an existing volume for several servers, and more new volumes than one call may make.
 */
export async function findVolumes(
  store: Pick<ServerVolumes, "find" | "snapshotted"> | null,
  wanted: readonly WantedVolume[],
  { call, servers }: { readonly call: KnownCall; readonly servers: number },
): Promise<readonly FoundVolume[]> {
  if (wanted.length === 0) return [];
  const ids = wanted.flatMap(({ source }) => (source.kind === "volume" ? source.id : []));
  if (servers > 1 && ids.length > 0) throw badRequest("Cannot attach one or more volumes to multiple instances");
  if (store === null && ids.length < wanted.length)
    throw badRequest("Block Device Mapping is Invalid: this cloud has no volumes. An operator can set BERTH_VOLUMES.");
  const made = servers * (wanted.length - ids.length);
  if (made > NEW_VOLUMES_MAX)
    throw badRequest(
      `Block Device Mapping is Invalid: ${servers} servers need ${made} new volumes, and one call makes ${NEW_VOLUMES_MAX} at most. Create fewer servers in one call.`,
    );
  const volumes = ids.length === 0 ? [] : ((await store?.find(ids, call)) ?? []);
  return Promise.all(wanted.map((one) => found(one, { store, volumes, call })));
}

async function found(
  wanted: WantedVolume,
  from: {
    readonly store: Pick<ServerVolumes, "snapshotted"> | null;
    readonly volumes: readonly FoundRecord[];
    readonly call: KnownCall;
  },
): Promise<FoundVolume> {
  const { source } = wanted;
  if (source.kind === "snapshot") {
    const snapshot = (await from.store?.snapshotted(source.id, from.call)) ?? null;
    if (snapshot === null) throw snapshotMissing(source.id);
    const { sizeGib, imageProperties } = snapshot;
    return { wanted: { ...wanted, sizeGib: wanted.sizeGib ?? sizeGib }, volume: null, imageProperties };
  }
  if (source.kind !== "volume") return { wanted, volume: null, imageProperties: {} };
  const volume = from.volumes.find(({ id }) => id === source.id);
  if (volume === undefined) throw badRequest(volumeNotFound(source.id).message);
  refuseReserved(volume);
  refuseOldMultiattach(volume, from.call.minor);
  if (wanted.isRoot && !volume.isBootable) throw badRequest(`Block Device ${volume.id} is not bootable.`);
  return { wanted, volume, imageProperties: volume.imageProperties };
}

/** Refuses a volume that a server has (400). */
export function refuseReserved(volume: Pick<FoundRecord, "id" | "attachment">): void {
  const { id, attachment } = volume;
  if (attachment !== null)
    throw badRequest(
      `Invalid volume: volume '${id}' status must be 'available'. Currently in '${statusOf(volume)}' status`,
    );
}
