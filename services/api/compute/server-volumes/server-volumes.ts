import type {
  NewAttachment,
  ReserveOutcome,
  VolumeRecord,
  VolumeStore,
} from "../../../../core/stores/api/volume-store.ts";
import type { KnownCall } from "../../http/call.ts";
import type { Fault } from "../../http/fault.ts";

/** The calls that follow attachments of volumes to their end. */
export type SettledVolumes = Pick<
  VolumeStore,
  "sweepEnded" | "unsettled" | "confirmAttached" | "release" | "endAttachment"
>;

export type ReservedOutcome =
  | { readonly kind: "reserved"; readonly attachment: NewAttachment }
  | { readonly kind: Exclude<ReserveOutcome, "reserved"> }
  /** The Block Storage service does not let the server have the volume. Nothing is reserved. */
  | { readonly kind: "refused"; readonly fault: Fault };

/** The volumes of servers as the Compute API uses them: Berth's own, or those of Cinder. */
export interface ServerVolumes
  extends SettledVolumes,
    Pick<VolumeStore, "volumes" | "volumesOfServers" | "beginDetaching" | "setDeleteOnTermination"> {
  /** The volumes with these ids that the caller may see. */
  find(ids: readonly string[], call: KnownCall): Promise<readonly VolumeRecord[]>;
  /** Reserves a volume for a server, in the caller's name. Of concurrent calls for one volume, only one gets it. */
  reserve(volume: VolumeRecord, attachment: NewAttachment, call: KnownCall): Promise<ReservedOutcome>;
}
