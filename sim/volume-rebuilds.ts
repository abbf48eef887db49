import { OPERATIONS } from "../core/tasks/operation-kinds.ts";
import { freeServer } from "./free-server.ts";
import type { ChangingUser } from "./server-changes.ts";
import { SIM_GLANCE_IMAGES } from "./sim-glance.ts";
import type { World } from "./world.ts";

type RebuildingUser = Pick<ChangingUser, "call" | "look" | "servers" | "deletes" | "isOver">;

/** Rebuilds for each operation of users. */
const REBUILDS_SHARE = 2;
/** Share of the servers in ERROR that are rebooted hard, instead of being rebuilt once more. */
const REBOOT_SHARE = 0.5;
/** Share of the rebuilds during which a user loses patience: reboots the server hard, rebuilds it once more, or deletes it. */
const IMPATIENT_SHARE = 0.4;
const PATIENCE_MS_MAX = 8_000;
const HARD = { reboot: { type: "HARD" } };

/** Users who rebuild servers that boot from volumes of Cinder, which fills the volumes, and reboot those hard that end in ERROR. */
export class VolumeRebuilds {
  readonly #world: World;
  readonly #user: RebuildingUser;
  readonly #random: () => number;
  /** How many rebuilds were begun. */
  begun = 0;

  constructor(world: World, user: RebuildingUser) {
    this.#world = world;
    this.#user = user;
    this.#random = world.random("volume rebuilds");
  }

  /** Begins rebuilds at random moments until `untilMs`, as many as belong to this number of operations. */
  begin(operations: number, fromMs: number, untilMs: number): void {
    for (let index = 0; index < operations * REBUILDS_SHARE; index += 1) {
      const delayMs = fromMs + this.#random() * (untilMs - fromMs);
      this.#world.clock.setTimer(delayMs, () => void this.#rebuildOne());
    }
  }

  async #rebuildOne(): Promise<void> {
    const server = freeServer(this.#user, this.#random, OPERATIONS.reimage.allowedFrom);
    const [reboots, loses, patience, then] = [this.#random(), this.#random(), this.#random(), this.#random()];
    if (server === undefined || this.#user.isOver()) return;
    const isBroken = this.#user.look(server)?.status === "ERROR";
    if (isBroken && reboots < REBOOT_SHARE) return void (await this.#act(server, HARD));
    if (!(await this.#act(server, this.#rebuild())) || loses >= IMPATIENT_SHARE) return;
    await new Promise<void>((resolve) => this.#world.clock.setTimer(patience * PATIENCE_MS_MAX, resolve));
    if (this.#user.isOver()) return;
    if (then < 0.3) await this.#user.deletes(server);
    else await this.#act(server, then < 0.7 ? HARD : this.#rebuild());
  }

  #rebuild(): object {
    return { rebuild: { imageRef: SIM_GLANCE_IMAGES[Math.floor(this.#random() * SIM_GLANCE_IMAGES.length)] } };
  }

  /** Resolves with true when the action has begun. */
  async #act(server: string, payload: object): Promise<boolean> {
    const answer = await this.#user.call({ method: "POST", url: `/v2.1/servers/${server}/action`, payload });
    const [status, [action = ""]] = [answer?.status ?? 0, Object.keys(payload)];
    this.#world.history.record("user", action, { server, status });
    const isBegun = status === 202;
    if (isBegun && action === "rebuild") this.begun += 1;
    // The server may be busy or gone by now, with its volume, and the places that are asked may be silent. Anything else is a bug.
    const isGone = status === 404 || (status === 400 && /could not be found/.test(answer?.body ?? ""));
    if (!isBegun && !isGone && status !== 0 && status !== 409 && status < 503)
      this.#world.find(5, `${action} of ${server} was answered with ${status}: ${answer?.body}`);
    return isBegun;
  }
}
