import type { AskedBy } from "./networking.ts";

/** A volume of the Block Storage service (Cinder). */
export interface CinderVolume {
  readonly id: string;
  readonly projectId: string;
  readonly name: string;
  readonly description: string | null;
  readonly sizeGib: number;
  /** `creating`, `available`, `reserved`, `attaching`, `in-use`, `detaching`, `error` and others. */
  readonly status: string;
  readonly isBootable: boolean;
  /** Several servers may have it at a time. */
  readonly isMultiattach: boolean;
  readonly availabilityZone: string;
  readonly volumeType: string | null;
  /** The snapshot that it was made from. */
  readonly snapshotId: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  /** As Cinder writes it, without a zone. */
  readonly createdAt: string;
  /**
   * `migrating` while Cinder moves the volume to another back end, `completing` while it carries out the end of that, `target:ID` for the volume that is to take the place of another one, `success` and `error`
   * afterwards. Empty for none, and for callers who may not see it.
   */
  readonly migrationStatus: string;
  /** The properties of the image that it was filled from. */
  readonly imageProperties: Readonly<Record<string, string>>;
  /** The finished attachments. Their hosts are empty for callers who may not see them. */
  readonly attachedTo: readonly CinderHolder[];
}

/** A server that has a volume. */
export interface CinderHolder {
  readonly attachmentId: string;
  readonly serverUuid: string;
  readonly host: string;
}

/** A snapshot of a volume. */
export interface CinderSnapshot {
  readonly id: string;
  readonly projectId: string;
  readonly volumeId: string;
  readonly name: string;
  readonly description: string | null;
  readonly sizeGib: number;
  /** `creating`, `available`, `deleting`, `error` and others. */
  readonly status: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** As Cinder writes it, without a zone. */
  readonly createdAt: string;
}

/** A part of a list, in Cinder's order. */
export interface CinderPage {
  /** The project whose resources are listed. With a caller's token Cinder lists those of the token's project. */
  readonly projectId: string;
  readonly offset: number;
  readonly limit: number;
}

/** `forbidden`: Cinder's policy does not let the caller have the list. */
export type CinderList<One> =
  | { readonly kind: "listed"; readonly found: readonly One[] }
  | { readonly kind: "forbidden"; readonly why: string };

export interface NewCinderSnapshot {
  readonly volumeId: string;
  readonly name: string;
  readonly description: string | null;
  /** Also of a volume that a server has. */
  readonly force: boolean;
  readonly metadata?: Readonly<Record<string, string>>;
}

export type MakeSnapshotOutcome =
  /** The snapshot exists, but may still be `creating`. */
  | { readonly kind: "created"; readonly snapshot: CinderSnapshot }
  | { readonly kind: "unknown" }
  | { readonly kind: "over-quota"; readonly why: string }
  | { readonly kind: "forbidden"; readonly why: string }
  | { readonly kind: "refused"; readonly why: string };

export interface SnapshotReport {
  readonly snapshotId: string;
  readonly status: "creating" | "deleting" | "error" | "error_deleting";
  /** Whether the host has done its part. Cinder keeps the latest word, also for a later deletion of the same snapshot, in which it deletes a file as soon as it finds that the host is done. */
  readonly isDone: boolean;
}

export type SnapshotReportOutcome = { readonly kind: "taken" } | { readonly kind: "refused"; readonly why: string };

export type RemoveOutcome =
  /** Cinder deletes it, which may take a while. */
  | { readonly kind: "deleting" }
  | { readonly kind: "unknown" }
  | { readonly kind: "forbidden"; readonly why: string }
  | { readonly kind: "refused"; readonly why: string };

/** What a new volume is filled from. */
export type VolumeSource =
  | { readonly kind: "blank" }
  | { readonly kind: "image"; readonly id: string }
  | { readonly kind: "snapshot"; readonly id: string };

export interface NewCinderVolume {
  readonly name: string;
  readonly description?: string | null;
  readonly metadata?: Readonly<Record<string, string>>;
  /** Null for the size of the snapshot. */
  readonly sizeGib: number | null;
  readonly source: VolumeSource;
  readonly volumeType: string | null;
  readonly availabilityZone: string | null;
}

export type MakeVolumeOutcome =
  /** The volume exists, but may still be `creating`. Cinder does not name its project in this answer. */
  | { readonly kind: "created"; readonly volume: CinderVolume }
  | { readonly kind: "over-quota"; readonly why: string }
  | { readonly kind: "forbidden"; readonly why: string }
  | { readonly kind: "refused"; readonly why: string };

/**
 * How far an attachment has come: `reserved` keeps the volume for a server, `attaching` has been connected to a host, and `attached` was finished.
 * Cinder knows further words. An attachment that was connected when it was made is `reserved` in the answer to that call.
 */
export interface CinderAttachment {
  readonly id: string;
  readonly volumeId: string;
  readonly serverUuid: string;
  readonly status: string;
  /**
   * How the host reaches the volume, as Cinder's driver describes it; null until the attachment is connected. May hold secrets. Only `attachment` tells
   * the right format: elsewhere it may be what the driver takes the content for, which the owner of a raw volume can write as it likes.
   */
  readonly connection: Readonly<Record<string, unknown>> | null;
}

/** A host as Cinder's drivers need to know it to export a volume to it. */
export interface VolumeConnector {
  readonly host: string;
  /** The iSCSI name of the host's initiator. */
  readonly initiator: string;
}

export interface NewCinderAttachment {
  readonly volumeId: string;
  readonly serverUuid: string;
  readonly connector: VolumeConnector | null;
}

export type ReserveVolumeOutcome =
  | { readonly kind: "reserved"; readonly attachment: CinderAttachment }
  | { readonly kind: "unknown" }
  | { readonly kind: "forbidden"; readonly why: string }
  /** For example because another server has the volume. */
  | RefusedConnection;

/** `isVague`: Cinder gives no reason. If the answer took long, the volume may be connected nevertheless, later. */
export interface RefusedConnection {
  readonly kind: "refused";
  readonly why: string;
  readonly isVague?: boolean;
}

export type ConnectVolumeOutcome =
  | { readonly kind: "connected"; readonly attachment: CinderAttachment }
  | { readonly kind: "gone" }
  | RefusedConnection;

/** A migration of Cinder's that moves a volume which a server has. */
export interface EndedMigration {
  readonly volumeId: string;
  /** The volume to which the data was copied. */
  readonly targetId: string;
  readonly hasFailed: boolean;
}

export type EndMigrationOutcome =
  | { readonly kind: "ended" }
  /** One of the volumes does not exist, or is not in this migration. */
  | { readonly kind: "refused"; readonly why: string };

/** The image that replaces the content of a volume. */
export interface Reimage {
  readonly volumeId: string;
  readonly imageId: string;
}

export type ReimageOutcome =
  /** The volume is `downloading` until Cinder has filled it, and then has its former status, or `error`. */
  | { readonly kind: "begun" }
  /** The volume holds what it held before. Cinder 21 may show it as `downloading` all the same, and forever, if it refuses the image. */
  | { readonly kind: "refused"; readonly why: string };

/** The attachments that have all of the given values, or one page of all attachments in an order of Cinder's own. */
export interface CinderAttachmentFilter {
  readonly serverUuid?: string;
  readonly volumeId?: string;
  /** The id of the last attachment of the page before; null for the first page. */
  readonly after?: string | null;
  readonly limit?: number;
}

/** One page of the volumes of all projects that have a status, in an order of Cinder's own. */
export interface CinderVolumesByStatus {
  readonly status: string;
  /** The id of the last volume of the page before; null for the first page. */
  readonly after: string | null;
  readonly limit: number;
}

/**
 * The Block Storage service as Berth uses it. Both implementations (Cinder, in-memory) pass test/contract/block-storage. Operating failures throw a
 * `BlockStorageError`. After one with the code `unreachable`, a change may have been made.
 *
 * A volume has an attachment for each server and host that uses it. The attachments of one server may exist side by side, which its moves need; a
 * second server gets one only if the volume allows several.
 *
 * Source: https://docs.openstack.org/api-ref/block-storage/v3/ (attachments: microversion 3.27, finishing them: 3.44)
 */
export interface BlockStorage {
  /** The volume, or null if there is none that the caller may see. */
  volume(id: string, by: AskedBy): Promise<CinderVolume | null>;
  volumes(page: CinderPage, by: AskedBy): Promise<CinderList<CinderVolume>>;
  /** The volumes of all projects with exactly this name, up to 1,000 of them. */
  volumesNamed(name: string): Promise<readonly CinderVolume[]>;
  /** Volumes of all projects: `limit` at most, and fewer if Cinder limits its lists itself. Fails with `bad-answer` if the volume `after` is gone. */
  volumesWithStatus(filter: CinderVolumesByStatus): Promise<readonly CinderVolume[]>;
  /** The snapshot, or null if there is none that the caller may see. */
  snapshot(id: string, by: AskedBy): Promise<CinderSnapshot | null>;
  snapshots(page: CinderPage, by: AskedBy): Promise<CinderList<CinderSnapshot>>;
  /** All snapshots of a volume, whoever owns them. */
  snapshotsOf(volumeId: string): Promise<readonly CinderSnapshot[]>;
  /** Makes a snapshot. Not repeatable: each call makes another one. After `unreachable`, `snapshotsOf` may show that it was made. */
  createSnapshot(wanted: NewCinderSnapshot, by: AskedBy): Promise<MakeSnapshotOutcome>;
  /** Deletes a snapshot as its owner asks for it. Refused while Cinder still makes it. */
  removeSnapshot(id: string, by: AskedBy): Promise<RemoveOutcome>;
  /**
   * Tells Cinder what has become of the part of a guest's host in a snapshot that Cinder makes or deletes: begun or done (`creating`, `deleting`), or failed (`error`, `error_deleting`). Repeatable.
   * Refused if Cinder does not wait for that.
   */
  reportSnapshot(report: SnapshotReport): Promise<SnapshotReportOutcome>;
  /** Makes a volume. Not repeatable: each call makes another one. After `unreachable`, `volumesNamed` may show that it was made. */
  createVolume(volume: NewCinderVolume, by: AskedBy): Promise<MakeVolumeOutcome>;
  /** Deletes a volume as its owner asks for it. */
  removeVolume(id: string, by: AskedBy): Promise<RemoveOutcome>;
  /** Deletes a volume that nothing has. One that does not exist counts as deleted. */
  deleteVolume(id: string): Promise<{ readonly kind: "deleted" } | { readonly kind: "refused"; readonly why: string }>;
  /**
   * Keeps a volume for a server, on no host yet, or with a connector exports it to that host at once, also if the server has it on another host. Not
   * repeatable: each call makes another attachment.
   */
  reserve(wanted: NewCinderAttachment, by: AskedBy): Promise<ReserveVolumeOutcome>;
  /** Attachments of all projects: `limit` at most, and fewer if Cinder limits its lists itself. Fails with `bad-answer` if the attachment `after` has ended. */
  attachments(filter: CinderAttachmentFilter): Promise<readonly CinderAttachment[]>;
  /** One attachment, of any project, with the connection that a host is to use. Null if there is none. */
  attachment(attachmentId: string): Promise<CinderAttachment | null>;
  /** Exports the volume to a host. Repeatable. Refused for one of several attachments of a volume if another one is connected. */
  connect(attachmentId: string, connector: VolumeConnector): Promise<ConnectVolumeOutcome>;
  /** Says that the host uses the volume, so that Cinder shows it as `in-use`. Repeatable. False if the attachment is gone. */
  complete(attachmentId: string): Promise<boolean>;
  /**
   * Ends a migration: the target gets the volume's id, and the attachments of the target are the volume's; what the volume has stored is deleted. If it has failed,
   * the target is deleted. Not repeatable: a migration that has ended is refused.
   */
  endMigration(migration: EndedMigration): Promise<EndMigrationOutcome>;
  /** Begins to fill a volume that no host has, and that at most one attachment keeps, with an image. Not repeatable while it is under way. */
  reimage(wanted: Reimage): Promise<ReimageOutcome>;
  /** Ends an attachment, and takes the volume away from its host. One that does not exist counts as ended. */
  deleteAttachment(attachmentId: string): Promise<void>;
}
