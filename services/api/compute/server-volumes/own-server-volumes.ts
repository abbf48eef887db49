import type { NewAttachment, VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, Fault } from "../../http/fault.ts";
import { createVolume, type VolumeDeps } from "../../volume/change-volumes.ts";
import { VOLUME_GIB_MAX } from "../../volume/volume-schemas.ts";
import type {
  FoundRecord,
  MadeOutcome,
  NewServerVolume,
  Replacement,
  ReplacementOutcome,
  ReservedOutcome,
  ServerVolumes,
} from "./server-volumes.ts";

const NOT_IN_CINDER = {
  ...{ isMultiattach: false, attachedTo: [], cinderStatus: "", migrationStatus: "", imageProperties: {} },
};

/** The volumes of Berth's own, which its store holds. */
export class OwnServerVolumes implements ServerVolumes {
  readonly #store: VolumeStore;
  readonly #deps: VolumeDeps;

  constructor(deps: VolumeDeps) {
    this.#store = deps.store;
    this.#deps = deps;
  }

  async find(ids: readonly string[], { identity }: KnownCall): Promise<readonly FoundRecord[]> {
    const found = await this.#store.volumes(ids);
    return found
      .filter(({ projectId }) => identity.isAdmin || projectId === identity.projectId)
      .map((volume) => ({ ...volume, ...NOT_IN_CINDER }));
  }

  /** No volume of Berth's own has snapshots. */
  async snapshotted(_id: string, _call: KnownCall): Promise<Pick<FoundRecord, "sizeGib" | "imageProperties"> | null> {
    return null;
  }

  /** Volumes of Berth's own begin empty. */
  async make(wanted: NewServerVolume, attachment: NewAttachment, call: KnownCall): Promise<MadeOutcome> {
    const { name, source, sizeGib, volumeType } = wanted;
    if (source.kind !== "blank") {
      const why = `Berth's own volumes begin empty: give the volume the source_type blank, or an existing volume (${source.kind}).`;
      return { kind: "refused", fault: badRequest(`Block Device Mapping is Invalid: ${why}`) };
    }
    if ((sizeGib ?? 0) > VOLUME_GIB_MAX)
      return {
        kind: "refused",
        fault: badRequest(`Block Device Mapping is Invalid: volume_size is ${sizeGib}, and at most ${VOLUME_GIB_MAX}.`),
      };
    try {
      const body = { volume: { name, size: sizeGib ?? 0, volume_type: volumeType } };
      const volume = await createVolume(this.#deps, call, body, attachment);
      return { kind: "made", volume: { ...volume, isMultiattach: false } };
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      return { kind: "refused", fault: asCreateFault(error) };
    }
  }

  async reserve(volume: FoundRecord, attachment: NewAttachment, _call: KnownCall): Promise<ReservedOutcome> {
    const kind = await this.#store.reserve(volume.id, attachment);
    return kind === "reserved" ? { kind, attachment } : { kind };
  }

  /** A volume of Berth's own needs no host to be in use. */
  async finishWithoutHost(_attachmentId: string): Promise<boolean> {
    return true;
  }

  async sizeGibOf(id: string): Promise<number | null> {
    return (await this.#store.volumes([id]))[0]?.sizeGib ?? null;
  }

  async statusInCinder(_id: string): Promise<string | null> {
    return null;
  }

  async beginMerge(_snapshotId: string): Promise<void> {}

  /** Volumes of Berth's own are never migrated, which callers see before. */
  async reserveReplacement(_replacement: Replacement, _call: KnownCall): Promise<ReplacementOutcome> {
    return { kind: "refused", fault: badRequest("Invalid volume: Berth's own volumes are not migrated.") };
  }

  async giveUpReplacement(_attachmentId: string): Promise<void> {}

  volumes(ids: readonly string[]) {
    return this.#store.volumes(ids);
  }

  volumesOfServers(serverUuids: readonly string[]) {
    return this.#store.volumesOfServers(serverUuids);
  }

  renewReserved(serverUuids: readonly string[]) {
    return this.#store.renewReserved(serverUuids);
  }

  beginDetaching(...of: Parameters<VolumeStore["beginDetaching"]>) {
    return this.#store.beginDetaching(...of);
  }

  setDeleteOnTermination(...to: Parameters<VolumeStore["setDeleteOnTermination"]>) {
    return this.#store.setDeleteOnTermination(...to);
  }

  sweepEnded(...range: Parameters<VolumeStore["sweepEnded"]>) {
    return this.#store.sweepEnded(...range);
  }

  unsettled(...page: Parameters<VolumeStore["unsettled"]>) {
    return this.#store.unsettled(...page);
  }

  confirmAttached(...by: Parameters<VolumeStore["confirmAttached"]>) {
    return this.#store.confirmAttached(...by);
  }

  release(id: string, taskId: string): Promise<boolean> {
    return this.#store.release(id, taskId);
  }

  endAttachment(...of: Parameters<VolumeStore["endAttachment"]>): Promise<"deleted" | "released" | null> {
    return this.#store.endAttachment(...of);
  }
}

/** The statuses of the Block Storage API for what a project may not have, and for what is unknown, are others than those of the Compute API. */
const asCreateFault = ({ status, message }: Fault): Fault =>
  status === 413 ? new Fault(403, message) : badRequest(message);
