import type { GuestName } from "../services/compute-agent/journal.ts";
import type { World } from "./world.ts";

/** Guests are refused for this long at most, in milliseconds: longer than a host is without its power. */
const REFUSED_MS_MAX = 60_000;

/** Decides which guests of some hosts cannot start for some time after their first start was tried, although they lack nothing. */
export class RefusedStarts {
  readonly #world: World;
  readonly #share: number;
  /** Apart from others, so that worlds without such refusals stay as they are. */
  readonly #random: () => number;
  /** Until when each guest cannot start, by the world's monotonic clock. */
  readonly #untilMs = new Map<string, number>();

  constructor(world: World, hosts: string, share: number) {
    this.#world = world;
    this.#share = share;
    this.#random = world.random(`refused starts of ${hosts}`);
  }

  /** Starts the guest, or rejects if it cannot start now. */
  async over({ host, attemptId }: GuestName, start: () => Promise<void>): Promise<void> {
    if (this.#share === 0) return start();
    const [key, nowMs] = [`${host} ${attemptId}`, this.#world.clock.monotonic()];
    const untilMs = this.#untilMs.get(key) ?? nowMs + this.#drawMs();
    this.#untilMs.set(key, untilMs);
    if (nowMs < untilMs) throw new Error("the guest's firmware is broken");
    return start();
  }

  #drawMs(): number {
    const [draw, length] = [this.#random(), this.#random()];
    return draw < this.#share ? length * REFUSED_MS_MAX : 0;
  }
}
