import { MemoryBlockStorage } from "../adapters/memory/memory-block-storage.ts";
import type { MemorySnapshotFiles } from "../adapters/memory/memory-snapshot-files.ts";
import type { BlockStorage } from "../core/stores/block-storage.ts";
import { BlockStorageError } from "../core/stores/block-storage-error.ts";
import type { Server } from "../core/tasks/server.ts";
import { randomUuidOf } from "./determinism.ts";
import type { GuestWithVolumes, KnownServers } from "./known-servers.ts";
import { type FilledServers, type FillHabits, SimFills } from "./sim-fills.ts";
import { type MigrationHabits, SimMigrations } from "./sim-migrations.ts";
import type { SimProcess } from "./sim-process.ts";
import { SimShare } from "./sim-share.ts";
import type { World } from "./world.ts";

/** How Cinder behaves while there are faults. */
export interface CinderHabits {
  /** Share of the calls that never arrive. */
  readonly silentShare: number;
  /** Share of the calls that have their effect, and whose answers are lost: a connection breaks, or Cinder answers with 5xx. */
  readonly lostShare: number;
  /** Share of the connections for which Cinder does not wait for its driver. */
  readonly slowShare: number;
  /** Longest time in which a new volume is filled, in milliseconds. */
  readonly fillMsMax: number;
  /** Share of the new volumes that end in `error`. */
  readonly errorShare: number;
  /** With these, servers boot from volumes, and users rebuild them. */
  readonly fills?: FillHabits;
  /** With these, Cinder migrates volumes that servers use. Users make no snapshots of volumes then, since Cinder migrates none that has some. */
  readonly migrations?: MigrationHabits;
}

/** Cinder's name in the network. */
export const CINDER_PLACE = "cinder";
/** Volumes that several servers may have at a time, which users attach and detach. They end with no server. */
const SHARED_VOLUMES = 2;
/** Volumes that one server may have at a time, which users attach and detach, also while their server is on no host. They end with no server. */
const FREE_VOLUMES = 2;
/** How long Cinder waits for its driver. */
const RPC_TIMEOUT_MS = 60_000;

/** The Cinder of a simulated cloud: the in-process twin, its faults, and what must be true of its volumes and attachments. */
export class SimCinder {
  readonly #world: World;
  readonly #habits: CinderHabits;
  readonly #twin: MemoryBlockStorage;
  readonly #random: () => number;
  readonly #mutate: (storage: BlockStorage) => BlockStorage;
  /** Stores a volume that does not have to be filled. */
  readonly #put: MemoryBlockStorage["putVolume"];
  /** The ids of the volumes that several servers may have at a time. */
  readonly sharedVolumes: readonly string[];
  /** The ids of all volumes that users attach and detach. */
  readonly usersVolumes: readonly string[];
  /** Null in a world whose servers boot from no volumes. */
  readonly fills: SimFills | null;
  /** Null in a world in which Cinder migrates no volumes. */
  readonly migrations: SimMigrations | null;
  /** Share of the servers that boot from a volume. */
  readonly bootShare: number;
  /** Where the files of the volumes lie. */
  readonly share: SimShare;
  /** The volumes that Cinder did not delete with their server, since they had snapshots: they are kept, as by Nova. */
  readonly #kept = new Set<string>();
  #isCalm = false;
  /** The call that arrives now is one for whose driver Cinder does not wait. */
  #isSlow = false;

  /** `mutate` wraps the client of each process. */
  constructor(
    world: World,
    habits: CinderHabits,
    servers: FilledServers,
    mutate: (storage: BlockStorage) => BlockStorage = (storage) => storage,
  ) {
    this.#mutate = mutate;
    this.#world = world;
    this.#habits = habits;
    this.#random = world.random("cinder");
    const ids = world.random("cinder ids");
    this.#twin = new MemoryBlockStorage({ newId: () => randomUuidOf(ids) });
    this.sharedVolumes = Array.from(
      { length: SHARED_VOLUMES },
      (_, at) => this.#twin.putVolume({ projectId: "sim", name: `shared-${at}`, isMultiattach: true }).id,
    );
    const free = Array.from(
      { length: FREE_VOLUMES },
      (_, at) => this.#twin.putVolume({ projectId: "sim", name: `free-${at}` }).id,
    );
    this.usersVolumes = [...this.sharedVolumes, ...free];
    this.#twin.snapshotFiles.holds = true;
    this.share = new SimShare(world, this.#twin.snapshotFiles, servers);
    this.#twin.fate = (method) => this.#fateOf(method);
    this.#put = this.#twin.putVolume.bind(this.#twin);
    this.fills = habits.fills === undefined ? null : new SimFills(world, habits.fills, this.#twin, servers);
    const forMigrations = {
      ...{ servers, put: this.#put, newId: () => randomUuidOf(ids), shared: this.sharedVolumes },
    };
    const { migrations } = habits;
    this.bootShare = habits.fills === undefined ? (migrations?.bootShare ?? 0) : 1;
    this.migrations = migrations === undefined ? null : new SimMigrations(world, migrations, this.#twin, forMigrations);
    if (this.migrations !== null) {
      const { contents } = this.migrations;
      this.share.onCopied = (from, to) => contents.copied(from, to);
    }
    this.#fillNewVolumes();
    this.#watchEnds(servers);
    this.#watchDeletions();
  }

  /** Cinder as it is, without a network before it. */
  get storage(): BlockStorage {
    return this.#twin;
  }

  /** The snapshots, and the files that Cinder keeps for them. */
  get snapshotFiles(): MemorySnapshotFiles {
    return this.#twin.snapshotFiles;
  }

  /** A user has a snapshot made of a volume that a server uses. Returns the file that Cinder has made. */
  beginSnapshot(volumeId: string): { readonly id: string; readonly file: string } {
    const snapshot = this.#twin.putSnapshot(volumeId, { status: "creating" });
    return { id: snapshot.id, file: this.#twin.snapshotFiles.begin(snapshot) };
  }

  /** Users delete the snapshots of volumes that no server uses, since Cinder deletes no volume that has some. */
  forgetFree(): void {
    for (const { id, status } of this.#twin.all()) if (status === "available") this.#twin.snapshotFiles.forget(id);
  }

  /** A user extends a volume. Berth learns of it by an event, which may be lost. */
  extend(id: string): void {
    const volume = this.#twin.all().find((one) => one.id === id);
    if (volume !== undefined) this.#put({ ...volume, sizeGib: volume.sizeGib + 1 });
  }

  /** Cinder as a process reaches it. What the network loses is a call that Cinder has left without an answer. */
  reachedBy(process: SimProcess): BlockStorage {
    const twin = this.#twin;
    const ask = <Name extends keyof BlockStorage>(name: Name) =>
      ((...args: Parameters<BlockStorage[Name]>) =>
        process.call(
          CINDER_PLACE,
          () =>
            this.#inTime(
              (twin[name] as (...all: Parameters<BlockStorage[Name]>) => Promise<unknown>).apply(twin, args),
            ),
          () => new BlockStorageError("unreachable", "Cinder does not answer"),
        )) as BlockStorage[Name];
    return this.#mutate({
      volume: ask("volume"),
      volumesNamed: ask("volumesNamed"),
      volumesWithStatus: ask("volumesWithStatus"),
      snapshot: ask("snapshot"),
      volumes: ask("volumes"),
      snapshots: ask("snapshots"),
      snapshotsOf: ask("snapshotsOf"),
      createSnapshot: ask("createSnapshot"),
      removeSnapshot: ask("removeSnapshot"),
      reportSnapshot: ask("reportSnapshot"),
      removeVolume: ask("removeVolume"),
      createVolume: ask("createVolume"),
      deleteVolume: ask("deleteVolume"),
      reserve: ask("reserve"),
      attachments: ask("attachments"),
      attachment: ask("attachment"),
      connect: ask("connect"),
      complete: ask("complete"),
      endMigration: ask("endMigration"),
      reimage: ask("reimage"),
      deleteAttachment: ask("deleteAttachment"),
    });
  }

  /** Cinder says only after some time that it does not know what its driver has done. */
  #inTime<Value>(work: Promise<Value>): Promise<Value> {
    const wasSlow = this.#isSlow;
    this.#isSlow = false;
    return work
      .catch(async (error: unknown) => {
        if (wasSlow) await new Promise<void>((resolve) => this.#world.clock.setTimer(RPC_TIMEOUT_MS, resolve));
        throw error;
      })
      .finally(() => this.fills?.checkUndisturbed());
  }

  /** There are no more faults. */
  calm(): void {
    this.#isCalm = true;
    this.fills?.calm();
    this.migrations?.calm();
  }

  /**
   * What is wrong once nothing is under way: an attachment of a server that does not have the volume, and a guest at its server's home with a volume of which
   * its server has no attachment. A driver that is late may leave an attachment that shows the host where a build failed before, until the next order.
   */
  wrongAtRest(servers: KnownServers): readonly string[] {
    const volumes = new Map(this.#twin.all().map((volume) => [volume.id, volume]));
    const leaked = [...volumes.values()].flatMap(({ id, attachedTo }) =>
      attachedTo
        .filter(({ serverUuid }) => !this.#has(servers.look(serverUuid), id))
        .map(
          ({ serverUuid, host }) =>
            `volume ${id} is attached to server ${serverUuid} on ${host}, which does not have it`,
        ),
    );
    const lost = servers.guests().flatMap(({ host, serverUuid, volumes: own, running }) =>
      own
        .filter((id) => servers.look(serverUuid)?.host === host && this.#has(servers.look(serverUuid), id))
        .filter((id) => volumes.get(id)?.attachedTo.some((one) => one.serverUuid === serverUuid) !== true)
        // Its guest gets the volume again when it is started.
        .filter((id) => running || this.fills === null || volumes.get(id)?.status !== "reserved")
        .map((id) => `server ${serverUuid} has volume ${id} on ${host}, and Cinder has no attachment of it`),
    );
    const stray = servers.guests().flatMap((guest) => this.#strayVolumesOf(guest, servers.look(guest.serverUuid)));
    const share = this.migrations === null ? this.share.wrongAtRest() : this.migrations.wrongAtRest();
    return [...leaked, ...lost, ...stray, ...share, ...(this.fills?.wrongAtRest() ?? [])];
  }

  /** The volumes for one server that the running guests of two have, whatever the databases know. */
  usedTwice(servers: KnownServers): readonly string[] {
    const users = new Map<string, string>();
    const found: string[] = [];
    for (const { serverUuid, volumes, running } of servers.guests())
      for (const id of running ? volumes : []) {
        const other = users.get(id) ?? serverUuid;
        users.set(id, serverUuid);
        if (other !== serverUuid && !this.sharedVolumes.includes(id))
          found.push(`the guests of servers ${other} and ${serverUuid} run with volume ${id}`);
      }
    return found;
  }

  /** No guest has a volume that is not its server's, since that may be another server's by now. It may lack one that a host has disconnected without saying so. */
  #strayVolumesOf({ host, serverUuid, volumes }: GuestWithVolumes, server: Server | null): readonly string[] {
    if (server === null || server.status === "DELETED" || server.status === "ERROR") return [];
    return volumes
      .filter((id) => server.spec.volumes.every(({ volumeId }) => volumeId !== id))
      .map((id) => `the guest of server ${serverUuid} on ${host} has volume ${id}, which is not the server's`);
  }

  /** Whether the guest has the volume. One that Cinder is to give the id of another one, or that was to get that id, is known by its file. */
  #uses({ volumes, files }: GuestWithVolumes, volumeId: string): boolean {
    if (this.migrations === null) return volumes.includes(volumeId);
    return Object.values(files).some(([file]) => file === this.#twin.fileOf(volumeId));
  }

  #has(server: Server | null, volumeId: string): boolean {
    if (server === null || server.status === "DELETED") return false;
    return server.spec.volumes.some((volume) => [volume.volumeId, volume.replacedBy].includes(volumeId));
  }

  /** The volumes and attachments that are left when all servers are deleted and were to take their volumes with them. Asked when Cinder is calm. */
  async left(): Promise<readonly string[]> {
    const volumes = this.#twin
      .all()
      .filter(({ id, status }) => status !== "available" || !(this.usersVolumes.includes(id) || this.#kept.has(id)))
      .map(({ id, name, status }) => `volume ${id} (${name}, ${status}) is left`);
    const attachments = (await this.#twin.attachments({})).map(
      ({ volumeId, serverUuid }) => `an attachment of volume ${volumeId} to server ${serverUuid} is left`,
    );
    return [...volumes, ...attachments];
  }

  #fateOf(method: keyof BlockStorage) {
    if (this.#isCalm) return "answered";
    const draw = this.#random();
    const { silentShare, lostShare, slowShare } = this.#habits;
    if (draw < silentShare) return "silent";
    if (draw < silentShare + lostShare) return "lost";
    const connects = method === "connect" || method === "reserve";
    if (!connects || draw >= silentShare + lostShare + slowShare) return "answered";
    this.#isSlow = true;
    this.#world.clock.setTimer(this.#random() * 2 * RPC_TIMEOUT_MS, () => this.#twin.finishSlow());
    return "slow";
  }

  #fillNewVolumes(): void {
    this.#twin.putVolume = (wanted) => {
      const volume = this.#put(wanted);
      const fillMs = this.#random() * this.#habits.fillMsMax;
      const isBroken = !this.#isCalm && this.#random() < this.#habits.errorShare;
      this.#world.clock.setTimer(fillMs, () => this.#twin.finishCreating(volume.id, isBroken ? "error" : "available"));
      return volume;
    };
  }

  #watchDeletions(): void {
    const remove = this.#twin.deleteVolume.bind(this.#twin);
    this.#twin.deleteVolume = async (id) => {
      const outcome = await remove(id);
      const had = [...this.snapshotFiles.all.values()].some((snapshot) => snapshot.volumeId === id);
      if (outcome.kind === "refused" && (had || this.migrations?.isUnderWay(id))) this.#kept.add(id);
      return outcome;
    };
  }

  /** No attachment may end while a guest on its host has the volume, whatever is under way. */
  #watchEnds(servers: KnownServers): void {
    const end = this.#twin.deleteAttachment.bind(this.#twin);
    this.#twin.deleteAttachment = async (id) => {
      const found = this.#twin
        .all()
        .flatMap((volume) => volume.attachedTo.map((one) => ({ ...one, volumeId: volume.id })))
        .find(({ attachmentId }) => attachmentId === id);
      await end(id);
      this.forgetFree();
      if (found === undefined || this.#twin.all().some((one) => one.attachedTo.some((is) => is.attachmentId === id)))
        return;
      const { serverUuid, host, volumeId } = found;
      const user = servers
        .guests()
        .find((guest) => guest.serverUuid === serverUuid && guest.host === host && this.#uses(guest, volumeId));
      const server = servers.look(serverUuid);
      // Cinder fills only a volume that no host has, so a rebuild takes it from the server's guest, which stands still.
      if (this.fills !== null && user?.running === false && server?.taskState === "rebuilding") return;
      if (user === undefined) return;
      // A guest of a server that is gone may run where no order to destroy it has come: on a silent host, or after a restore which has forgotten it.
      if (server === null || server.status === "DELETED") {
        if (user.running)
          this.#world.find(
            6,
            `the guest of ${serverUuid}, which is gone, runs on ${host} with volume ${volumeId}, whose attachment has ended`,
          );
        return;
      }
      // The source of a move that waits for its confirmation may start its guest again. A third host may have one that it has prepared, and that no order starts any more.
      const isKept = server.status === "VERIFY_RESIZE" && servers.keeperOf(serverUuid) === host;
      if (server.host === host || (isKept && !this.#has(server, volumeId)))
        this.#world.find(6, `server ${serverUuid} runs on ${host} with volume ${volumeId}, whose attachment has ended`);
    };
  }
}
