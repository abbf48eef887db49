import { freeServer } from "./free-server.ts";
import type { ChangingUser } from "./server-changes.ts";
import type { SimCinder } from "./sim-cinder.ts";
import type { World } from "./world.ts";

/** Snapshots that are made or deleted, for each operation of users. */
const SNAPSHOTS_SHARE = 2;
/** Share of those that are deletions, where the volume has a snapshot. */
const DELETE_SHARE = 0.45;
/** How often Cinder looks whether the host has done its part, and for how long. */
const LOOK_MS = 2_000;
const PATIENCE_MS_MAX = 60_000;
/** Share of the calls that Cinder makes twice. */
const TWICE_SHARE = 0.1;
const URL = "/v2.1/os-assisted-volume-snapshots";

/** Users who make and delete snapshots of volumes that servers use, with which Cinder asks an api for the part of the host. */
export class SnapshotChanges {
  readonly #world: World;
  readonly #user: Pick<ChangingUser, "call" | "look" | "servers" | "isOver">;
  readonly #cinder: SimCinder;
  readonly #random: () => number;
  /** The volumes of which Cinder makes or deletes a snapshot now. It does one thing at a time. */
  readonly #busy = new Set<string>();

  constructor(world: World, user: Pick<ChangingUser, "call" | "look" | "servers" | "isOver">, cinder: SimCinder) {
    this.#world = world;
    this.#user = user;
    this.#cinder = cinder;
    this.#random = world.random("volume snapshots");
  }

  /** Begins at random moments until `untilMs`, as many as belong to this number of operations. */
  begin(operations: number, fromMs: number, untilMs: number): void {
    for (let index = 0; index < operations * SNAPSHOTS_SHARE; index += 1) {
      const delayMs = fromMs + this.#random() * (untilMs - fromMs);
      this.#world.clock.setTimer(delayMs, () => void this.#change());
    }
  }

  async #change(): Promise<void> {
    const server = freeServer(this.#user, this.#random);
    const [which, what, patience, twice] = [this.#random(), this.#random(), this.#random(), this.#random()];
    const volumes = (server === undefined ? null : this.#user.look(server))?.spec.volumes ?? [];
    const own = volumes.filter(({ volumeId }) => !this.#cinder.sharedVolumes.includes(volumeId));
    const volumeId = own[Math.floor(which * own.length)]?.volumeId;
    if (volumeId === undefined || this.#busy.has(volumeId) || this.#user.isOver()) return;
    const files = this.#cinder.snapshotFiles;
    const present = files.madeOf(volumeId);
    const old = present[Math.floor((what / DELETE_SHARE) * present.length)];
    this.#busy.add(volumeId);
    const patienceMs = patience * PATIENCE_MS_MAX;
    const times = twice < TWICE_SHARE ? 2 : 1;
    if (old !== undefined && what < DELETE_SHARE) await this.#remove(volumeId, old.id, times, patienceMs);
    else await this.#make(volumeId, times, patienceMs);
    this.#busy.delete(volumeId);
    this.#cinder.forgetFree();
  }

  async #make(volumeId: string, times: number, patienceMs: number): Promise<void> {
    const { id, file } = this.#cinder.beginSnapshot(volumeId);
    const payload = {
      snapshot: { volume_id: volumeId, create_info: { snapshot_id: id, type: "qcow2", new_file: file } },
    };
    for (let time = 0; time < times; time += 1)
      if (!(await this.#asked(id, { method: "POST", url: URL, payload }, time))) return;
    await this.#follow(id, "creating", patienceMs);
  }

  async #remove(volumeId: string, id: string, times: number, patienceMs: number): Promise<void> {
    const wish = this.#cinder.snapshotFiles.beginDeletion(id);
    if (wish === null) return;
    const { fileToMerge, mergeTarget } = wish;
    const info = { type: "qcow2", volume_id: volumeId, file_to_merge: fileToMerge, merge_target_file: mergeTarget };
    const url = `${URL}/${id}?delete_info=${encodeURIComponent(JSON.stringify(info))}`;
    for (let time = 0; time < times; time += 1) if (!(await this.#asked(id, { method: "DELETE", url }, time))) return;
    await this.#follow(id, "deleting", patienceMs);
  }

  /** Cinder gives a snapshot up whose call is refused or not answered. The second call is that of a client that has not heard the first answer. */
  async #asked(id: string, call: Parameters<ChangingUser["call"]>[0], time: number): Promise<boolean> {
    const answer = await this.#user.call(call);
    const status = answer?.status ?? 0;
    this.#world.history.record("cinder", call.method, { snapshot: id, status });
    if (status >= 200 && status < 300) return true;
    if (status !== 0 && status !== 400 && status < 503)
      this.#world.find(5, `a snapshot of a volume was answered with ${status}: ${answer?.body}`);
    if (time > 0) return true;
    this.#cinder.snapshotFiles.giveUp(id);
    return false;
  }

  async #follow(id: string, status: string, patienceMs: number): Promise<void> {
    const { snapshotFiles } = this.#cinder;
    for (let waitedMs = 0; snapshotFiles.all.get(id)?.status === status; waitedMs += LOOK_MS) {
      if (waitedMs > patienceMs) snapshotFiles.giveUp(id);
      else await new Promise<void>((resolve) => this.#world.clock.setTimer(LOOK_MS, resolve));
      snapshotFiles.goOn(id);
    }
    this.#world.history.record("cinder", "snapshot", { snapshot: id, status: snapshotFiles.all.get(id)?.status });
  }
}
