import { setTimeout as delay } from "node:timers/promises";
import type { Cloud } from "./cloud.ts";

const PAUSE_MS = 20;

/**
 * Asks all agents repeatedly which guests run on their hosts. No test that uses it moves a running server, so a server that was seen
 * running in two places ran twice, at once or in turn, and the fourth law is broken either way.
 */
export class RunWatch {
  readonly #cloud: Cloud;
  readonly #seen = new Map<string, Set<string>>();
  #stopped = false;
  readonly #watching: Promise<void>;

  constructor(cloud: Cloud) {
    this.#cloud = cloud;
    this.#watching = this.#watch();
  }

  /** Returns the servers that ran in more than one place, with the places. */
  async stop(): Promise<readonly (readonly [server: string, places: readonly string[]])[]> {
    this.#stopped = true;
    await this.#watching;
    return [...this.#seen].filter(([, places]) => places.size > 1).map(([server, places]) => [server, [...places]]);
  }

  async #watch(): Promise<void> {
    while (!this.#stopped) {
      const cells = await Promise.all(this.#cloud.cells.map((cell) => cell.runningGuests()));
      for (const hosts of cells) {
        for (const [host, guests] of hosts) {
          for (const { serverUuid, attemptId } of guests) {
            const places = this.#seen.get(serverUuid) ?? new Set<string>();
            this.#seen.set(serverUuid, places.add(`${host} ${attemptId}`));
          }
        }
      }
      await delay(PAUSE_MS);
    }
  }
}
