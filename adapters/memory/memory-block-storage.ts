import type {
  BlockStorage,
  CinderAttachment,
  CinderAttachmentFilter,
  CinderList,
  CinderPage,
  CinderSnapshot,
  CinderVolume,
  CinderVolumesByStatus,
  ConnectVolumeOutcome,
  EndedMigration,
  EndMigrationOutcome,
  MakeSnapshotOutcome,
  MakeVolumeOutcome,
  NewCinderAttachment,
  NewCinderSnapshot,
  NewCinderVolume,
  Reimage,
  ReimageOutcome,
  RemoveOutcome,
  ReserveVolumeOutcome,
  SnapshotReport,
  SnapshotReportOutcome,
  VolumeConnector,
} from "../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../core/stores/block-storage-error.ts";
import type { AskedBy } from "../../core/stores/networking.ts";
import {
  connectedTo,
  DELETABLE_MIGRATIONS,
  EMPTY_VOLUME,
  isOf,
  listedTo,
  noMarker,
  noVolume,
  pageAfter,
  storagePage,
  volumeAsWanted,
  withoutHost,
} from "./block-storage-records.ts";
import {
  BROKEN,
  IN_USE,
  NO_VOLUME,
  refusedBroken,
  refusedReimage,
  refusedReserve,
  refusedVolume,
} from "./block-storage-refusals.ts";
import { MemorySnapshotFiles } from "./memory-snapshot-files.ts";
import { MemoryVolumeFills } from "./memory-volume-fills.ts";
import { refusedEnd, targetOf } from "./memory-volume-migrations.ts";
import { MemoryVolumeSnapshots } from "./memory-volume-snapshots.ts";

/**
 * What becomes of a call: it is answered, it never arrives, or it has its effect and its answer is lost. A `slow` call is not answered, and connects a volume,
 * makes a snapshot, or completes a migration, only when `finishSlow` is called.
 */
export type BlockStorageFate = "answered" | "silent" | "lost" | "slow";

type Attachment = CinderAttachment & { readonly host: string };
type Volume = Omit<CinderVolume, "attachedTo">;

/**
 * The in-process twin of Cinder. A caller's token is the id of its project: the caller sees and uses the project's own volumes. A new volume is
 * `creating` until `finishCreating`.
 */
export class MemoryBlockStorage implements BlockStorage {
  /** Volumes that their driver cannot export. */
  readonly brokenVolumes = new Set<string>();
  /** The formats that the driver takes raw volumes for because of their content, by the volume's id. */
  readonly guessedFormats = new Map<string, string>();
  /** The volume types that exist. */
  readonly volumeTypes = new Set<string>();
  /** The status of new volumes and snapshots, and how many of them each project may have. */
  newStatus = "creating";
  volumesMax = Number.POSITIVE_INFINITY;
  snapshotsMax = Number.POSITIVE_INFINITY;
  /** Whether the policy lets no project have lists. */
  forbidsLists = false;
  /** Whether a volume is filled with an image only when `fills` are finished. */
  holdsReimages = false;
  readonly fills = new MemoryVolumeFills();
  /** Decides about each call, by the name of its method. */
  fate: (method: keyof BlockStorage) => BlockStorageFate = () => "answered";
  readonly #volumes = new Map<string, Volume>();
  readonly #attachments = new Map<string, Attachment>();
  readonly #snapshots: MemoryVolumeSnapshots;
  readonly snapshotFiles: MemorySnapshotFiles;
  /** The names of the files of volumes that were migrated. */
  readonly #names = new Map<string, string>();
  readonly #newId: () => string;
  #slow: (() => void)[] = [];

  constructor(options: { readonly newId: () => string }) {
    this.#newId = options.newId;
    this.#snapshots = new MemoryVolumeSnapshots(options);
    this.snapshotFiles = new MemorySnapshotFiles(this.#snapshots.stored, (volumeId, name) => {
      this.#names.set(volumeId, name);
      for (const one of this.#of({ volumeId }))
        this.#attachments.set(one.id, { ...one, connection: one.connection && { ...one.connection, name } });
    });
  }

  /** Stores a volume as a user has made it, and returns it. */
  putVolume(volume: Partial<Volume> & Pick<Volume, "projectId">): CinderVolume {
    const kept = { ...EMPTY_VOLUME, id: volume.id ?? this.#newId(), ...volume };
    this.#volumes.set(kept.id, kept);
    return this.#shown(kept, true);
  }

  /** Stores a snapshot of a volume as a user has made it, and returns it. */
  putSnapshot(volumeId: string, values: Partial<CinderSnapshot> = {}): CinderSnapshot {
    return this.#snapshots.put(volumeId, this.#volumes.get(volumeId), values);
  }

  /** A volume or snapshot that was being made is ready, or could not be made. */
  finishCreating(id: string, status: "available" | "error" = "available"): void {
    this.#set(id, { status });
    this.#snapshots.setStatus(id, status);
  }

  /** All snapshots, whoever owns them. */
  allSnapshots(): readonly CinderSnapshot[] {
    return this.#snapshots.all();
  }

  /** The driver has done what it was asked for in slow calls. */
  finishSlow(): void {
    for (const connect of this.#slow.splice(0)) connect();
  }

  /** All volumes, whoever owns them. */
  all(): readonly CinderVolume[] {
    return [...this.#volumes.values()].map((volume) => this.#shown(volume, true));
  }

  volume(id: string, { callerToken }: AskedBy): Promise<CinderVolume | null> {
    return this.#answer("volume", () => {
      const volume = this.#seen(id, callerToken);
      return volume === null ? null : this.#shown(volume, callerToken === null);
    });
  }

  volumes(page: CinderPage, { callerToken }: AskedBy): Promise<CinderList<CinderVolume>> {
    const shown = (one: Volume) => this.#shown(one, callerToken === null);
    const read = () => storagePage(this.#volumes.values(), page, callerToken).map(shown);
    return this.#answer("volumes", () => listedTo(this.forbidsLists ? callerToken : null, read));
  }

  volumesNamed(name: string): Promise<readonly CinderVolume[]> {
    return this.#answer("volumesNamed", () => this.all().filter((volume) => volume.name === name));
  }

  volumesWithStatus(filter: CinderVolumesByStatus): Promise<readonly CinderVolume[]> {
    const matches = ({ status }: CinderVolume) => status === filter.status;
    return this.#answer("volumesWithStatus", () => pageAfter(this.all(), matches, filter, noVolume));
  }

  snapshot(id: string, { callerToken }: AskedBy): Promise<CinderSnapshot | null> {
    return this.#answer("snapshot", () => this.#snapshots.find(id, callerToken));
  }

  snapshotsOf(volumeId: string): Promise<readonly CinderSnapshot[]> {
    return this.#answer("snapshotsOf", () => this.#snapshots.of(volumeId));
  }

  snapshots(page: CinderPage, { callerToken }: AskedBy): Promise<CinderList<CinderSnapshot>> {
    const read = () => this.#snapshots.page(page, callerToken);
    return this.#answer("snapshots", () => listedTo(this.forbidsLists ? callerToken : null, read));
  }

  createSnapshot(wanted: NewCinderSnapshot, { callerToken }: AskedBy): Promise<MakeSnapshotOutcome> {
    return this.#answer("createSnapshot", (isSlow) => {
      const volume = this.#seen(wanted.volumeId, callerToken);
      if (volume === null) return { kind: "unknown" };
      const make = () => this.#snapshots.make(wanted, { volume, ownedMax: this.snapshotsMax, status: this.newStatus });
      if (!isSlow) return make();
      this.#slow.push(make);
      return { kind: "unknown" };
    });
  }

  removeSnapshot(id: string, { callerToken }: AskedBy): Promise<RemoveOutcome> {
    return this.#answer("removeSnapshot", () => this.#snapshots.remove(id, callerToken));
  }

  reportSnapshot = (report: SnapshotReport): Promise<SnapshotReportOutcome> =>
    this.#answer("reportSnapshot", () => this.snapshotFiles.report(report));

  createVolume(wanted: NewCinderVolume, { callerToken }: AskedBy): Promise<MakeVolumeOutcome> {
    return this.#answer("createVolume", () => {
      const projectId = callerToken ?? "service";
      const owned = [...this.#volumes.values()].filter((volume) => volume.projectId === projectId);
      const refused = refusedVolume(wanted, { owned: owned.length, max: this.volumesMax, types: this.volumeTypes });
      if (refused !== null) return refused;
      const { source } = wanted;
      const snapshot = source.kind === "snapshot" ? this.#snapshots.find(source.id, callerToken) : null;
      const made = { ...volumeAsWanted(wanted, snapshot), status: this.newStatus };
      return { kind: "created", volume: { ...this.putVolume({ projectId, ...made }), projectId: "" } };
    });
  }

  removeVolume(id: string, { callerToken }: AskedBy): Promise<RemoveOutcome> {
    return this.#answer("removeVolume", () => {
      if (this.#seen(id, callerToken) === null) return { kind: "unknown" };
      return this.#drop(id) ? { kind: "deleting" } : IN_USE;
    });
  }

  deleteVolume(id: string) {
    return this.#answer("deleteVolume", () => (this.#drop(id) ? ({ kind: "deleted" } as const) : IN_USE));
  }

  /** Deletes a volume that nothing has. Returns whether it did. */
  #drop(id: string): boolean {
    const isUsed = this.#of({ volumeId: id }).length > 0 || this.#snapshots.of(id).length > 0;
    const isMigrating = !DELETABLE_MIGRATIONS.includes(this.#volumes.get(id)?.migrationStatus ?? "");
    if (isUsed || isMigrating || !["available", "error"].includes(this.#volumes.get(id)?.status ?? "error"))
      return false;
    this.#volumes.delete(id);
    return true;
  }

  reserve(wanted: NewCinderAttachment, { callerToken }: AskedBy): Promise<ReserveVolumeOutcome> {
    return this.#answer("reserve", (isSlow) => {
      const { volumeId, serverUuid, connector } = wanted;
      const volume = this.#seen(volumeId, callerToken);
      if (volume === null) return { kind: "unknown" };
      const isFree =
        ["available", "downloading"].includes(volume.status) || (volume.isMultiattach && volume.status === "in-use");
      const refused = refusedBroken(volume);
      if (refused !== null) return refused;
      if (!isFree && this.#of({ volumeId, serverUuid }).length === 0) return refusedReserve(volume);
      if (connector !== null && this.brokenVolumes.has(volumeId)) return BROKEN;
      this.fills.note("a reservation", volumeId);
      if (isFree) this.#set(volumeId, { status: "reserved" });
      const none = { volumeId, serverUuid, status: "reserved", connection: null, host: "" };
      const attachment = this.#keep({ id: this.#newId(), ...none }, connector, isSlow);
      return { kind: "reserved", attachment: { ...withoutHost(attachment), status: "reserved" } };
    });
  }

  attachments(filter: CinderAttachmentFilter): Promise<readonly CinderAttachment[]> {
    const all = () => [...this.#attachments.values()];
    return this.#answer("attachments", () => pageAfter(all(), isOf(filter), filter, noMarker).map(withoutHost));
  }

  attachment(attachmentId: string): Promise<CinderAttachment | null> {
    return this.#answer("attachment", () => {
      const found = this.#attachments.get(attachmentId);
      if (found === undefined) return null;
      const { connection } = found;
      return withoutHost({ ...found, connection: connection && { ...connection, format: "raw" } });
    });
  }

  connect(attachmentId: string, connector: VolumeConnector): Promise<ConnectVolumeOutcome> {
    return this.#answer("connect", (isSlow) => {
      const attachment = this.#attachments.get(attachmentId);
      if (attachment === undefined) return { kind: "gone" };
      const { volumeId } = attachment;
      const refused = refusedBroken(this.#volumes.get(volumeId) ?? { id: volumeId, status: "gone" });
      if (refused !== null) return refused;
      const all = this.#of({ volumeId });
      const isTwice = all.length > 1 && all.some(({ connection }) => connection !== null);
      if (this.brokenVolumes.has(volumeId) || (isTwice && this.#volumes.get(volumeId)?.isMultiattach !== true))
        return { kind: "refused", why: isTwice ? `duplicate connectors detected on volume ${volumeId}` : BROKEN.why };
      return { kind: "connected", attachment: withoutHost(this.#keep(attachment, connector, isSlow)) };
    });
  }

  complete(attachmentId: string): Promise<boolean> {
    return this.#answer("complete", () => {
      const attachment = this.#attachments.get(attachmentId);
      if (attachment === undefined) return false;
      this.fills.note("the completion of an attachment", attachment.volumeId);
      this.#attachments.set(attachmentId, { ...attachment, status: "attached" });
      this.#set(attachment.volumeId, { status: "in-use" });
      return true;
    });
  }

  /** Cinder begins to move a volume to another back end. Returns the volume that is to take its place. */
  startMigration(id: string): CinderVolume {
    const volume = this.#volumes.get(id);
    if (volume === undefined) throw new Error(`no volume ${id}`);
    this.#set(id, { migrationStatus: "migrating" });
    return this.putVolume({ ...volume, id: this.#newId(), status: "available", migrationStatus: targetOf(id) });
  }

  endMigration(migration: EndedMigration): Promise<EndMigrationOutcome> {
    return this.#answer("endMigration", (isSlow) => {
      const { volumeId, targetId, hasFailed } = migration;
      const refused = refusedEnd(migration, [this.#volumes.get(volumeId), this.#volumes.get(targetId)]);
      if (refused !== null) return refused;
      if (isSlow && !hasFailed) {
        this.#set(volumeId, { migrationStatus: "completing" });
        this.#slow.push(() => this.#complete(migration));
      } else if (hasFailed) {
        this.#set(volumeId, { status: "in-use", migrationStatus: "error" });
        // Cinder does not delete a volume that a host has.
        if (this.#of({ volumeId: targetId }).every(({ connection }) => connection === null))
          this.#volumes.delete(targetId);
      } else this.#complete(migration);
      return { kind: "ended" };
    });
  }

  #complete({ volumeId, targetId }: EndedMigration): void {
    for (const { id } of this.#of({ volumeId })) this.#attachments.delete(id);
    for (const one of this.#of({ volumeId: targetId })) this.#attachments.set(one.id, { ...one, volumeId });
    this.#names.set(volumeId, this.fileOf(targetId));
    this.#volumes.delete(targetId);
    this.#set(volumeId, { status: "in-use", migrationStatus: "success" });
  }

  /** The name of a volume's file, which stays what it was when the volume gets another one's id. */
  fileOf(volumeId: string): string {
    return this.#names.get(volumeId) ?? `volume-${volumeId}`;
  }

  reimage({ volumeId, imageId }: Reimage): Promise<ReimageOutcome> {
    return this.#answer("reimage", () => {
      const volume = this.#volumes.get(volumeId);
      if (volume === undefined) return NO_VOLUME;
      const refused = refusedReimage(volume, this.#of({ volumeId }).length);
      if (refused !== null) return refused;
      const filled = { status: volume.status, imageProperties: { ...volume.imageProperties, image_id: imageId } };
      this.fills.note("another fill", volumeId);
      this.#set(volumeId, { status: "downloading" });
      this.fills.begin(volumeId, (isFilled) => this.#set(volumeId, isFilled ? filled : { status: "error" }));
      if (!this.holdsReimages) this.fills.finish(true, volumeId);
      return { kind: "begun" };
    });
  }

  deleteAttachment(attachmentId: string): Promise<void> {
    return this.#answer("deleteAttachment", () => {
      const attachment = this.#attachments.get(attachmentId);
      if (attachment === undefined) return;
      this.fills.note("the end of an attachment", attachment.volumeId);
      this.#attachments.delete(attachmentId);
      const left = this.#of({ volumeId: attachment.volumeId }).map(({ status }) => status);
      const status = left.includes("attached") ? "in-use" : (left[0] ?? "available");
      this.#set(attachment.volumeId, { status });
    });
  }

  #keep(attachment: Attachment, connector: VolumeConnector | null, isSlow: boolean): Attachment {
    if (isSlow && connector !== null) {
      this.#attachments.set(attachment.id, attachment);
      this.#slow.push(() => {
        // A migration that was completed meanwhile has given the attachment to another volume.
        const now = this.#attachments.get(attachment.id);
        if (now !== undefined) this.#keep(now, connector, false);
      });
      return attachment;
    }
    const { id, volumeId } = attachment;
    const shown = { name: this.fileOf(volumeId), format: this.guessedFormats.get(volumeId) ?? "raw" };
    const kept = connector === null ? attachment : connectedTo(attachment, connector, shown);
    this.#attachments.set(id, kept);
    if (connector === null) return kept;
    this.fills.note("a connection", volumeId);
    if (["reserved", "downloading"].includes(this.#volumes.get(volumeId)?.status ?? ""))
      this.#set(volumeId, { status: "attaching" });
    return kept;
  }

  #of = (filter: CinderAttachmentFilter) => [...this.#attachments.values()].filter(isOf(filter));

  #seen(id: string, callerToken: string | null): Volume | null {
    const volume = this.#volumes.get(id);
    return volume === undefined || (callerToken !== null && volume.projectId !== callerToken) ? null : volume;
  }

  #set(id: string, changes: Partial<Volume>): void {
    const volume = this.#volumes.get(id);
    if (volume !== undefined) this.#volumes.set(id, { ...volume, ...changes });
  }

  #shown(volume: Volume, isAdmin: boolean): CinderVolume {
    const attachedTo = this.#of({ volumeId: volume.id })
      .filter(({ status }) => status === "attached")
      .map(({ id: attachmentId, serverUuid, host }) => ({ attachmentId, serverUuid, host: isAdmin ? host : "" }));
    return { ...volume, migrationStatus: isAdmin ? volume.migrationStatus : "", attachedTo };
  }

  /** The promise settles in a later turn, as that of a call over a network does. */
  async #answer<Value>(method: keyof BlockStorage, work: (isSlow: boolean) => Value): Promise<Value> {
    const fate = this.fate(method);
    await Promise.resolve();
    if (fate === "silent") throw new BlockStorageError("unreachable", "Cinder does not answer: it is silent");
    const value = work(fate === "slow");
    if (fate === "slow") throw new BlockStorageError("unreachable", "Cinder does not answer: its driver is slow");
    if (fate === "lost") throw new BlockStorageError("unreachable", "Cinder does not answer: its answer was lost");
    return value;
  }
}
