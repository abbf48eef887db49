import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** A place in the cloud where one process runs. */
export interface Slot {
  readonly kind: "api" | "scheduler" | "conductor" | "agent";
  readonly name: string;
  /** Starts the process. A start that rejects is retried. */
  start(process: SimProcess): Promise<void>;
}

interface Watched {
  readonly slot: Slot;
  process: SimProcess;
  /** How long the next process waits after this one has ended, in milliseconds. */
  awayMs: number;
}

/** How long a process that ended by itself stays away, in milliseconds. */
const RESTART_MS = 1_000;

/** Keeps a process in each slot and starts another when one has ended, as systemd or Kubernetes do. */
export class Supervisor {
  readonly #world: World;
  readonly #skewMs: (name: string) => number;
  readonly #watched = new Map<string, Watched>();
  #closed = false;

  constructor(world: World, skewMs: (name: string) => number) {
    this.#world = world;
    this.#skewMs = skewMs;
  }

  names(kind?: Slot["kind"]): string[] {
    return [...this.#watched.values()]
      .filter(({ slot }) => kind === undefined || slot.kind === kind)
      .map(({ slot }) => slot.name);
  }

  async add(slot: Slot): Promise<void> {
    const watched = { slot, process: this.#world.process(slot.name, this.#skewMs(slot.name)), awayMs: RESTART_MS };
    this.#watched.set(slot.name, watched);
    await this.#start(watched);
  }

  /** Kills the process at once; another one replaces it after `awayMs`. */
  kill(name: string, awayMs: number): void {
    const watched = this.#watched.get(name);
    if (watched === undefined) return;
    watched.awayMs = awayMs;
    watched.process.kill();
  }

  /** Pauses the process for `forMs`, as under SIGSTOP. */
  pause(name: string, forMs: number): void {
    this.#watched.get(name)?.process.pause(forMs);
  }

  /** Kills everything for good. */
  close(): void {
    this.#closed = true;
    for (const { process } of this.#watched.values()) process.kill();
  }

  async #start(watched: Watched): Promise<void> {
    const { slot, process } = watched;
    watched.awayMs = RESTART_MS;
    process.onKill(() => this.#restart(watched));
    try {
      await slot.start(process);
    } catch (error) {
      if (!process.alive) return;
      this.#world.history.record(slot.name, "cannot start", { error: (error as Error).message });
      process.kill();
    }
  }

  #restart(watched: Watched): void {
    const { name } = watched.slot;
    this.#world.clock.setTimer(watched.awayMs, () => {
      if (this.#closed) return;
      this.#world.history.record(name, "starts again");
      watched.process = this.#world.process(name, this.#skewMs(name));
      void this.#start(watched);
    });
  }
}
