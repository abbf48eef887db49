import type { MemoryBlockStorage } from "../adapters/memory/memory-block-storage.ts";
import { targetOf } from "../adapters/memory/memory-volume-migrations.ts";
import type { CinderVolume, EndedMigration, EndMigrationOutcome } from "../core/stores/block-storage.ts";
import { BlockStorageError } from "../core/stores/block-storage-error.ts";
import type { KnownServers } from "./known-servers.ts";
import { SimContents } from "./sim-contents.ts";
import type { World } from "./world.ts";

/** How Cinder migrates volumes while there are faults. */
export interface MigrationHabits {
  /** Longest time in which the other volume is made, in milliseconds, and the share of the migrations for which it cannot be made. */
  readonly makeMsMax: number;
  readonly failedShare: number;
  /** Share of the completions that Cinder begins only when nobody waits for its answer any longer. */
  readonly lateShare: number;
  /** Share of the migrations that are retypes, during which the volume has another status. */
  readonly retypeShare: number;
  /** Share of the servers that boot from a volume. */
  readonly bootShare: number;
}

/** How long Cinder's API waits for its service, and how long a completion may take. */
const RPC_TIMEOUT_MS = 60_000;
const COMPLETE_MS_MAX = 20_000;
/** How often an operator looks for migrations that Berth has left to Cinder. */
const LOOK_MS = 500;
/** The migration statuses of a volume that may be migrated. */
const IDLE: readonly string[] = ["", "success", "error"];

/** The migrations of a simulated Cinder, which let hosts copy the volumes of servers, and what must be true of them. */
export class SimMigrations {
  readonly contents: SimContents;
  readonly #world: World;
  readonly #habits: MigrationHabits;
  readonly #twin: MemoryBlockStorage;
  readonly #servers: KnownServers;
  readonly #random: () => number;
  readonly #newId: () => string;
  /** Stores a volume that exists. */
  readonly #put: MemoryBlockStorage["putVolume"];
  readonly #end: MemoryBlockStorage["endMigration"];
  readonly #remove: MemoryBlockStorage["deleteVolume"];
  /** The completions that were asked for and have not ended. */
  readonly #completing = new Set<string>();
  /** The targets of all migrations, with the volumes that they were to replace. */
  readonly #targets = new Map<string, string>();
  /** The targets of those for which Cinder still asks the Compute API to replace the volume. It gives them up by itself if that fails. */
  readonly #asking = new Set<string>();
  #isCalm = false;
  /** How many migrations have ended with the other volume, and how many with the server's own one, or were left to an operator. */
  readonly counts = { completed: 0, abandoned: 0, "given up": 0, "ended by operators": 0 };

  /** `put` stores a volume that does not have to be filled. */
  constructor(
    world: World,
    habits: MigrationHabits,
    twin: MemoryBlockStorage,
    {
      servers,
      put,
      newId,
      shared,
    }: {
      readonly servers: KnownServers;
      readonly put: MemoryBlockStorage["putVolume"];
      readonly newId: () => string;
      readonly shared: readonly string[];
    },
  ) {
    this.#world = world;
    this.#habits = habits;
    this.#twin = twin;
    this.#servers = servers;
    this.#put = put;
    this.#newId = newId;
    this.#random = world.random("volume migrations in Cinder");
    this.contents = new SimContents(world, servers, shared);
    this.#end = twin.endMigration.bind(twin);
    this.#remove = twin.deleteVolume.bind(twin);
    twin.endMigration = (migration) => this.#endAsked(migration);
    const look = async () => {
      for (const [targetId, volumeId] of this.#targets) await this.#mend(volumeId, targetId);
      this.#world.clock.setTimer(LOOK_MS, () => void look());
    };
    world.clock.setTimer(LOOK_MS, () => void look());
  }

  /** Whether a volume is being migrated. Its users change nothing about it meanwhile. */
  isUnderWay(volumeId: string): boolean {
    const { migrationStatus = "" } = this.#find(volumeId) ?? {};
    return !IDLE.includes(migrationStatus);
  }

  /**
   * A user retypes a volume, or an operator migrates it. Resolves with the volume that is to take its place, and with the servers that have the volume, once for each attachment. Null if the
   * volume may not be migrated, or the other one could not be made.
   */
  async begin(volumeId: string): Promise<{ readonly targetId: string; readonly servers: readonly string[] } | null> {
    const { makeMsMax, failedShare, retypeShare } = this.#habits;
    const [makeMs, failed, retype] = [this.#random() * makeMsMax, this.#random(), this.#random()];
    const volume = this.#find(volumeId);
    if (volume?.status !== "in-use" || this.isUnderWay(volumeId)) return null;
    const status = retype < retypeShare ? "retyping" : volume.status;
    this.#put({ ...volume, status, migrationStatus: "migrating" });
    await this.#pause(makeMs);
    const now = this.#find(volumeId);
    if (now === undefined) return null;
    if (failed < failedShare) {
      await this.#setStatus(now, "error");
      return null;
    }
    const id = this.#newId();
    this.#put({ ...now, id, status: "available", migrationStatus: targetOf(volumeId) });
    this.#targets.set(id, volumeId);
    this.#asking.add(id);
    this.#world.history.record("cinder", "migrates", { volumeId, targetId: id, status });
    const attachments = await this.#unasked(() => this.#twin.attachments({ volumeId }));
    return { targetId: id, servers: attachments.map(({ serverUuid }) => serverUuid) };
  }

  /** All calls to the Compute API were accepted. From now on Cinder waits to be told how the migration ends. */
  accepted(targetId: string): void {
    this.#asking.delete(targetId);
  }

  /** A call to the Compute API was refused or not answered: Cinder gives the migration up, and deletes the other volume if no host has it. */
  async giveUp(volumeId: string, targetId: string): Promise<void> {
    this.#asking.delete(targetId);
    const [own, other] = [this.#find(volumeId), this.#find(targetId)];
    // Berth has ended it already.
    if (own?.migrationStatus !== "migrating" || other?.migrationStatus !== targetOf(volumeId)) return;
    this.counts["given up"] += 1;
    this.#world.history.record("cinder", "gives a migration up", { volumeId, targetId });
    await this.#carryOut({ volumeId, targetId, hasFailed: true });
    const now = this.#find(volumeId);
    if (now !== undefined) await this.#setStatus(now, "error");
  }

  /** The volume has the status of its attachments again, and its migration has ended like this. */
  async #setStatus(volume: CinderVolume, migrationStatus: string): Promise<void> {
    const { id: volumeId } = volume;
    const isUsed = (await this.#unasked(() => this.#twin.attachments({ volumeId }))).length > 0;
    this.#put({ ...volume, status: isUsed ? "in-use" : "available", migrationStatus });
  }

  /** There are no more faults. */
  calm(): void {
    this.#isCalm = true;
  }

  /** What is wrong once nothing is under way. */
  wrongAtRest(): readonly string[] {
    return this.#twin.all().flatMap(({ id, migrationStatus, status }) => {
      if (!IDLE.includes(migrationStatus))
        return [`volume ${id} is ${status}, and its migration is ${migrationStatus}`];
      return this.contents.wrongAtRest(id, this.#twin.fileOf(id));
    });
  }

  async #endAsked(migration: EndedMigration): Promise<EndMigrationOutcome> {
    const { volumeId, targetId, hasFailed } = migration;
    const isLate = this.#random() < this.#habits.lateShare && !this.#isCalm && !hasFailed;
    if (this.#completing.has(targetId) && !hasFailed)
      this.#world.find(6, `Cinder was asked twice at a time to complete the migration of volume ${volumeId}`);
    if (!isLate) return this.#watched(migration, () => this.#end(migration));
    const [beginMs, takesMs] = [this.#random() * RPC_TIMEOUT_MS, this.#random() * COMPLETE_MS_MAX];
    this.#completing.add(targetId);
    this.#world.clock.setTimer(beginMs, () => void this.#completeLate(migration, takesMs));
    await this.#pause(RPC_TIMEOUT_MS);
    throw new BlockStorageError("unreachable", "Cinder does not answer: its service is slow");
  }

  async #completeLate(migration: EndedMigration, takesMs: number): Promise<void> {
    const { volumeId, targetId } = migration;
    const [own, other] = [this.#find(volumeId), this.#find(targetId)];
    if (own !== undefined && own.migrationStatus !== "" && other?.migrationStatus === targetOf(volumeId)) {
      this.#put({ ...own, migrationStatus: "completing" });
      await this.#pause(takesMs);
      await this.#carryOut(migration);
    }
    this.#completing.delete(targetId);
  }

  #carryOut(migration: EndedMigration): Promise<EndMigrationOutcome> {
    return this.#watched(migration, () => this.#unasked(() => this.#end(migration)));
  }

  /** Notes which of the two files is gone after the work. */
  async #watched(
    { volumeId, targetId }: EndedMigration,
    work: () => Promise<EndMigrationOutcome>,
  ): Promise<EndMigrationOutcome> {
    const [own, other, was] = [this.#twin.fileOf(volumeId), this.#twin.fileOf(targetId), this.#find(volumeId)];
    const had = this.#find(targetId) !== undefined;
    try {
      return await work();
    } finally {
      const file = this.#twin.fileOf(volumeId);
      const isGone = had && this.#find(targetId) === undefined;
      if (was !== undefined && isGone && file === other) {
        this.counts.completed += 1;
        this.contents.dropped(volumeId, own, other);
      } else if (was !== undefined && isGone) {
        this.counts.abandoned += 1;
        this.contents.dropped(volumeId, other, own);
      }
    }
  }

  /** An operator ends the migration of a volume that no server has any longer, after a look into both volumes, and deletes a volume that was to replace another one and did not. */
  async #mend(volumeId: string, targetId: string): Promise<void> {
    const [own, other] = [this.#find(volumeId), this.#find(targetId)];
    if (this.#completing.has(targetId) || this.#asking.has(targetId)) return;
    if (other?.attachedTo.length === 0 && !this.#isNeeded(targetId) && !this.isUnderWay(volumeId)) {
      this.#put({ ...other, status: "available", migrationStatus: "" });
      await this.#unasked(() => this.#remove(targetId));
    }
    if (other === undefined) this.#targets.delete(targetId);
    if (own?.migrationStatus !== "migrating" || other?.migrationStatus !== targetOf(volumeId)) return;
    const { contents } = this;
    const isNeeded = this.#isNeeded(volumeId);
    const attachments = await this.#unasked(() => this.#twin.attachments({}));
    const isAttached = (id: string) => attachments.some((one) => one.volumeId === id);
    if (!isNeeded && !isAttached(volumeId)) contents.forsake(volumeId);
    // A server has got the volume after the one for which it was migrated had lost it.
    const isTaken = isNeeded && contents.isForsaken(volumeId);
    if (isAttached(targetId) || (!isTaken && (isNeeded || isAttached(volumeId)))) return;
    this.counts["ended by operators"] += 1;
    const [file, otherFile] = [this.#twin.fileOf(volumeId), this.#twin.fileOf(targetId)];
    const isOwn = isTaken || contents.versionOf(file) >= contents.versionOf(otherFile);
    await this.#carryOut({ volumeId, targetId, hasFailed: isOwn });
    contents.decided(volumeId, isOwn ? file : otherFile);
    const now = this.#find(volumeId);
    if (now !== undefined) await this.#setStatus(now, isOwn ? "error" : "success");
  }

  /** Whether a server that is not deleted has the volume, or may have it in the place of its own. */
  #isNeeded(volumeId: string): boolean {
    const writer = this.contents.writerOf(volumeId);
    const users = this.#servers.guests().map(({ serverUuid }) => serverUuid);
    return [...users, ...(writer === null ? [] : [writer])].some((serverUuid) => {
      const server = this.#servers.look(serverUuid);
      if (server === null || server.status === "DELETED") return false;
      return server.spec.volumes.some((one) => [one.volumeId, one.replacedBy].includes(volumeId));
    });
  }

  #find(volumeId: string): CinderVolume | undefined {
    return this.#twin.all().find(({ id }) => id === volumeId);
  }

  /** What Cinder does by itself meets none of the faults of calls. */
  #unasked<Value>(work: () => Promise<Value>): Promise<Value> {
    const { fate } = this.#twin;
    this.#twin.fate = () => "answered";
    const working = work();
    this.#twin.fate = fate;
    return working;
  }

  #pause(forMs: number): Promise<void> {
    return new Promise((resolve) => this.#world.clock.setTimer(forMs, resolve));
  }
}
