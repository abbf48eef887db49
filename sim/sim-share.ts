import type { MemorySnapshotFiles } from "../adapters/memory/memory-snapshot-files.ts";
import type { FakeShare } from "../services/compute-agent/fake-volume-files.ts";
import type { GuestWithVolumes, KnownServers } from "./known-servers.ts";
import type { World } from "./world.ts";

/** The storage on which the files of Cinder's volumes lie, and what must be true of them: no file goes that a guest uses or whose content nothing else has, and no guest goes on without what was written before. */
export class SimShare implements FakeShare {
  readonly #world: World;
  readonly #snapshots: MemorySnapshotFiles;
  readonly #servers: Pick<KnownServers, "look" | "guests">;
  /** The files to which guests have written, and whose content is in no other file, each with the server of the latest one. */
  readonly #written = new Map<string, string>();
  readonly #deleted = new Set<string>();
  /** The files whose content another one has got. No other file refers to them from then on, also before Cinder deletes them. */
  readonly #emptied = new Set<string>();
  /** The servers that users have deleted. A restored database may show them again. */
  readonly #unwanted = new Set<string>();
  /** Called when one file has got what another one has. */
  onCopied: (from: string, to: string) => void = () => {};

  constructor(world: World, snapshots: MemorySnapshotFiles, servers: Pick<KnownServers, "look" | "guests">) {
    this.#world = world;
    this.#snapshots = snapshots;
    this.#servers = servers;
    snapshots.onDeleted = (volumeId, file) => this.#delete(volumeId, file);
  }

  chainOf(file: string): readonly string[] {
    return this.#snapshots.chainFrom(file).filter((one) => one === file || !this.#emptied.has(one));
  }

  opened(files: readonly string[], serverUuid: string): void {
    const [used = ""] = files;
    const gone = files.find((file) => this.#deleted.has(file));
    if (gone !== undefined) this.#world.find(6, `a guest uses the file ${gone}, which Cinder has deleted`);
    const newer = [...this.#written.keys()].find((file) => this.#snapshots.chainFrom(file).slice(1).includes(used));
    if (newer !== undefined && !this.#isBrokenOff(newer))
      this.#world.find(6, `a guest goes on with the file ${used}, without what was written to ${newer}`);
    this.#written.set(used, serverUuid);
  }

  merged(file: string, into: string): void {
    this.#emptied.add(file);
    const writer = this.#written.get(file);
    if (writer === undefined) return;
    this.#written.delete(file);
    this.#written.set(into, writer);
  }

  copied(from: string, to: string): void {
    this.onCopied(from, to);
  }

  /** Notes that a user has deleted the server. */
  unwanted(serverUuid: string): void {
    this.#unwanted.add(serverUuid);
  }

  /** Whether the server was deleted during the snapshot, so that Cinder has given it up, or a user has deleted the snapshot, too: what its guest has written meanwhile is lost (docs/cinder.md). */
  #isBrokenOff(file: string): boolean {
    const writer = this.#written.get(file) ?? "";
    const server = this.#servers.look(writer);
    const isGone = server === null || server.status === "DELETED" || this.#unwanted.has(writer);
    return isGone && this.#snapshots.isGivenUp(file);
  }

  #delete(volumeId: string, file: string): void {
    this.#deleted.add(file);
    this.#world.history.record("cinder", "deletes a file", { volumeId, file });
    if (this.#written.has(file))
      this.#world.find(6, `Cinder has deleted the file ${file}, whose content nothing else has`);
    for (const guest of this.#servers.guests()) {
      const open = guest.files[volumeId] ?? [];
      const isUsed = guest.running ? open.includes(file) : open[0] === file && this.#isAtHome(guest);
      if (isUsed)
        this.#world.find(
          6,
          `Cinder has deleted the file ${file}, which server ${guest.serverUuid} uses on ${guest.host}`,
        );
    }
  }

  #isAtHome({ serverUuid, host }: GuestWithVolumes): boolean {
    const server = this.#servers.look(serverUuid);
    return server !== null && server.host === host && server.status !== "DELETED";
  }

  /** What is wrong once nothing is under way: a guest writes to another file than Cinder names, and what it writes is not beneath that one. */
  wrongAtRest(): readonly string[] {
    return this.#servers.guests().flatMap((guest) => {
      if (!guest.running || !this.#isAtHome(guest)) return [];
      return Object.entries(guest.files).flatMap(([volumeId, [used = ""]]) => {
        const chain = this.#snapshots.chainOf(volumeId);
        const at = chain.indexOf(used);
        const isBeneath = at >= 0 && !chain.slice(0, at).some((file) => this.#written.has(file));
        return isBeneath || guest.volumes.every((id) => id !== volumeId)
          ? []
          : [`server ${guest.serverUuid} writes to ${used} on ${guest.host}, and Cinder names ${chain[0]}`];
      });
    });
  }
}
