import type { EndingReplacement, ReplacementEndOutcome } from "../../../../adapters/openstack/replacement-ender.ts";
import type {
  NewAttachment,
  ReserveOutcome,
  VolumeRecord,
  VolumeStore,
} from "../../../../core/stores/api/volume-store.ts";
import type { CinderHolder, VolumeSource } from "../../../../core/stores/block-storage.ts";
import type { KnownCall } from "../../http/call.ts";
import type { Fault } from "../../http/fault.ts";

/** `held`: another process does it, or the attachment has ended. */
export type OwedEndOutcome = Extract<ReplacementEndOutcome, { kind: "ended" | "refused" }> | { readonly kind: "held" };

/** The calls that follow attachments of volumes to their end. */
export interface SettledVolumes
  extends Pick<VolumeStore, "sweepEnded" | "unsettled" | "confirmAttached" | "release" | "endAttachment"> {
  /**
   * Tells the Block Storage service how the replacement of a volume has ended whose server is gone, before the attachment of the volume ends. Rejects with a
   * BlockStorageError if it is not known whether that was done. Absent where volumes are never replaced.
   */
  endReplacement?(replacement: EndingReplacement, attachmentId: string): Promise<OwedEndOutcome>;
}

export type ReservedOutcome =
  | { readonly kind: "reserved"; readonly attachment: NewAttachment }
  | { readonly kind: Exclude<ReserveOutcome, "reserved"> }
  /** The Block Storage service does not let the server have the volume. Nothing is reserved. */
  | { readonly kind: "refused"; readonly fault: Fault };

/** A volume as the Block Storage service shows it now. One that several servers may have at a time is shown without their attachments. */
export interface FoundRecord extends VolumeRecord {
  /** Several servers may have it at a time. */
  readonly isMultiattach: boolean;
  /** Its finished attachments. */
  readonly attachedTo: readonly CinderHolder[];
  /** Its status in Cinder; empty for one of Berth's own. */
  readonly cinderStatus: string;
  /** How far Cinder's migration of it has come, if the caller may see that; empty for none. */
  readonly migrationStatus: string;
  /** The properties of the image that it was filled from. */
  readonly imageProperties: Readonly<Record<string, string>>;
}

/** A volume that is to be made for a new server. */
export interface NewServerVolume {
  /** No other volume has this name. By it, a volume is found again if the api that asked for it ends, or does not get Cinder's answer. */
  readonly name: string;
  readonly source: VolumeSource;
  /** Null for the size of the snapshot. */
  readonly sizeGib: number | null;
  readonly volumeType: string | null;
}

export type MadeOutcome =
  /** The volume exists, and may still be filled. It is kept for its server. */
  | { readonly kind: "made"; readonly volume: Pick<FoundRecord, "id" | "sizeGib" | "inCinder" | "isMultiattach"> }
  /** Nothing was made. */
  | { readonly kind: "refused"; readonly fault: Fault };

/** A volume of a server, and the one to which Cinder migrates it, as they have been found. */
export interface Replacement {
  readonly own: FoundRecord;
  readonly other: FoundRecord;
  readonly serverUuid: string;
}

export type ReplacementOutcome =
  | { readonly kind: "reserved"; readonly attachmentId: string }
  /** Nothing is reserved. */
  | { readonly kind: "refused"; readonly fault: Fault };

/** The volumes of servers as the Compute API uses them: Berth's own, or those of Cinder. */
export interface ServerVolumes
  extends SettledVolumes,
    Pick<VolumeStore, "volumes" | "volumesOfServers" | "renewReserved" | "beginDetaching" | "setDeleteOnTermination"> {
  /** The volumes with these ids that the caller may see. */
  find(ids: readonly string[], call: KnownCall): Promise<readonly FoundRecord[]>;
  /** The size of a snapshot that the caller may see, and the properties of the image that its volume was filled from. Null if there is none. */
  snapshotted(id: string, call: KnownCall): Promise<Pick<FoundRecord, "sizeGib" | "imageProperties"> | null>;
  /**
   * Makes a volume for a new server, in the caller's name. Its row is written first, so that a process that ends in between leaves a row that the settler
   * finds, which then deletes what was made.
   */
  make(wanted: NewServerVolume, attachment: NewAttachment, call: KnownCall): Promise<MadeOutcome>;
  /**
   * Reserves a volume for a server, in the caller's name. Of concurrent calls for one volume, only one gets it, and of those for a volume that several servers may
   * have, one of each server.
   */
  reserve(volume: FoundRecord, attachment: NewAttachment, call: KnownCall): Promise<ReservedOutcome>;
  /**
   * Shows a volume that is reserved for a server on no host as in use. Returns false for an attachment that has ended meanwhile. If it is not known whether that was
   * done, the row stays as it is, and the settler gives the volume back.
   */
  finishWithoutHost(attachmentId: string): Promise<boolean>;
  /** The present size of a volume, whoever owns it. Null if there is none. Rejects with a BlockStorageError if it is not known. */
  sizeGibOf(id: string): Promise<number | null>;
  /** The present status of a volume in Cinder, whoever owns it. Null for one that is not there. A call for which Cinder cannot answer is refused (503). */
  statusInCinder(id: string): Promise<string | null>;
  /**
   * Tells Cinder that a guest's host has not merged anything yet for a snapshot that Cinder deletes. An earlier deletion that has failed, under Nova for example, may have left another word, by
   * which Cinder would delete a file at once. A call for which Cinder cannot answer is refused (503).
   */
  beginMerge(snapshotId: string): Promise<void>;
  /** Reserves the volume that is to replace a server's volume for this server, if it can do that. */
  reserveReplacement(replacement: Replacement, call: KnownCall): Promise<ReplacementOutcome>;
  /** Ends such a reservation. Rejects with a BlockStorageError if that is not known. */
  giveUpReplacement(attachmentId: string): Promise<void>;
}
