import type {
  CinderPage,
  CinderSnapshot,
  CinderVolume,
  MakeSnapshotOutcome,
  NewCinderSnapshot,
  RemoveOutcome,
} from "../../core/stores/block-storage.ts";
import { storagePage } from "./block-storage-records.ts";

/** Cinder deletes no snapshot in another status. Source: `delete_snapshot` of its volume API. */
const DELETABLE: readonly string[] = ["available", "error"];

type SnapshottedVolume = Pick<CinderVolume, "id" | "projectId" | "sizeGib" | "status" | "createdAt">;

/** The snapshots of the in-process twin of Cinder. One that a caller may not see counts as unknown, as in Cinder. */
export class MemoryVolumeSnapshots {
  /** By their ids. */
  readonly stored = new Map<string, CinderSnapshot>();
  readonly #newId: () => string;

  constructor(options: { readonly newId: () => string }) {
    this.#newId = options.newId;
  }

  put(
    volumeId: string,
    volume: Partial<SnapshottedVolume> | undefined,
    values: Partial<CinderSnapshot>,
  ): CinderSnapshot {
    const { projectId = "", sizeGib = 1, createdAt = "" } = volume ?? {};
    const own = { name: "", description: null, metadata: {}, status: "available", createdAt };
    const snapshot = { id: this.#newId(), projectId, volumeId, sizeGib, ...own, ...values };
    this.stored.set(snapshot.id, snapshot);
    return snapshot;
  }

  find(id: string, callerToken: string | null): CinderSnapshot | null {
    const snapshot = this.stored.get(id);
    return snapshot === undefined || (callerToken !== null && snapshot.projectId !== callerToken) ? null : snapshot;
  }

  page(page: CinderPage, callerToken: string | null): readonly CinderSnapshot[] {
    return storagePage(this.stored.values(), page, callerToken);
  }

  of(volumeId: string): readonly CinderSnapshot[] {
    return [...this.stored.values()].filter((one) => one.volumeId === volumeId);
  }

  all(): readonly CinderSnapshot[] {
    return [...this.stored.values()];
  }

  setStatus(id: string, status: string): void {
    const snapshot = this.stored.get(id);
    if (snapshot !== undefined) this.stored.set(id, { ...snapshot, status });
  }

  make(
    { volumeId, name, description, force, metadata = {} }: NewCinderSnapshot,
    {
      volume,
      ownedMax,
      status,
    }: { readonly volume: SnapshottedVolume; readonly ownedMax: number; readonly status: string },
  ): MakeSnapshotOutcome {
    if (volume.status !== "available" && !(force && volume.status === "in-use"))
      return { kind: "refused", why: `Invalid volume: Volume ${volumeId} status must be available.` };
    const owned = [...this.stored.values()].filter(({ projectId }) => projectId === volume.projectId);
    if (owned.length >= ownedMax)
      return { kind: "over-quota", why: "SnapshotLimitExceeded: Maximum number of snapshots allowed exceeded" };
    return { kind: "created", snapshot: this.put(volumeId, volume, { name, description, metadata, status }) };
  }

  remove(id: string, callerToken: string | null): RemoveOutcome {
    const snapshot = this.find(id, callerToken);
    if (snapshot === null) return { kind: "unknown" };
    if (!DELETABLE.includes(snapshot.status))
      return {
        kind: "refused",
        why: `Invalid snapshot: Snapshot status must be available or error and snapshot must not be part of a group; snapshot ${id} is ${snapshot.status}.`,
      };
    this.stored.delete(id);
    return { kind: "deleting" };
  }
}
