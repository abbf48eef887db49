import type { VolumeRecord } from "../../../../core/stores/api/volume-store.ts";
import type { KnownCall } from "../../http/call.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { Fault } from "../../http/fault.ts";
import { isoMicroseconds } from "../../http/times.ts";
import { createVolume, deleteVolume, type VolumeDeps, volumeNotFound } from "../../volume/change-volumes.ts";
import { VOLUME_GIB_MAX } from "../../volume/volume-schemas.ts";
import { VOLUME_TYPE } from "../../volume/volume-type.ts";
import { statusOf } from "../../volume/volume-view.ts";
import type {
  ListPart,
  NewProxiedSnapshot,
  NewProxiedVolume,
  ProxiedSnapshot,
  ProxiedVolume,
  ProxiedVolumes,
} from "./proxied-volumes.ts";
import { invalidInput, snapshotNotFound } from "./proxy-faults.ts";

/** The volumes of Berth's own, which have no snapshots. */
export class OwnProxiedVolumes implements ProxiedVolumes {
  readonly #deps: VolumeDeps;

  constructor(deps: VolumeDeps) {
    this.#deps = deps;
  }

  async volumes(part: ListPart, { identity }: KnownCall): Promise<readonly ProxiedVolume[]> {
    return (await this.#deps.store.listVolumes({ projectId: identity.projectId, ...part })).map(proxied);
  }

  async volume(id: string, { identity }: KnownCall): Promise<ProxiedVolume | null> {
    const [volume] = await this.#deps.store.volumes([storedSpelling(id)]);
    const isSeen = volume !== undefined && (identity.isAdmin || volume.projectId === identity.projectId);
    return isSeen ? proxied(volume) : null;
  }

  async createVolume({ sizeGib: size, ...wanted }: NewProxiedVolume, call: KnownCall): Promise<ProxiedVolume> {
    if (size < 1 || size > VOLUME_GIB_MAX)
      throw invalidInput(
        `Invalid input for field/attribute size. Value: ${size}. It is a number of GiB from 1 to ${VOLUME_GIB_MAX}.`,
      );
    const { name, description, metadata, volumeType, availabilityZone, snapshotId } = wanted;
    const volume = {
      ...{ size, name, description, metadata, snapshot_id: snapshotId },
      ...{ volume_type: volumeType, availability_zone: availabilityZone },
    };
    return proxied(await asCompute(() => createVolume(this.#deps, call, { volume })));
  }

  async deleteVolume(id: string, call: KnownCall): Promise<void> {
    // A volume that does not exist is unknown to both APIs.
    if ((await this.volume(id, call)) === null) throw volumeNotFound(id);
    await asCompute(() => deleteVolume(this.#deps, call, id));
  }

  async snapshots(): Promise<readonly ProxiedSnapshot[]> {
    return [];
  }

  async snapshot(): Promise<ProxiedSnapshot | null> {
    return null;
  }

  async createSnapshot({ volumeId }: NewProxiedSnapshot, call: KnownCall): Promise<ProxiedSnapshot> {
    if ((await this.volume(volumeId, call)) === null) throw volumeNotFound(volumeId);
    throw invalidInput(
      `Volume ${volumeId} cannot have snapshots: Berth's own volumes have none, and those of Cinder do.`,
    );
  }

  async deleteSnapshot(id: string): Promise<void> {
    throw snapshotNotFound(id);
  }
}

function proxied(volume: VolumeRecord): ProxiedVolume {
  const { id, name, description, sizeGib, availabilityZone, metadata, attachment } = volume;
  return {
    ...{ id, name, description, sizeGib, availabilityZone, metadata },
    ...{ status: statusOf(volume), createdAt: isoMicroseconds(volume.createdAtMs), volumeType: VOLUME_TYPE.name },
    snapshotId: null,
    // Only a server that was told that it has the volume is shown, as by the Block Storage API.
    holder:
      attachment === null || attachment.attachedAtMs === null
        ? null
        : { serverUuid: attachment.serverUuid, device: attachment.device },
  };
}

/** Does something of the Block Storage API, whose refusals have other statuses in the Compute API. */
async function asCompute<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    if (error.status === 413) throw new Fault(403, error.message);
    throw error.status === 400 || error.status === 404 ? invalidInput(error.message) : error;
  }
}
