import { ATTACH_VERB, DETACH_VERB, RESCUE_VERB, VOLUME_STEP_VERBS } from "../../core/agent/power-verbs.ts";
import type { MigrationStore } from "../../core/stores/cell/operation-store.ts";
import type { ConductorMessage } from "../../proto/gen/berth/agent.ts";

type ModelState = "prepared" | "running" | "stopped" | "paused" | "suspended" | "rescued";
interface ModelGuest {
  readonly serverUuid: string;
  readonly attemptId: string;
  readonly state: ModelState;
  readonly revision: number;
  /** Only a guest that has run contains a server's data. */
  readonly hasRun: boolean;
}

const AFTER: Readonly<Record<string, ModelState>> = {
  start: "running",
  stop: "stopped",
  reboot: "running",
  "hard-reboot": "running",
  pause: "paused",
  unpause: "running",
  suspend: "suspended",
  resume: "running",
  [RESCUE_VERB]: "rescued",
  unrescue: "running",
};

/** A guest that is paused without having run has received the memory of a paused one. */
const HAS_MEMORY: readonly ModelState[] = ["running", "paused"];

/** `same`: both volumes, for as long as the host is there to write to both. */
export type VolumeInUse = "own" | "same" | "other";
const REPLACING: Readonly<Record<string, VolumeInUse>> = {
  [VOLUME_STEP_VERBS.mirror]: "same",
  [VOLUME_STEP_VERBS.pivot]: "other",
  [VOLUME_STEP_VERBS.keep]: "own",
};

/** A model of a host and its agent, with the rules of services/compute-agent: tombstones, attempts, revisions. */
export class ModelHost {
  readonly name: string;
  isUp = true;
  /** An operator has declared that nothing runs there. */
  isFenced = false;
  /** Whether an operator has ever forced the host down. */
  wasFenced = false;
  /** How often the host died. Messages that were sent before a death are lost with the connection. */
  deaths = 0;
  readonly #guests = new Map<string, ModelGuest>();
  readonly #replaced = new Map<string, VolumeInUse>();
  /** The volumes of each guest, as the host has recorded them on its disk. */
  readonly #volumes = new Map<string, ReadonlySet<string>>();
  /** The ways in which a guest reaches its volumes, by the ids of both, as the host was told last. */
  readonly #ways = new Map<string, string>();
  readonly #buried = new Set<string>();
  readonly #done = new Set<string>();
  #destroyed: ModelGuest[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /** Names the present connection to the conductors: another one after each death, and null while there is none. */
  get connection(): number | null {
    return this.isUp ? this.deaths : null;
  }

  guests(): ModelGuest[] {
    return [...this.#guests.values()];
  }

  guest(attemptId: string): ModelGuest | undefined {
    return this.#guests.get(attemptId);
  }

  /** Guests that had run and were destroyed since the last call, except by a delete of their server. */
  takeDestroyed(): readonly ModelGuest[] {
    const destroyed = this.#destroyed;
    this.#destroyed = [];
    return destroyed;
  }

  /** Marks the data of the server's guests here as no longer needed. */
  forget(serverUuid: string): void {
    for (const guest of this.#guests.values())
      if (guest.serverUuid === serverUuid) this.#guests.set(guest.attemptId, { ...guest, hasRun: false });
  }

  put(serverUuid: string, attemptId: string, state: ModelState): void {
    this.#guests.set(attemptId, { serverUuid, attemptId, state, revision: 0, hasRun: state === "running" });
  }

  /** Without power no guest runs, and none starts by itself when power is back. */
  die(): void {
    this.isUp = false;
    this.deaths += 1;
    this.#done.clear();
    // The copying may have ended with an error before, after which the guest has written to its own volume alone.
    for (const [attemptId, uses] of this.#replaced) if (uses === "same") this.#replaced.delete(attemptId);
    for (const guest of this.#guests.values())
      if (guest.state !== "prepared" && guest.state !== "suspended")
        this.#guests.set(guest.attemptId, { ...guest, state: "stopped" });
  }

  /** Returns null when the order was carried out. `failure` is the driver's error instead. */
  obey(message: ConductorMessage, failure: string | null): string | null {
    const { body } = message;
    if (body?.$case !== "power" && body?.$case !== "handOff") return this.#carryOut(message, failure);
    // While the agent lives, it does not carry out the same order twice.
    if (this.#guests.has(body.value.attemptId) && this.#done.has(body.value.orderId)) return null;
    const failed = this.#carryOut(message, failure);
    if (failed === null) this.#done.add(body.value.orderId);
    return failed;
  }

  #carryOut({ body }: ConductorMessage, failure: string | null): string | null {
    switch (body?.$case) {
      case "build": {
        const { attemptId, server } = body.value;
        if (this.#isBuried(server?.uuid ?? "", attemptId)) return "it was destroyed here before";
        if (this.#guests.has(attemptId)) return null;
        if (failure !== null) return failure;
        this.put(server?.uuid ?? "", attemptId, "prepared");
        this.#volumes.set(attemptId, new Set(server?.volumes.map(({ volumeId }) => volumeId)));
        return null;
      }
      case "power": {
        const { attemptId, verb, revision, volume } = body.value;
        if (verb === DETACH_VERB && this.isUp && !this.#guests.has(attemptId)) return null;
        const guest = this.#guests.get(attemptId);
        // An agent refuses an order that is older than an earlier one before it calls its driver.
        const isRefused = guest !== undefined && revision < guest.revision;
        const before = guest?.state ?? "stopped";
        const failed = failure ?? (verb in REPLACING ? this.#refusedReplacement(attemptId, verb) : null);
        // Verbs without a state of their own leave the guest as it is.
        const outcome = this.#turn(attemptId, AFTER[verb] ?? before, revision, failed);
        if (!isRefused) this.#change(attemptId, { verb, volumeId: volume?.volumeId ?? "", isDone: outcome === null });
        if (verb === ATTACH_VERB && this.isUp && !isRefused)
          this.#ways.set(`${attemptId} ${volume?.volumeId}`, volume?.connection ?? "");
        // A volume that was replaced is not copied again.
        if (outcome === null && verb in REPLACING && this.uses(attemptId) !== "other")
          this.#replaced.set(attemptId, REPLACING[verb] ?? "own");
        return outcome;
      }
      case "handOff":
        return this.#turn(body.value.attemptId, "stopped", body.value.revision, failure);
      case "destroy":
        return this.destroy(body.value.attemptId, failure);
      default:
        throw new Error(`no order: ${body?.$case}`);
    }
  }

  #refusedReplacement(attemptId: string, verb: string): string | null {
    const uses = this.#replaced.get(attemptId) ?? "own";
    if (verb === VOLUME_STEP_VERBS.pivot) return uses === "same" || uses === "other" ? null : "there is no copy";
    if (verb === VOLUME_STEP_VERBS.keep) return uses === "other" ? "the guest uses the other volume" : null;
    return null;
  }

  /** A volume that the host could not connect or disconnect may be connected all the same. */
  #change(
    attemptId: string,
    { verb, volumeId, isDone }: { readonly verb: string; readonly volumeId: string; readonly isDone: boolean },
  ): void {
    const volumes = new Set(this.volumesOf(attemptId));
    if (verb === ATTACH_VERB && this.isUp && this.#guests.has(attemptId)) volumes.add(volumeId);
    else if (verb === DETACH_VERB && isDone) volumes.delete(volumeId);
    this.#volumes.set(attemptId, volumes);
  }

  /** The ids of the guest's volumes. */
  volumesOf(attemptId: string): ReadonlySet<string> {
    return this.#volumes.get(attemptId) ?? new Set();
  }

  /** The way in which the guest would reach the volume. */
  wayTo(attemptId: string, volumeId: string): string {
    return this.#ways.get(`${attemptId} ${volumeId}`) ?? "";
  }

  /** Which volume holds all that the guest has written, if one of its volumes is being replaced. */
  uses(attemptId: string): VolumeInUse {
    return this.#replaced.get(attemptId) ?? "own";
  }

  /** The other volume has taken the place of the guest's own one. */
  replaced(attemptId: string): void {
    this.#replaced.delete(attemptId);
  }

  /** Carries out the order that follows from a comparison with the database. */
  settle(
    attemptId: string,
    verb: "start" | "stop" | "pause" | "suspend" | "unrescue",
    revision: number,
  ): string | null {
    return this.#turn(attemptId, AFTER[verb] as ModelState, revision, null);
  }

  destroy(attemptId: string, failure: string | null): string | null {
    if (!this.isUp) return "it is down";
    this.#buried.add(attemptId);
    if (failure !== null) return failure;
    const guest = this.#guests.get(attemptId);
    if (guest?.hasRun) this.#destroyed.push(guest);
    this.#guests.delete(attemptId);
    return null;
  }

  /** Destroys every attempt of the server, and refuses future ones. A host that is down ignores this. */
  bury(serverUuid: string): void {
    if (!this.isUp) return;
    this.#buried.add(serverUuid);
    for (const guest of this.#guests.values())
      if (guest.serverUuid === serverUuid) this.#guests.delete(guest.attemptId);
  }

  #isBuried(serverUuid: string, attemptId: string): boolean {
    return this.#buried.has(serverUuid) || this.#buried.has(attemptId);
  }

  #turn(attemptId: string, state: ModelState, revision: number, failure: string | null): string | null {
    const guest = this.#guests.get(attemptId);
    if (!this.isUp) return "it is down";
    if (guest === undefined || this.#isBuried(guest.serverUuid, attemptId)) return "there is no such guest";
    if (revision < guest.revision) return "a later order was given";
    if (failure !== null) return failure;
    const kept = state === "stopped" && guest.state === "prepared" ? "prepared" : state;
    this.#guests.set(attemptId, { ...guest, state: kept, revision, hasRun: guest.hasRun || HAS_MEMORY.includes(kept) });
    return null;
  }
}

/** Acts as the conductors do when the host reports its guests. */
export async function releaseGone(store: Pick<MigrationStore, "releaseEvacuated">, host: ModelHost): Promise<void> {
  await store.releaseEvacuated([{ host: host.name, remaining: host.guests() }]);
}
