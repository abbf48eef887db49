import type { CinderSnapshot, SnapshotReport, SnapshotReportOutcome } from "../../core/stores/block-storage.ts";

/** Cinder's words while it waits for a guest's host, each with what it may hear then. */
const MAY_HEAR: Readonly<Record<string, readonly string[]>> = {
  creating: ["creating", "error"],
  deleting: ["deleting", "error_deleting"],
};

/** What a host is asked for, so that a snapshot is made or deleted. Null stands for no file, as in Cinder's calls. */
export interface MergeWish {
  readonly fileToMerge: string | null;
  readonly mergeTarget: string | null;
  /** The file that Cinder deletes afterwards. */
  readonly deletes: string;
}

/**
 * The snapshots of the in-process twin of Cinder, and the files of volumes of which a guest's host makes and deletes snapshots, as Cinder's drivers for shared file systems keep them: each snapshot has a
 * file, which holds what was written after it and refers to the file before.
 */
export class MemorySnapshotFiles {
  readonly all: Map<string, CinderSnapshot>;
  /** Whether Cinder goes on only when `goOn` is called, instead of when it hears that the host has done its part. */
  holds = false;
  /** Called when Cinder deletes a file of a volume. */
  onDeleted: (volumeId: string, file: string) => void = () => {};
  /** Called when Cinder names another file of a volume to its hosts. */
  readonly #onNamed: (volumeId: string, file: string) => void;
  /** The files of each volume, the one that Cinder names first, each with the one that it refers to after it. */
  readonly #chains = new Map<string, readonly string[]>();
  readonly #fileOf = new Map<string, string>();
  /** The files to which each snapshot's file refers since it was made. */
  readonly #below = new Map<string, readonly string[]>();
  readonly #merges = new Map<string, MergeWish>();
  /** The files of snapshots that were deleted, and that Cinder never named. */
  readonly #deletedUnmade = new Set<string>();
  /** The snapshots whose progress says that the host has done its part. */
  readonly #told = new Set<string>();

  constructor(all: Map<string, CinderSnapshot>, onNamed: (volumeId: string, file: string) => void) {
    this.all = all;
    this.#onNamed = onNamed;
  }

  /** The files of a volume, beginning with the one that Cinder names. */
  chainOf(volumeId: string): readonly string[] {
    return this.#chains.get(volumeId) ?? [`volume-${volumeId}`];
  }

  /** A file, and those that it refers to. */
  chainFrom(file: string): readonly string[] {
    const volumeId = file.slice("volume-".length).split(".")[0] ?? "";
    const chain = this.chainOf(volumeId);
    return chain.includes(file) ? chain.slice(chain.indexOf(file)) : [file, ...(this.#below.get(file) ?? [])];
  }

  /** Whether Cinder will never name a file: it has given the snapshot up for which it made the file, or a user has deleted that snapshot before it was made. */
  isGivenUp(file: string): boolean {
    if (this.#deletedUnmade.has(file)) return true;
    return [...this.all.values()].find(({ id }) => this.#fileOf.get(id) === file)?.status === "error";
  }

  /** The snapshots of a volume that were made while a guest used it. */
  madeOf(volumeId: string): readonly CinderSnapshot[] {
    return [...this.all.values()].filter(
      (one) => one.volumeId === volumeId && one.status !== "creating" && this.#fileOf.has(one.id),
    );
  }

  /** Cinder has made the file for a snapshot of a volume that a guest uses, and waits for the guest's host. Returns the file's name. */
  begin(snapshot: CinderSnapshot): string {
    const file = `volume-${snapshot.volumeId}.${snapshot.id}`;
    this.all.set(snapshot.id, { ...snapshot, status: "creating" });
    this.#fileOf.set(snapshot.id, file);
    this.#below.set(file, this.chainOf(snapshot.volumeId));
    return file;
  }

  /** Cinder is asked to delete a snapshot of a volume that a guest uses. Null if it can do so without the guest's host, or cannot do so now. */
  beginDeletion(id: string): MergeWish | null {
    const snapshot = this.all.get(id);
    const file = this.#fileOf.get(id) ?? "";
    const chain = snapshot === undefined ? [] : this.chainOf(snapshot.volumeId);
    const at = chain.indexOf(file);
    const below = chain[at + 1];
    if (snapshot === undefined || !["available", "error", "error_deleting"].includes(snapshot.status)) return null;
    if (at < 0 || below === undefined) {
      this.#delete(snapshot);
      return null;
    }
    const wish =
      at === 0
        ? { fileToMerge: chain[2] ?? null, mergeTarget: null, deletes: below }
        : { fileToMerge: file, mergeTarget: below, deletes: file };
    this.#merges.set(id, wish);
    this.all.set(id, { ...snapshot, status: "deleting" });
    // As Cinder does: a word of an earlier deletion that nobody has taken back counts.
    if (!this.holds) this.goOn(id);
    return wish;
  }

  report({ snapshotId, status, isDone }: SnapshotReport): SnapshotReportOutcome {
    const snapshot = this.all.get(snapshotId);
    if (snapshot === undefined) return { kind: "refused", why: `Snapshot ${snapshotId} could not be found.` };
    if (MAY_HEAR[snapshot.status]?.includes(status) !== true)
      return { kind: "refused", why: `Snapshot status ${snapshot.status} not allowed for update_snapshot_status` };
    if (status !== snapshot.status) this.all.set(snapshotId, { ...snapshot, status });
    if (isDone) this.#told.add(snapshotId);
    else this.#told.delete(snapshotId);
    if (!this.holds) this.goOn(snapshotId);
    return { kind: "taken" };
  }

  /** Cinder looks whether the host has done its part, and goes on if so. */
  goOn(id: string): void {
    const snapshot = this.all.get(id);
    if (snapshot === undefined || MAY_HEAR[snapshot.status] === undefined || !this.#told.delete(id)) return;
    const { volumeId, status } = snapshot;
    const chain = this.chainOf(volumeId);
    if (status === "creating") {
      const file = this.#fileOf.get(id) ?? "";
      this.#chains.set(volumeId, [file, ...chain]);
      this.#onNamed(volumeId, file);
      this.all.set(id, { ...snapshot, status: "available" });
      return;
    }
    const { deletes = "", mergeTarget = null } = this.#merges.get(id) ?? {};
    // The file that got the content of the one below it takes that one's snapshot, too.
    if (mergeTarget === null)
      for (const [other, file] of this.#fileOf)
        if (file === deletes) this.#fileOf.set(other, this.#fileOf.get(id) ?? "");
    this.#chains.set(
      volumeId,
      chain.filter((one) => one !== deletes),
    );
    this.#fileOf.delete(id);
    this.all.delete(id);
    this.onDeleted(volumeId, deletes);
  }

  /** The user deletes the snapshots of a volume that no server uses. Its files stay what they are. */
  forget(volumeId: string): void {
    for (const snapshot of this.all.values())
      if (snapshot.volumeId === volumeId && this.#fileOf.has(snapshot.id)) this.#delete(snapshot);
  }

  #delete({ id, status }: CinderSnapshot): void {
    const file = this.#fileOf.get(id);
    if (file !== undefined && (status === "creating" || status === "error")) this.#deletedUnmade.add(file);
    this.all.delete(id);
  }

  /** Cinder does not wait any longer. */
  giveUp(id: string): void {
    const snapshot = this.all.get(id);
    const status = snapshot?.status === "creating" ? "error" : "error_deleting";
    if (snapshot !== undefined && MAY_HEAR[snapshot.status] !== undefined) this.all.set(id, { ...snapshot, status });
  }
}
