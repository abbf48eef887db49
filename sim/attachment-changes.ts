import { OPERATIONS } from "../core/tasks/operation-kinds.ts";
import { freeServer } from "./free-server.ts";
import type { ChangingUser } from "./server-changes.ts";
import type { World } from "./world.ts";

/** Volume changes for each operation of users. */
const CHANGES_SHARE = 1;
/** Share of the changes that are requested although the server has the volume already, or does not have it. */
const BLIND_SHARE = 0.1;
/** The statuses in which a server gets and loses volumes, also on no host. `UnconfirmedMoves` changes those of servers whose move waits for its confirmation. */
const CHANGEABLE = [...OPERATIONS["attach-volume"].allowedFrom, ...OPERATIONS["attach-volume-offloaded"].allowedFrom];
/** Answers to what may not be done now: the volume or the server is busy, has it already, or is gone. */
const REFUSALS = [400, 404, 409];

/** Users who attach volumes to servers, and detach them again. */
export class AttachmentChanges {
  readonly #world: World;
  readonly #user: Pick<ChangingUser, "call" | "look" | "servers" | "isOver">;
  readonly #volumes: readonly string[];
  readonly #random: () => number;

  constructor(
    world: World,
    user: Pick<ChangingUser, "call" | "look" | "servers" | "isOver">,
    volumes: readonly string[],
  ) {
    this.#world = world;
    this.#user = user;
    this.#volumes = volumes;
    this.#random = world.random("volume changes");
  }

  /** Begins changes at random moments until `untilMs`, as many as belong to this number of operations. */
  begin(operations: number, fromMs: number, untilMs: number): void {
    for (let index = 0; index < operations * CHANGES_SHARE; index += 1) {
      const delayMs = fromMs + this.#random() * (untilMs - fromMs);
      this.#world.clock.setTimer(delayMs, () => void this.#change());
    }
  }

  async #change(): Promise<void> {
    const server = freeServer(this.#user, this.#random, CHANGEABLE);
    await this.change(this.#user.isOver() ? undefined : server);
  }

  /** Attaches a volume to the server, if there is one, or detaches one from it. Resolves with whether that has begun. Draws two random numbers. */
  async change(server: string | undefined): Promise<boolean> {
    const volumeId = this.#volumes[Math.floor(this.#random() * this.#volumes.length)];
    const isBlind = this.#random() < BLIND_SHARE;
    if (server === undefined || volumeId === undefined) return false;
    const has = this.#user.look(server)?.spec.volumes.some((volume) => volume.volumeId === volumeId) ?? false;
    const attaches = isBlind ? has : !has;
    const url = `/v2.1/servers/${server}/os-volume_attachments`;
    const answer = await this.#user.call(
      attaches
        ? { method: "POST", url, payload: { volumeAttachment: { volumeId } } }
        : { method: "DELETE", url: `${url}/${volumeId}` },
    );
    if (answer === null) return false;
    const { status, body } = answer;
    this.#world.history.record("user", attaches ? "attach" : "detach", { server, volumeId, status });
    // Overload, lost databases and a silent Cinder are 503 and 504; anything else is a bug.
    if (status >= 300 && status < 503 && !REFUSALS.includes(status))
      this.#world.find(5, `a change of volumes was answered with ${status}: ${body}`);
    return status < 300;
  }
}
