import type { MemoryBlockStorage } from "../adapters/memory/memory-block-storage.ts";
import type { Reimage, ReimageOutcome } from "../core/stores/block-storage.ts";
import type { KnownServers } from "./known-servers.ts";
import type { RebuiltServer } from "./task-outcomes.ts";
import type { World } from "./world.ts";

/** How Cinder fills volumes with images while there are faults. */
export interface FillHabits {
  /** Longest time of a fill, in milliseconds. */
  readonly fillMsMax: number;
  /** Share of the fills that Cinder refuses without having done anything. */
  readonly refusedShare: number;
  /** Share of the fills that end in `error`. */
  readonly failedShare: number;
  /** Share of the fills that never end because Cinder's process has ended, and of those that Cinder refuses only when the volume shows `downloading` already, which then stays so. */
  readonly stuckShare: number;
  readonly refusedLateShare: number;
  /** Share of the events about fills that never reach an api, and of those that do so twice. */
  readonly eventLostShare: number;
  readonly eventTwiceShare: number;
}

/** What is true about servers whose volumes are filled, whatever any process believes. */
export interface FilledServers extends KnownServers {
  rebuilt(): readonly RebuiltServer[];
}

/** An event that Cinder reports to Berth. */
export interface CinderEvent {
  readonly name: "volume-reimaged";
  readonly server_uuid: string;
  readonly tag: string;
}

/** What becomes of one fill. */
type Course = "filled" | "refused" | "failed" | "stuck" | "refused-late";

/** How long Cinder's operator takes to notice a volume that is broken, and to mend it, at least and at most. */
const MEND_MS_MIN = 5_000;
const MEND_MS_MAX = 25_000;
/** The longest time after which an event arrives. */
const EVENT_MS_MAX = 3_000;
/** Statuses of a boot volume with which no guest may run. */
const UNUSABLE: readonly string[] = ["downloading", "error"];

/**
 * The fills of a simulated Cinder, for which users rebuild servers that boot from volumes. It is slow, refuses some, breaks some volumes, and its process ends in the middle of others. An operator
 * mends what is broken. No guest that has a volume may run while Cinder writes an image to it, and no process may touch the volume's attachments meanwhile.
 */
export class SimFills {
  /** Called when an event arrives. */
  onEvent: (event: CinderEvent) => void = () => {};
  readonly #world: World;
  readonly #habits: FillHabits;
  readonly #twin: MemoryBlockStorage;
  readonly #servers: FilledServers;
  /** Stores a volume that exists. */
  readonly #put: MemoryBlockStorage["putVolume"];
  readonly #random: () => number;
  /** The volumes that only an operator can mend. */
  readonly #broken = new Set<string>();
  #disturbances = 0;
  #isCalm = false;

  constructor(world: World, habits: FillHabits, twin: MemoryBlockStorage, servers: FilledServers) {
    this.#world = world;
    this.#habits = habits;
    this.#twin = twin;
    this.#servers = servers;
    this.#put = twin.putVolume.bind(twin);
    this.#random = world.random("fills");
    twin.holdsReimages = true;
    const begin = twin.reimage.bind(twin);
    twin.reimage = (asked) => this.#reimage(asked, begin);
  }

  /** There are no more faults, and operators mend what is broken. */
  calm(): void {
    this.#isCalm = true;
    for (const id of this.#broken) this.#mend(id);
  }

  /** Called when a guest of the server has begun to run. */
  started(serverUuid: string): void {
    for (const { volumes, running, ...guest } of this.#servers.guests())
      for (const id of running && guest.serverUuid === serverUuid ? volumes : [])
        if (this.#twin.fills.isUnderWay(id))
          this.#world.find(6, `server ${serverUuid} runs on ${guest.host} while Cinder fills its volume ${id}`);
  }

  /** Called after each call of a process. */
  checkUndisturbed(): void {
    const { disturbances } = this.#twin.fills;
    for (const what of disturbances.slice(this.#disturbances)) this.#world.find(6, `a process has asked for ${what}`);
    this.#disturbances = disturbances.length;
  }

  /** What is wrong once nothing is under way: a server that is usable, and whose boot volume is not, or has another content than its last rebuild has given it. */
  wrongAtRest(): readonly string[] {
    const volumes = new Map(this.#twin.all().map((volume) => [volume.id, volume]));
    return this.#servers.rebuilt().flatMap(({ serverUuid, imageRef, hasSucceeded }) => {
      const server = this.#servers.look(serverUuid);
      const root = server?.spec.volumes.find(({ isRoot }) => isRoot);
      const volume = volumes.get(root?.volumeId ?? "");
      if (server === null || server.taskState !== null || volume === undefined) return [];
      const { id, status, imageProperties } = volume;
      if (server.status === "ACTIVE" && UNUSABLE.includes(status))
        return [`server ${serverUuid} is ACTIVE, and its boot volume ${id} is ${status}`];
      if (!hasSucceeded || imageProperties.image_id === imageRef) return [];
      return [`server ${serverUuid} was rebuilt with ${imageRef}, and its volume has ${imageProperties.image_id}`];
    });
  }

  async #reimage(asked: Reimage, begin: MemoryBlockStorage["reimage"]): Promise<ReimageOutcome> {
    const { volumeId } = asked;
    const course = this.#draw();
    if (course === "refused") return { kind: "refused", why: "the image is not there" };
    const wasUnderWay = this.#twin.fills.isUnderWay(volumeId);
    try {
      const outcome = await begin(asked);
      if (course !== "refused-late" || outcome.kind !== "begun") return outcome;
      return { kind: "refused", why: "the image cannot be read" };
    } finally {
      if (!wasUnderWay && this.#twin.fills.isUnderWay(volumeId)) this.#begun(volumeId, course);
    }
  }

  #draw(): Course {
    const draw = this.#random();
    if (this.#isCalm) return "filled";
    const { refusedShare, failedShare, stuckShare, refusedLateShare } = this.#habits;
    const shares = [
      ["refused", refusedShare],
      ["failed", failedShare],
      ["stuck", stuckShare],
      ["refused-late", refusedLateShare],
    ] as const;
    let sum = 0;
    for (const [course, share] of shares) {
      sum += share;
      if (draw < sum) return course;
    }
    return "filled";
  }

  #begun(volumeId: string, course: Course): void {
    for (const guest of this.#servers.guests())
      if (guest.running && guest.volumes.includes(volumeId))
        this.#world.find(6, `Cinder fills volume ${volumeId}, and ${guest.serverUuid} runs with it on ${guest.host}`);
    this.#world.history.record("cinder", "fills", { volumeId, course });
    const fillMs = this.#random() * this.#habits.fillMsMax;
    // Nothing is written to a volume whose image Cinder cannot read, and nothing any longer by a process that has ended. The operator ends such a fill.
    if (course === "stuck" || course === "refused-late") this.#break(volumeId);
    else this.#world.clock.setTimer(fillMs, () => this.#end(volumeId, course === "filled"));
  }

  #end(volumeId: string, isFilled: boolean): void {
    this.#twin.fills.finish(isFilled, volumeId);
    if (isFilled) this.#report(volumeId);
    else this.#break(volumeId);
  }

  #break(volumeId: string): void {
    this.#broken.add(volumeId);
    const mendMs = MEND_MS_MIN + this.#random() * (MEND_MS_MAX - MEND_MS_MIN);
    this.#world.clock.setTimer(this.#isCalm ? 0 : mendMs, () => this.#mend(volumeId));
  }

  /** The operator has seen in the logs that Cinder no longer writes to the volume. */
  #mend(volumeId: string): void {
    if (!this.#broken.delete(volumeId)) return;
    this.#twin.fills.finish(false, volumeId);
    const volume = this.#twin.all().find(({ id }) => id === volumeId);
    if (volume === undefined) return;
    const isKept = this.#keepersOf(volumeId).length > 0;
    this.#put({ ...volume, status: isKept ? "reserved" : "available" });
    this.#world.history.record("operator", "mends", { volumeId, isKept });
  }

  #report(volumeId: string): void {
    const { eventLostShare, eventTwiceShare } = this.#habits;
    const [draw, firstMs, secondMs] = [this.#random(), this.#random(), this.#random()];
    if (!this.#isCalm && draw < eventLostShare) return;
    const isTwice = !this.#isCalm && draw < eventLostShare + eventTwiceShare;
    for (const server_uuid of this.#keepersOf(volumeId))
      for (const part of isTwice ? [firstMs, secondMs] : [firstMs])
        this.#world.clock.setTimer(part * EVENT_MS_MAX, () =>
          this.onEvent({ name: "volume-reimaged", server_uuid, tag: volumeId }),
        );
  }

  /** The servers that are not deleted, and of which a guest has the volume. */
  #keepersOf(volumeId: string): readonly string[] {
    const guests = this.#servers.guests().filter(({ volumes }) => volumes.includes(volumeId));
    const servers = [...new Set(guests.map(({ serverUuid }) => serverUuid))];
    return servers.filter((uuid) => (this.#servers.look(uuid)?.status ?? "DELETED") !== "DELETED");
  }
}
