import type { Part, Role } from "../chaos-cloud.ts";

const LOOK_MS = 250;
const RESTART_EVERY_MS = 500;

/**
 * A part under a supervisor.
 * - wanted: when the part ends by itself, it is started again, repeatedly until that works
 * - not wanted, from `kill` to `start`: the part stays down
 */
export class SupervisedPart implements Part {
  readonly name: string;
  readonly role: Role;
  readonly cell: string | null;
  readonly #part: Part;
  readonly #events: { readonly died: () => void; readonly started: () => void };
  readonly #timer: NodeJS.Timeout;
  #wanted = true;
  #starting: Promise<void> | null = null;
  #lastTryMs = 0;

  constructor(part: Part, events: { readonly died: () => void; readonly started: () => void }) {
    this.name = part.name;
    this.role = part.role;
    this.cell = part.cell;
    this.#part = part;
    this.#events = events;
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    this.#timer.unref();
  }

  get running(): boolean {
    return this.#wanted && this.#part.running;
  }

  async kill(): Promise<void> {
    this.#wanted = false;
    await this.#part.kill();
  }

  async start(): Promise<void> {
    this.#wanted = true;
    await this.#startOnce();
  }

  pause(): Promise<void> {
    return this.#part.pause();
  }

  resume(): Promise<void> {
    return this.#part.resume();
  }

  /** Starts the part unless it runs. */
  async startAgain(): Promise<void> {
    if (!this.#part.running || !this.#wanted) await this.start();
    else await this.#starting;
  }

  /** Stops supervising. */
  release(): void {
    clearInterval(this.#timer);
    this.#wanted = false;
  }

  #look(): void {
    if (!this.#wanted || this.#part.running || this.#starting !== null) return;
    const now = performance.now();
    if (now - this.#lastTryMs < RESTART_EVERY_MS) return;
    this.#lastTryMs = now;
    this.#events.died();
    this.#startOnce().catch(() => undefined); // The next check tries again.
  }

  #startOnce(): Promise<void> {
    this.#starting ??= this.#begin().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  async #begin(): Promise<void> {
    if (this.#part.running) return;
    await this.#part.start();
    this.#events.started();
  }
}
