/**
 * How far an attachment has come. `attaching` and `detaching` last until the server's cell is known to have ended the operation, and for a server
 * that is gone, until no host can have a guest of it.
 */
export const ATTACHMENT_PHASES = ["attaching", "attached", "detaching"] as const;
export type AttachmentPhase = (typeof ATTACHMENT_PHASES)[number];

/** The server that has a volume, will get it, or had it last. A volume has one at most, except a shared one. */
export interface VolumeAttachment {
  readonly phase: AttachmentPhase;
  readonly serverUuid: string;
  /** The cell where the server lives. Empty while the server is being created, since its cell is not chosen yet. */
  readonly cell: string;
  readonly attachmentId: string;
  /** Nova: the UUID of the block device mapping. */
  readonly mappingUuid: string;
  /** The name under which clients see the disk, such as /dev/vdb. No two volumes of a server have the same. */
  readonly device: string;
  readonly tag: string | null;
  readonly deleteOnTermination: boolean;
  /**
   * The operation that attaches or detaches the volume, known before its cell is told of it. The server's own UUID while the server is built with the
   * volume. Null while the volume is attached, and once the server is gone.
   */
  readonly taskId: string | null;
  /** When the cell was known to have attached it. Null before. */
  readonly attachedAtMs: number | null;
  /** For how long the phase has lasted, by the clock of the database. */
  readonly phaseAgeMs: number;
}

/**
 * How far a volume has come that is made together with a server. `asked`: Cinder was asked for a volume with the row's name. Its id is not known, so the row
 * has an id of its own. `made`: the volume exists, and may still be filled.
 */
export type VolumeMaking = "asked" | "made";

/** A volume. One of Cinder that several servers may have at a time (a shared one) has a record for each of its servers. */
export interface VolumeRecord {
  readonly id: string;
  readonly projectId: string;
  readonly userId: string;
  readonly name: string;
  readonly description: string | null;
  readonly sizeGib: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly availabilityZone: string;
  readonly isBootable: boolean;
  /** It is a volume of Cinder, of which this is a copy for as long as a server has it. */
  readonly inCinder: boolean;
  /** It was made together with the server that has it, which is not known to have run with it yet. Null for all other volumes. */
  readonly making: VolumeMaking | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number | null;
  /** Null while no server has the volume. */
  readonly attachment: VolumeAttachment | null;
}

/**
 * Whether a server is still being built with a volume that is made for it, so that the volume is deleted when it is released. A volume that a server has had
 * holds a user's data, whatever `making` says: apis of earlier versions do not write it.
 */
export function isBuiltWith(making: VolumeMaking | null, attachment: BuildingAttachment): boolean {
  const { phase, taskId, serverUuid, attachedAtMs } = attachment;
  return making !== null && phase === "attaching" && taskId === serverUuid && attachedAtMs === null;
}
type BuildingAttachment = Pick<VolumeAttachment, "phase" | "taskId" | "serverUuid" | "attachedAtMs">;

export type NewVolume = Omit<VolumeRecord, "attachment" | "updatedAtMs">;
/** What an owner changes of a volume. Absent fields stay as they are. */
export type VolumeChanges = Partial<Pick<VolumeRecord, "name" | "description" | "metadata" | "isBootable">>;
/** A volume that Cinder has made, as far as the row of a volume names it. */
export type MadeVolume = Pick<VolumeRecord, "id" | "sizeGib" | "availabilityZone" | "isBootable">;
/** An attachment that an api is about to ask a cell for. */
export type NewAttachment = Omit<VolumeAttachment, "phase" | "taskId" | "attachedAtMs" | "phaseAgeMs"> & {
  readonly taskId: string;
};

/** The volumes of a project, or of all projects, that have all of the given values. */
export interface VolumeQuery {
  /** Null selects the volumes of all projects. */
  readonly projectId: string | null;
  readonly name?: string;
  /** `available` selects those that no server has. */
  readonly phase?: AttachmentPhase | "available";
  /** Only volumes that follow this one in the list. */
  readonly after?: Pick<VolumeRecord, "id" | "createdAtMs">;
  readonly offset?: number;
  readonly limit: number;
}

/** The number and the total size of a project's volumes. */
export interface VolumeUsage {
  readonly volumes: number;
  readonly gib: number;
}

export type CreateVolumeOutcome =
  | { readonly kind: "created" }
  /** The limit that the volume exceeds. */
  | { readonly kind: "over-limit"; readonly limit: keyof VolumeUsage; readonly used: number };

/** `taken`: a server has the volume. `device-taken`: another volume of the server has the device. */
export type ReserveOutcome = "reserved" | "taken" | "device-taken" | "unknown";

/** The volumes that one sweep looks at. */
export type SweptVolumes =
  | { readonly servers: readonly string[] }
  | { readonly after: string | null; readonly limit: number };

export interface SweepOutcome {
  /** How many attachments have ended. */
  readonly ended: number;
  /** The id after which the next sweep goes on; null at the end of the volumes. */
  readonly next: string | null;
}

/**
 * Volumes, and which server has each. Both implementations (Postgres, in-memory) pass test/contract/volume-store. Operating failures throw the
 * store's error.
 *
 * A volume goes from one server to another only over `reserve`, which takes only a volume without an attachment. A shared one has an attachment for each
 * server, which the functions below tell apart by the server, the operation or the attachment. An attachment ends by
 * `release` and `endAttachment`, whose callers know from the cell that no guest has the volume and that the operation can no longer begin.
 */
export interface VolumeStore {
  /**
   * Stores a volume unless its project would exceed a limit (null: none). Concurrent calls are counted exactly. With `attachment`, the volume is reserved for
   * that server from the beginning. The caller gives each volume of the server another device.
   */
  createVolume(volume: NewVolume, limits: VolumeUsage | null, attachment?: NewAttachment): Promise<CreateVolumeOutcome>;
  /**
   * asked → made: gives the row the id and the other values of the volume that Cinder has made. False if the row is gone, or if another row has the
   * id.
   */
  setMade(id: string, made: MadeVolume): Promise<boolean>;
  /**
   * Stores a copy of a volume in Cinder, so that it can be reserved. While a server has the volume, nothing changes. False if a volume of Berth's own has
   * its id.
   */
  copyVolume(volume: NewVolume): Promise<boolean>;
  /** The existing volumes with these ids, in any order, and for a shared one a record for each of its servers. */
  volumes(ids: readonly string[]): Promise<readonly VolumeRecord[]>;
  /** Volumes, newest first. Volumes of the same time are sorted by id. */
  listVolumes(query: VolumeQuery): Promise<readonly VolumeRecord[]>;
  usage(projectId: string): Promise<VolumeUsage>;
  /**
   * Replaces fields of a volume by the result of `change`, which is called again after a concurrent update. Returns null when there is no such
   * volume.
   */
  updateVolume(
    id: string,
    change: (volume: VolumeRecord) => VolumeChanges,
    nowMs: number,
  ): Promise<VolumeRecord | null>;
  /** Deletes a volume that no server has. */
  deleteVolume(id: string): Promise<"deleted" | "taken" | "unknown">;

  /** The volumes that these servers have, will get, or had last, in the order in which they were reserved. */
  volumesOfServers(serverUuids: readonly string[]): Promise<readonly VolumeRecord[]>;
  /** Reserves a volume that no server has. Of concurrent calls for one volume, only one gets it. */
  reserve(id: string, attachment: NewAttachment): Promise<ReserveOutcome>;
  /**
   * Reserves a copy of a volume that several servers may have at a time. Each server gets it once; of concurrent calls for one server and volume, only one
   * gets it. The copy ends with the attachment, and is never one that was made for the server: then the end of a failed build would delete the other servers' data.
   */
  reserveShared(volume: NewVolume, attachment: NewAttachment): Promise<Exclude<ReserveOutcome, "unknown">>;
  /** The volumes that are reserved for these servers, which are still to be built: their phase lasts from now on. */
  renewReserved(serverUuids: readonly string[]): Promise<void>;
  /** attached → detaching by this operation. False if the server does not have the volume attached. */
  beginDetaching(id: string, of: { readonly serverUuid: string; readonly taskId: string }): Promise<boolean>;
  /**
   * attaching or detaching by this operation → attached. False if the volume is in no such phase. With `cell`, that is the cell where the server
   * was built. From then on the volume is no longer one that is being made.
   */
  confirmAttached(id: string, taskId: string, nowMs: number, cell?: string): Promise<boolean>;
  /**
   * attaching or detaching by this operation → no server has the volume. One that was made for its server is deleted if the operation is the server's build
   * (`isBuiltWith`). False if the volume is in no such phase.
   */
  release(id: string, taskId: string): Promise<boolean>;
  /** Replaces the id of a server's attachment, which Cinder has chosen. False if the server does not have the volume. */
  setAttachmentId(id: string, of: { readonly serverUuid: string; readonly attachmentId: string }): Promise<boolean>;
  /** Sets whether an attached volume is deleted with its server. False if the server does not have the volume. */
  setDeleteOnTermination(id: string, serverUuid: string, value: boolean): Promise<boolean>;
  /**
   * Attachments whose server the API database shows as gone, or does not know any longer → detaching without an operation. A volume that was
   * not attached is not deleted with the server, except one that was made with it. A volume that an unknown server is built with is left as it is:
   * the server may be about to be accepted. Looks at the volumes of the given servers, or at `limit` volumes from the first id after `after` on
   * (null: from the beginning).
   */
  sweepEnded(range: SweptVolumes): Promise<SweepOutcome>;
  /**
   * Volumes that are attaching or detaching, sorted by id, from the first id after `after` on (null: from the beginning): `limit` of them, and
   * what else has the last one's id, so that a page never ends within a shared volume.
   */
  unsettled(after: string | null, limit: number): Promise<readonly VolumeRecord[]>;
  /**
   * Lets one holder alone do what must be done once before an attachment ends, for so long by the clock of the database. The same holder may hold it again. False while another one
   * holds it, and if the attachment has ended.
   */
  holdEnd(id: string, attachmentId: string, by: { readonly holder: string; readonly ms: number }): Promise<boolean>;
  /**
   * Ends an attachment whose server is gone: the volume is deleted with it, or released. A volume that was made for a server that `neverRan` is deleted in any
   * case. Returns null if the attachment has ended before.
   */
  endAttachment(id: string, attachmentId: string, neverRan: boolean): Promise<"deleted" | "released" | null>;
}
