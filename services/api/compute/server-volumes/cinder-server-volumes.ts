import { randomUUID } from "node:crypto";
import {
  COMPLETION_PAUSE_MS,
  type EndingReplacement,
  ReplacementEnder,
} from "../../../../adapters/openstack/replacement-ender.ts";
import {
  isBuiltWith,
  type NewAttachment,
  type ReserveOutcome,
  type VolumeAttachment,
  type VolumeRecord,
  type VolumeStore,
} from "../../../../core/stores/api/volume-store.ts";
import type { BlockStorage, CinderVolume, MakeVolumeOutcome } from "../../../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../../../core/stores/block-storage-error.ts";
import { type AskedBy, OWN_NAME } from "../../../../core/stores/networking.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { ApiEvents } from "../../events.ts";
import { askedBy, askNeighbour } from "../../http/ask-neighbour.ts";
import type { KnownCall } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import { badRequest, conflict, Fault } from "../../http/fault.ts";
import { OwnServerVolumes } from "./own-server-volumes.ts";
import { refusedReplacement } from "./refused-replacement.ts";
import type {
  FoundRecord,
  MadeOutcome,
  NewServerVolume,
  OwedEndOutcome,
  Replacement,
  ReplacementOutcome,
  ReservedOutcome,
} from "./server-volumes.ts";
import type { UnsettledVolume } from "./settle-building.ts";

/** Cinder fills the volume with an image. */
const FILLING = "downloading";
/** Cinder still makes the volume, and does not delete it before it has done so. */
const UNDER_WAY = ["creating", FILLING];
/** Cinder deletes a volume in one of these statuses that nothing else needs. */
const DELETABLE = ["available", "error"];
/**
 * How long Cinder may fill the boot volume of a server that is gone before an operator is told. Cinder 21 shows a volume as `downloading` forever if it refuses the image only when it is asked, or
 * if its process ends meanwhile. Nobody but an operator can tell that from a fill that is slow.
 */
const FILL_MS_MAX = 60 * 60_000;
/** Maximum number of volumes of which it is remembered that an operator was told. */
const TOLD_MAX = 10_000;
/** How long Cinder may take to make a volume that it was asked for. If it has none by then, it will make none. */
const LATE_ANSWER_MS = 5 * 60_000;
/** How long an api keeps others from telling Cinder the end of a replacement, which it renews before each write. Longer than the longest of these writes. */
const HELD_MS = 10 * 60_000;

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
  readonly #events: Pick<ApiEvents, "volumeStillFilled">;
  readonly #ender: ReplacementEnder;
  readonly #holder = randomUUID();
  /** The attachments whose volume an operator was told of, because Cinder fills it for so long. */
  readonly #told = new Set<string>();

  /** `sendsTokens`: the tokens of callers are Keystone's, so that Cinder is asked in their name. */
  constructor(
    deps: {
      readonly store: VolumeStore;
      readonly storage: BlockStorage;
      readonly events: Pick<ApiEvents, "volumeStillFilled">;
      readonly clock: Clock;
    },
    { sendsTokens }: { readonly sendsTokens: boolean },
  ) {
    super({ ...deps, limits: { volumes: 0, gib: 0 } });
    this.#store = deps.store;
    this.#storage = deps.storage;
    this.#clock = deps.clock;
    this.#sendsTokens = sendsTokens;
    this.#events = deps.events;
    this.#ender = new ReplacementEnder(deps, { pauseMs: COMPLETION_PAUSE_MS });
  }

  override async find(ids: readonly string[], call: KnownCall): Promise<readonly FoundRecord[]> {
    const by = askedBy({ sendsTokens: this.#sendsTokens }, call);
    const uuids = [...new Set(ids.flatMap((id) => canonicalUuid(id) ?? []))];
    const found = await askNeighbour(() => Promise.all(uuids.map((id) => this.#storage.volume(id, by))));
    const { isAdmin, projectId } = call.identity;
    const rows = new Map((await this.#store.volumes(uuids)).map((row) => [row.id, row]));
    return found.flatMap((one) =>
      one !== null && (isAdmin || one.projectId === projectId) ? this.#recordOf(one, rows.get(one.id)) : [],
    );
  }

  override async snapshotted(
    id: string,
    call: KnownCall,
  ): Promise<Pick<FoundRecord, "sizeGib" | "imageProperties"> | null> {
    const by = askedBy({ sendsTokens: this.#sendsTokens }, call);
    const uuid = canonicalUuid(id);
    return askNeighbour(async () => {
      const snapshot = uuid === null ? null : await this.#storage.snapshot(uuid, by);
      const volume = snapshot === null ? null : await this.#storage.volume(snapshot.volumeId, by);
      const { isAdmin, projectId } = call.identity;
      if (snapshot === null || volume === null || !(isAdmin || volume.projectId === projectId)) return null;
      return { sizeGib: snapshot.sizeGib, imageProperties: volume.imageProperties };
    });
  }

  override async make(wanted: NewServerVolume, attachment: NewAttachment, call: KnownCall): Promise<MadeOutcome> {
    const { identity } = call;
    const id = attachment.mappingUuid;
    const row = {
      ...{ id, projectId: identity.projectId, userId: identity.userId, name: wanted.name, description: null },
      ...{ sizeGib: wanted.sizeGib ?? 1, metadata: {}, availabilityZone: "", isBootable: false, inCinder: true },
      ...{ making: "asked" as const, createdAtMs: this.#clock.now() },
    };
    await this.#store.createVolume(row, null, attachment);
    const by = askedBy({ sendsTokens: this.#sendsTokens }, call);
    // If it is not known whether the volume was made, the row stays, and the settler deletes what Cinder has made.
    const outcome = await askNeighbour(() => this.#makeInCinder(wanted, by));
    if (outcome.kind !== "created") {
      await this.#store.release(id, attachment.taskId);
      const fault = outcome.kind === "refused" ? badRequest(outcome.why) : new Fault(403, outcome.why);
      return { kind: "refused", fault };
    }
    const { volume } = outcome;
    if (!(await this.#store.setMade(id, volume)))
      throw conflict(`Volume ${volume.id} was taken by another call while it was being made; try again.`);
    const { id: madeId, sizeGib, isMultiattach } = volume;
    return { kind: "made", volume: { id: madeId, sizeGib, isMultiattach, inCinder: true } };
  }

  /** Makes a volume once, also if Cinder's answer is lost. */
  async #makeInCinder(wanted: NewServerVolume, by: AskedBy): Promise<MakeVolumeOutcome> {
    try {
      return await this.#storage.createVolume({ ...wanted, availabilityZone: null }, by);
    } catch (error) {
      if (!(error instanceof BlockStorageError) || error.code !== "unreachable") throw error;
      const [volume] = await this.#storage.volumesNamed(wanted.name);
      if (volume === undefined) throw error;
      return { kind: "created", volume };
    }
  }

  override async reserve(volume: FoundRecord, attachment: NewAttachment, call: KnownCall): Promise<ReservedOutcome> {
    if (await this.#isRefilled(volume)) return { kind: "refused", fault: refilled(volume.id) };
    const kept = await this.#keep(volume, attachment);
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

  /**
   * Whether Cinder fills a volume that a server has with an image. A reservation for another server would let Cinder show a status that hides it, so that a guest of the first
   * server could be started meanwhile.
   */
  async #isRefilled({ id, isMultiattach, cinderStatus }: FoundRecord): Promise<boolean> {
    return isMultiattach && cinderStatus === FILLING && (await this.#store.volumes([id])).length > 0;
  }

  async #keep(volume: FoundRecord, attachment: NewAttachment): Promise<ReserveOutcome> {
    if (volume.isMultiattach) return this.#store.reserveShared(volume, attachment);
    if (!(await this.#store.copyVolume(volume)))
      throw new Error(`volume ${volume.id} is one of Berth's own, and Cinder has one with the same id`);
    return this.#store.reserve(volume.id, attachment);
  }

  override async reserveReplacement(
    { own, other, serverUuid }: Replacement,
    call: KnownCall,
  ): Promise<ReplacementOutcome> {
    const fault = refusedReplacement(own, other, serverUuid);
    if (fault !== null) return { kind: "refused", fault };
    const by = askedBy({ sendsTokens: this.#sendsTokens }, call);
    const otherId = other.id;
    const wanted = { volumeId: otherId, serverUuid, connector: null };
    return askNeighbour(async () => {
      // The same replacement may have been asked for before, or is so at this moment, whose host may use any attachment of the other volume. So of two calls the
      // later one goes no further, and leaves what it has reserved to the host's conductor or to the sweep of attachments.
      const attached = () => this.#storage.attachments({ volumeId: otherId, serverUuid });
      if ((await attached()).length > 0) return { kind: "refused", fault: alreadyReserved(otherId) };
      const outcome = await this.#storage.reserve(wanted, by);
      if (outcome.kind === "reserved") {
        const { id: attachmentId } = outcome.attachment;
        const isAlone = (await attached()).every(({ id }) => id === attachmentId);
        return isAlone ? { kind: "reserved", attachmentId } : { kind: "refused", fault: alreadyReserved(otherId) };
      }
      const why = outcome.kind === "unknown" ? `Volume ${otherId} could not be found.` : outcome.why;
      return { kind: "refused", fault: badRequest(why) };
    });
  }

  override finishWithoutHost(attachmentId: string): Promise<boolean> {
    return askNeighbour(() => this.#storage.complete(attachmentId));
  }

  override async sizeGibOf(id: string): Promise<number | null> {
    return (await this.#storage.volume(id, OWN_NAME))?.sizeGib ?? null;
  }

  override async statusInCinder(id: string): Promise<string | null> {
    return (await askNeighbour(() => this.#storage.volume(id, OWN_NAME)))?.status ?? null;
  }

  override async beginMerge(snapshotId: string): Promise<void> {
    await askNeighbour(() => this.#storage.reportSnapshot({ snapshotId, status: "deleting", isDone: false }));
  }

  override giveUpReplacement(attachmentId: string): Promise<void> {
    return this.#storage.deleteAttachment(attachmentId);
  }

  async endReplacement(replacement: EndingReplacement, attachmentId: string): Promise<OwedEndOutcome> {
    const { volumeId } = replacement.volume;
    const mayWrite = () => this.#store.holdEnd(volumeId, attachmentId, { holder: this.#holder, ms: HELD_MS });
    if (!(await mayWrite())) return { kind: "held" };
    const outcome = await this.#ender.end(replacement, mayWrite);
    return outcome.kind === "unwanted" ? { kind: "held" } : outcome;
  }

  override async release(id: string, taskId: string): Promise<boolean> {
    const volume = await this.#endInCinder(id, (attachment) => attachment.taskId === taskId);
    if (volume === null) return false;
    if (isBuiltWith(volume.making, volume.attachment) && !(await this.#deleteMade(volume))) return false;
    return this.#forget(id, () => this.#store.release(id, taskId));
  }

  override async endAttachment(
    id: string,
    attachmentId: string,
    neverRan: boolean,
  ): Promise<"deleted" | "released" | null> {
    const isMeant = (attachment: VolumeAttachment) => attachment.attachmentId === attachmentId;
    if ((await this.#endInCinder(id, isMeant)) === null) return null;
    const volume = await this.#named(id, isMeant);
    if (volume === null) return null;
    const { inCinder, making } = volume;
    const ends = volume.attachment.deleteOnTermination || (making !== null && neverRan) || making === "asked";
    if (inCinder && ends) {
      // A volume that Cinder does not delete, for example because it has snapshots, or because another server has it, too, is kept, as by Nova.
      if (making === null) await this.#storage.deleteVolume(id);
      else if (!(await this.#deleteMade(volume))) return null;
    }
    return this.#forget(id, () => this.#store.endAttachment(id, attachmentId, neverRan || making === "asked"));
  }

  /**
   * Deletes a volume that was made for a server. False if it is to be tried again, since Cinder may still make it, or still fills it and deletes it only
   * afterwards.
   */
  async #deleteMade({ id, name, making, attachment }: UnsettledVolume): Promise<boolean> {
    const ids = making === "asked" ? (await this.#storage.volumesNamed(name)).map((one) => one.id) : [id];
    if (ids.length === 0) return attachment.phaseAgeMs >= LATE_ANSWER_MS;
    for (const madeId of ids) {
      const status = await this.#statusOfKept(madeId);
      if (status !== null && UNDER_WAY.includes(status)) return false;
      // Cinder may have filled the volume since it refused. If it refuses again, it has another reason, and the volume is kept.
      if (status !== null && DELETABLE.includes(status)) await this.#storage.deleteVolume(madeId);
    }
    return true;
  }

  /** Asks Cinder to delete the volume. Returns its status if Cinder refuses, or null if the volume is deleted or gone. */
  async #statusOfKept(id: string): Promise<string | null> {
    const outcome = await this.#storage.deleteVolume(id);
    if (outcome.kind !== "refused") return null;
    return (await this.#storage.volume(id, OWN_NAME))?.status ?? null;
  }

  /**
   * Ends what Cinder has of a volume and the server whose attachment is meant. Every api does this, so another one may have ended the attachment
   * while Cinder was asked, and the same server may have the volume again. What Cinder lists is therefore of the attachment that is meant only if the row
   * still names it afterwards. Returns the row, or null, without a change, if it does not name the attachment, or while Cinder fills the volume for a rebuild: without an attachment, the
   * volume would be `available`, and Cinder would go on to write the image over what its next owner stores.
   */
  async #endInCinder(id: string, isMeant: IsMeant): Promise<UnsettledVolume | null> {
    const volume = await this.#named(id, isMeant);
    if (volume?.inCinder !== true || volume.making === "asked") return volume;
    const attachments = await this.#storage.attachments({ volumeId: id, serverUuid: volume.attachment.serverUuid });
    // A volume that Cinder fills when it makes it has no attachment yet.
    const mayBeFilled = volume.making === null || attachments.length > 0;
    if (mayBeFilled && (await this.#storage.volume(id, OWN_NAME))?.status === FILLING) {
      this.#tellOfFill(volume);
      return null;
    }
    const still = await this.#named(id, isMeant);
    if (still === null) return null;
    for (const attachment of attachments) await this.#storage.deleteAttachment(attachment.id);
    return still;
  }

  /** Tells an operator once of a fill that takes so long that it may have no end. */
  #tellOfFill({ id, attachment: { serverUuid, attachmentId, phaseAgeMs } }: UnsettledVolume): void {
    if (phaseAgeMs < FILL_MS_MAX || this.#told.has(attachmentId)) return;
    if (this.#told.size >= TOLD_MAX) this.#told.clear();
    this.#told.add(attachmentId);
    this.#events.volumeStillFilled({ volumeId: id, serverUuid });
  }

  /** The row of the volume that names the attachment that is meant. Null for none. */
  async #named(id: string, isMeant: IsMeant): Promise<UnsettledVolume | null> {
    for (const volume of await this.#store.volumes([id])) {
      const { attachment } = volume;
      if (attachment !== null && isMeant(attachment)) return { ...volume, attachment };
    }
    return null;
  }

  /** Ends an attachment, and drops the copy of the volume, unless it has been reserved again. */
  async #forget<Outcome>(id: string, end: () => Promise<Outcome>): Promise<Outcome> {
    const outcome = await end();
    const isCopy = ({ inCinder, attachment }: VolumeRecord) => inCinder && attachment === null;
    if ((await this.#store.volumes([id])).some(isCopy)) await this.#store.deleteVolume(id);
    return outcome;
  }

  #recordOf(volume: CinderVolume, row: VolumeRecord | undefined): FoundRecord {
    const {
      id,
      projectId,
      name,
      sizeGib,
      availabilityZone,
      isBootable,
      isMultiattach,
      imageProperties,
      status: cinderStatus,
      migrationStatus,
      attachedTo,
    } = volume;
    return {
      ...{ id, projectId, name, sizeGib, availabilityZone, isBootable, inCinder: true },
      ...{ userId: "", description: null, metadata: {}, createdAtMs: this.#clock.now(), updatedAtMs: null },
      ...{ making: row?.making ?? null, isMultiattach, imageProperties, cinderStatus, migrationStatus, attachedTo },
      attachment: isMultiattach ? null : (row?.attachment ?? null),
    };
  }
}

const refilled = (volumeId: string): Fault =>
  conflict(
    `Cinder fills volume ${volumeId}, which a server has, with an image (its status is ${FILLING}): wait until it has another status, and try again.`,
  );
const alreadyReserved = (volumeId: string): Fault =>
  conflict(
    `Volume ${volumeId} is reserved for this server already: wait until the earlier replacement has ended, and try again.`,
  );
