import type { KnownServers } from "./known-servers.ts";
import type { World } from "./world.ts";

/** How often guests that run write to their volumes. */
const WRITE_MS = 200;

/** What a guest has written to a volume last. */
interface Written {
  readonly version: number;
  readonly serverUuid: string;
}

/**
 * What the files of Cinder's volumes contain: a number that grows with each write of a guest, and that a copy takes along. So a guest that goes on with another file than the latest one, and a volume
 * whose latest content is gone, are seen. Volumes that several servers may have are left out, since Cinder does not migrate them.
 */
export class SimContents {
  readonly #world: World;
  readonly #servers: Pick<KnownServers, "look" | "guests">;
  readonly #shared: readonly string[];
  readonly #versions = new Map<string, number>();
  readonly #latest = new Map<string, Written>();
  readonly #deleted = new Set<string>();
  /** The volumes that nobody has whose latest content may be in the one or the other of two volumes: a user has given them away while they were in doubt. */
  readonly #forsaken = new Set<string>();
  #last = 0;

  constructor(world: World, servers: Pick<KnownServers, "look" | "guests">, shared: readonly string[]) {
    this.#world = world;
    this.#servers = servers;
    this.#shared = shared;
    const writeAgain = () => {
      this.write();
      world.clock.setTimer(WRITE_MS, writeAgain);
    };
    world.clock.setTimer(WRITE_MS, writeAgain);
  }

  /** The number of the content of a file. */
  versionOf(file: string): number {
    return this.#versions.get(file) ?? 0;
  }

  /** The server whose guest has written to the volume last. */
  writerOf(volumeId: string): string | null {
    return this.#latest.get(volumeId)?.serverUuid ?? null;
  }

  /** Every guest that runs writes to its volumes, and to those to which these are copied. */
  write(): void {
    for (const { host, serverUuid, running, files, replacements = {} } of this.#servers.guests()) {
      if (!running) continue;
      for (const [volumeId, [file]] of Object.entries(files)) {
        if (file === undefined || this.#shared.includes(volumeId)) continue;
        this.#check(volumeId, file, serverUuid, host);
        this.#last += 1;
        this.#latest.set(volumeId, { version: this.#last, serverUuid });
        this.#versions.set(file, this.#last);
        const copy = replacements[volumeId];
        if (copy !== undefined && !copy.isUsed && copy.file !== undefined) this.#versions.set(copy.file, this.#last);
      }
    }
  }

  #check(volumeId: string, file: string, serverUuid: string, host: string): void {
    const who = `server ${serverUuid} writes to ${file} of volume ${volumeId} on ${host}`;
    if (this.#deleted.has(file)) this.#world.find(6, `${who}, which Cinder has deleted`);
    const { version = 0 } = this.#latest.get(volumeId) ?? {};
    if (this.versionOf(file) < version && !this.#forsaken.has(volumeId))
      this.#world.find(6, `${who}, without what was written before (${this.versionOf(file)} of ${version})`);
  }

  /** A host has copied a volume. */
  copied(from: string, to: string): void {
    this.write();
    this.#versions.set(to, this.versionOf(from));
  }

  /** Nobody has the volume, and nobody but an operator can find out in which of two files its latest content is. */
  forsake(volumeId: string): void {
    this.#forsaken.add(volumeId);
  }

  /** An operator has decided for this file of a volume that was forsaken. */
  decided(volumeId: string, file: string): void {
    const written = this.#latest.get(volumeId);
    if (this.#forsaken.delete(volumeId) && written !== undefined)
      this.#latest.set(volumeId, { ...written, version: this.versionOf(file) });
  }

  isForsaken(volumeId: string): boolean {
    return this.#forsaken.has(volumeId);
  }

  /** Cinder has decided for one of two files of a volume, and has deleted the other one. */
  dropped(volumeId: string, file: string, kept: string): void {
    this.write();
    this.#deleted.add(file);
    this.#world.history.record("cinder", "drops a file", { volumeId, file });
    for (const { host, serverUuid, files, running } of this.#servers.guests()) {
      const server = this.#servers.look(serverUuid);
      if (files[volumeId]?.[0] !== file || server === null || server.status === "DELETED") continue;
      // One that a move has left on another host is removed, or is started again, which `write` sees.
      if (running || server.host === host)
        this.#world.find(6, `Cinder has deleted ${file} of volume ${volumeId}, which ${serverUuid} has on ${host}`);
    }
    const { version = 0 } = this.#latest.get(volumeId) ?? {};
    if (this.versionOf(kept) < version && !this.#forsaken.has(volumeId))
      this.#world.find(6, `Cinder has deleted ${file} with the latest content of volume ${volumeId}`);
  }

  /** What is wrong once nothing is under way: the volume, whose file is this, lacks what was written to it last. */
  wrongAtRest(volumeId: string, file: string): readonly string[] {
    const { version = 0 } = this.#latest.get(volumeId) ?? {};
    if (this.versionOf(file) >= version || this.#forsaken.has(volumeId)) return [];
    return [`volume ${volumeId} is ${file}, which lacks what was written to it last`];
  }
}
