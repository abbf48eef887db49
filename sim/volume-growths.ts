import { freeServer } from "./free-server.ts";
import type { ChangingUser } from "./server-changes.ts";
import type { World } from "./world.ts";

/** Growths for each operation of users. */
const GROWTHS_SHARE = 0.5;
/** Share of the growths of which Cinder's event never reaches an api, and of those of which it does so twice. */
const LOST_SHARE = 0.1;
const TWICE_SHARE = 0.2;
/** Users who extend the volumes of servers in Cinder, which tells an api so that the guests see the new sizes. */
export class VolumeGrowths {
  readonly #world: World;
  readonly #user: Pick<ChangingUser, "call" | "look" | "servers" | "isOver">;
  readonly #extend: (volumeId: string) => void;
  readonly #random: () => number;

  constructor(
    world: World,
    user: Pick<ChangingUser, "call" | "look" | "servers" | "isOver">,
    extend: (volumeId: string) => void,
  ) {
    this.#world = world;
    this.#user = user;
    this.#extend = extend;
    this.#random = world.random("volume growths");
  }

  /** Begins growths at random moments until `untilMs`, as many as belong to this number of operations. */
  begin(operations: number, fromMs: number, untilMs: number): void {
    for (let index = 0; index < operations * GROWTHS_SHARE; index += 1) {
      const delayMs = fromMs + this.#random() * (untilMs - fromMs);
      this.#world.clock.setTimer(delayMs, () => void this.#grow());
    }
  }

  async #grow(): Promise<void> {
    const server = freeServer(this.#user, this.#random);
    const [which, fate] = [this.#random(), this.#random()];
    const volumes = (server === undefined ? null : this.#user.look(server))?.spec.volumes ?? [];
    const volumeId = volumes[Math.floor(which * volumes.length)]?.volumeId;
    if (server === undefined || volumeId === undefined || volumeId === "" || this.#user.isOver()) return;
    this.#extend(volumeId);
    if (fate < LOST_SHARE) return;
    const events = [{ name: "volume-extended", server_uuid: server, tag: volumeId }];
    for (let time = 0; time < (fate < LOST_SHARE + TWICE_SHARE ? 2 : 1); time += 1) {
      const answer = await this.#user.call({
        method: "POST",
        url: "/v2.1/os-server-external-events",
        payload: { events },
      });
      const status = answer?.status ?? 0;
      this.#world.history.record("user", "extend", { server, volumeId, status });
      if (status >= 300 && status < 503)
        this.#world.find(5, `an event about a volume's size was answered with ${status}: ${answer?.body}`);
    }
  }
}
