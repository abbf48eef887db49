import type { ChaosCloud } from "./chaos-cloud.ts";
import type { ChaosHistory } from "./chaos-history.ts";

const LOOK_MS = 100;

/**
 * Records which parts of a cloud end without having been told to, from construction until `stop`. Services may do so, and are started
 * again. When a server does, the cloud was harmed in a way that the plan does not contain, so the run proves nothing and fails.
 */
export class DeathWatch {
  readonly #cloud: Pick<ChaosCloud, "deaths">;
  readonly #history: ChaosHistory;
  readonly #timer: NodeJS.Timeout;
  readonly #failures = new Set<string>();
  #seen: number;

  constructor(cloud: Pick<ChaosCloud, "deaths">, history: ChaosHistory) {
    this.#cloud = cloud;
    this.#history = history;
    this.#seen = cloud.deaths().length;
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
  }

  /** Looks a last time, and returns the reasons for which the run fails. */
  stop(): readonly string[] {
    clearInterval(this.#timer);
    this.#look();
    return [...this.#failures];
  }

  #look(): void {
    const deaths = this.#cloud.deaths();
    for (const { part, isServer, words } of deaths.slice(this.#seen)) {
      this.#history.write({ who: "runner", what: "died", part, detail: words });
      if (isServer) this.#failures.add(`${part}, a server that the cloud needs, ended on its own: ${words}`);
    }
    this.#seen = deaths.length;
  }
}
