import type {
  NewAttachment,
  VolumeAttachment,
  VolumeRecord,
  VolumeStore,
} from "../../../../core/stores/api/volume-store.ts";
import type { BlockStorage, CinderVolume } from "../../../../core/stores/block-storage.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { askedBy, askNeighbour } from "../../http/ask-neighbour.ts";
import type { KnownCall } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import { badRequest, Fault } from "../../http/fault.ts";
import { OwnServerVolumes } from "./own-server-volumes.ts";
import type { ReservedOutcome } from "./server-volumes.ts";
import type { UnsettledVolume } from "./settle-building.ts";

type IsMeant = (attachment: VolumeAttachment) => boolean;

/**
 * The volumes of Cinder. For as long as a server has a volume, the store holds a copy of it with the attachment. The copy is reserved before Cinder is
 * called, and ends after Cinder has ended its attachments, so that a process that ends in between leaves a row that the settler finds.
 *
 * A row ends only when no guest has the volume, so all attachments of the server and this volume may be deleted then, also those that this process does
 * not know, because the answer to a call was lost.
 */
export class CinderServerVolumes extends OwnServerVolumes {
  readonly #store: VolumeStore;
  readonly #storage: BlockStorage;
  readonly #clock: Pick<Clock, "now">;
  readonly #sendsTokens: boolean;

  /** `sendsTokens`: the tokens of callers are Keystone's, so that Cinder is asked in their name. */
  constructor(
    deps: { readonly store: VolumeStore; readonly storage: BlockStorage; readonly clock: Pick<Clock, "now"> },
    { sendsTokens }: { readonly sendsTokens: boolean },
  ) {
    super(deps.store);
    this.#store = deps.store;
    this.#storage = deps.storage;
    this.#clock = deps.clock;
    this.#sendsTokens = sendsTokens;
  }

  override async find(ids: readonly string[], call: KnownCall): Promise<readonly VolumeRecord[]> {
    const by = askedBy({ sendsTokens: this.#sendsTokens }, call);
    const uuids = [...new Set(ids.flatMap((id) => canonicalUuid(id) ?? []))];
    const found = await askNeighbour(() => Promise.all(uuids.map((id) => this.#storage.volume(id, by))));
    const { isAdmin, projectId } = call.identity;
    const rows = new Map((await this.#store.volumes(uuids)).map((row) => [row.id, row]));
    return found.flatMap((one) =>
      one !== null && (isAdmin || one.projectId === projectId) ? this.#recordOf(one, rows.get(one.id)) : [],
    );
  }

  override async reserve(volume: VolumeRecord, attachment: NewAttachment, call: KnownCall): Promise<ReservedOutcome> {
    if (!(await this.#store.copyVolume(volume)))
      throw new Error(`volume ${volume.id} is one of Berth's own, and Cinder has one with the same id`);
    const kept = await this.#store.reserve(volume.id, attachment);
    if (kept !== "reserved") return { kind: kept };
    const { serverUuid, taskId } = attachment;
    const by = askedBy({ sendsTokens: this.#sendsTokens }, call);
    // If the answer is lost, the row stays, and the settler ends what Cinder has made.
    const wanted = { volumeId: volume.id, serverUuid, connector: null };
    const outcome = await askNeighbour(() => this.#storage.reserve(wanted, by));
    if (outcome.kind === "reserved") {
      const { id: attachmentId } = outcome.attachment;
      await this.#store.setAttachmentId(volume.id, { serverUuid, attachmentId });
      return { kind: "reserved", attachment: { ...attachment, attachmentId } };
    }
    await this.#forget(volume.id, () => this.#store.release(volume.id, taskId));
    if (outcome.kind === "unknown") return { kind: "unknown" };
    const fault = outcome.kind === "forbidden" ? new Fault(403, outcome.why) : badRequest(outcome.why);
    return { kind: "refused", fault };
  }

  override async release(id: string, taskId: string): Promise<boolean> {
    const volume = await this.#endInCinder(id, (attachment) => attachment.taskId === taskId);
    return volume !== null && this.#forget(id, () => this.#store.release(id, taskId));
  }

  override async endAttachment(id: string, attachmentId: string): Promise<"deleted" | "released" | null> {
    const isMeant = (attachment: VolumeAttachment) => attachment.attachmentId === attachmentId;
    if ((await this.#endInCinder(id, isMeant)) === null) return null;
    const volume = await this.#named(id, isMeant);
    if (volume === null) return null;
    // A volume that Cinder does not delete, for example because it has snapshots, is kept, as by Nova.
    if (volume.inCinder && volume.attachment.deleteOnTermination) await this.#storage.deleteVolume(id);
    return this.#forget(id, () => this.#store.endAttachment(id, attachmentId));
  }

  /**
   * Ends what Cinder has of a volume and the server whose attachment is meant. Every api does this, so another one may have ended the attachment
   * while Cinder was asked, and the same server may have the volume again. What Cinder lists is therefore of the attachment that is meant only if the row
   * still names it afterwards. Returns the row, or null, without a change, if it does not name the attachment.
   */
  async #endInCinder(id: string, isMeant: IsMeant): Promise<UnsettledVolume | null> {
    const volume = await this.#named(id, isMeant);
    if (volume?.inCinder !== true) return volume;
    const { serverUuid } = volume.attachment;
    const attachments = await this.#storage.attachments({ volumeId: id, serverUuid });
    const still = await this.#named(id, isMeant);
    if (still === null) return null;
    for (const attachment of attachments) await this.#storage.deleteAttachment(attachment.id);
    return still;
  }

  /** The volume, if its row names the attachment that is meant. */
  async #named(id: string, isMeant: IsMeant): Promise<UnsettledVolume | null> {
    const [volume] = await this.#store.volumes([id]);
    if (volume === undefined || volume.attachment === null || !isMeant(volume.attachment)) return null;
    return { ...volume, attachment: volume.attachment };
  }

  /** Ends an attachment, and drops the copy of the volume, unless it has been reserved again. */
  async #forget<Outcome>(id: string, end: () => Promise<Outcome>): Promise<Outcome> {
    const outcome = await end();
    const [volume] = await this.#store.volumes([id]);
    if (volume?.inCinder === true) await this.#store.deleteVolume(id);
    return outcome;
  }

  #recordOf(volume: CinderVolume, row: VolumeRecord | undefined): VolumeRecord {
    const { id, projectId, name, sizeGib, availabilityZone, isBootable } = volume;
    return {
      ...{ id, projectId, name, sizeGib, availabilityZone, isBootable, inCinder: true },
      ...{ userId: "", description: null, metadata: {}, createdAtMs: this.#clock.now(), updatedAtMs: null },
      attachment: row?.attachment ?? null,
    };
  }
}
