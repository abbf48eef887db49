import type { CinderSnapshot, CinderVolume } from "../../../../core/stores/block-storage.ts";
import type { KnownCall } from "../../http/call.ts";

/** A volume as the proxies of the Block Storage API show it. */
export interface ProxiedVolume
  extends Pick<
    CinderVolume,
    "id" | "name" | "description" | "status" | "sizeGib" | "availabilityZone" | "createdAt" | "volumeType"
  > {
  readonly snapshotId: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  /** The server that has the volume, and the disk's name there, which may be empty. Of several servers, the first. */
  readonly holder: { readonly serverUuid: string; readonly device: string } | null;
}

export type ProxiedSnapshot = Omit<CinderSnapshot, "projectId">;

export interface ListPart {
  readonly offset: number;
  readonly limit: number;
}

export interface NewProxiedVolume {
  readonly name: string;
  readonly description: string | null;
  readonly sizeGib: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly volumeType: string | null;
  readonly availabilityZone: string | null;
  readonly snapshotId: string | null;
}

export interface NewProxiedSnapshot {
  readonly volumeId: string;
  readonly name: string;
  readonly description: string | null;
  readonly force: boolean;
}

/**
 * The volumes and snapshots of the caller's project as `/os-volumes` and `/os-snapshots` reach them. What is refused is thrown as a fault with Nova's
 * status and message.
 */
export interface ProxiedVolumes {
  volumes(part: ListPart, call: KnownCall): Promise<readonly ProxiedVolume[]>;
  /** Null if there is none that the caller may see. */
  volume(id: string, call: KnownCall): Promise<ProxiedVolume | null>;
  createVolume(wanted: NewProxiedVolume, call: KnownCall): Promise<ProxiedVolume>;
  deleteVolume(id: string, call: KnownCall): Promise<void>;
  snapshots(part: ListPart, call: KnownCall): Promise<readonly ProxiedSnapshot[]>;
  /** Null if there is none that the caller may see. */
  snapshot(id: string, call: KnownCall): Promise<ProxiedSnapshot | null>;
  createSnapshot(wanted: NewProxiedSnapshot, call: KnownCall): Promise<ProxiedSnapshot>;
  deleteSnapshot(id: string, call: KnownCall): Promise<void>;
}
