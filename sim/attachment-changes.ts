import type { ChangingUser } from "./server-changes.ts";
import type { World } from "./world.ts";

/** Volume changes for each operation of users. */
const CHANGES_SHARE = 1;
/** Share of the changes that are requested although the server has the volume already, or does not have it. */
const BLIND_SHARE = 0.1;
/** Answers to what may not be done now: the volume or the server is busy, has it already, or is gone. */
const REFUSALS = [400, 404, 409];

/** Users who attach volumes that several servers may have to servers, and detach them again. */
export class AttachmentChanges {
  readonly #world: World;
  readonly #user: Pick<ChangingUser, "call" | "look" | "servers" | "isOver">;
  readonly #volumes: readonly string[];
  readonly #random: () => number;
  /** Number of attachments and detachments that an api has taken. */
  begun = 0;

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
    const servers = this.#user.servers().filter((uuid) => this.#isFree(uuid));
    const server = servers[Math.floor(this.#random() * servers.length)];
    const volumeId = this.#volumes[Math.floor(this.#random() * this.#volumes.length)];
    const isBlind = this.#random() < BLIND_SHARE;
    if (server === undefined || volumeId === undefined || this.#user.isOver()) return;
    const has = this.#user.look(server)?.spec.volumes.some((volume) => volume.volumeId === volumeId) ?? false;
    const attaches = isBlind ? has : !has;
    const url = `/v2.1/servers/${server}/os-volume_attachments`;
    const answer = await this.#user.call(
      attaches
        ? { method: "POST", url, payload: { volumeAttachment: { volumeId } } }
        : { method: "DELETE", url: `${url}/${volumeId}` },
    );
    if (answer === null) return;
    const { status, body } = answer;
    this.#world.history.record("user", attaches ? "attach" : "detach", { server, volumeId, status });
    if (status < 300) this.begun += 1;
    // Overload, lost databases and a silent Cinder are 503 and 504; anything else is a bug.
    else if (status < 503 && !REFUSALS.includes(status))
      this.#world.find(5, `a change of volumes was answered with ${status}: ${body}`);
  }

  /** Whether a change of the server's volumes may be taken now. */
  #isFree(uuid: string): boolean {
    const server = this.#user.look(uuid);
    return server !== null && server.taskState === null && ["ACTIVE", "PAUSED", "SHUTOFF"].includes(server.status);
  }
}
