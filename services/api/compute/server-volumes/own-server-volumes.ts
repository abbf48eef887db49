import type { NewAttachment, VolumeRecord, VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import type { KnownCall } from "../../http/call.ts";
import type { ReservedOutcome, ServerVolumes } from "./server-volumes.ts";

/** The volumes of Berth's own, which its store holds. */
export class OwnServerVolumes implements ServerVolumes {
  readonly #store: VolumeStore;

  constructor(store: VolumeStore) {
    this.#store = store;
  }

  async find(ids: readonly string[], { identity }: KnownCall): Promise<readonly VolumeRecord[]> {
    const found = await this.#store.volumes(ids);
    return found.filter(({ projectId }) => identity.isAdmin || projectId === identity.projectId);
  }

  async reserve(volume: VolumeRecord, attachment: NewAttachment, _call: KnownCall): Promise<ReservedOutcome> {
    const kind = await this.#store.reserve(volume.id, attachment);
    return kind === "reserved" ? { kind, attachment } : { kind };
  }

  volumes(ids: readonly string[]) {
    return this.#store.volumes(ids);
  }

  volumesOfServers(serverUuids: readonly string[]) {
    return this.#store.volumesOfServers(serverUuids);
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

  endAttachment(id: string, attachmentId: string): Promise<"deleted" | "released" | null> {
    return this.#store.endAttachment(id, attachmentId);
  }
}
