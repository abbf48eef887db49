import { StoreError } from "../core/stores/store-error.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { Network } from "./network.ts";
import type { VirtualClock } from "./virtual-clock.ts";

/** A call got no answer. It may or may not have been carried out. */
export class NoAnswerError extends Error {
  constructor(from: string, to: string) {
    super(`${to} did not answer ${from}`);
    this.name = "NoAnswerError";
  }
}

/** A caller gives up a call without an answer after about this time, as with a broken TCP connection. */
const NO_ANSWER_MS = 1_500;

/**
 * The boundary between a simulated process and the world. Everything that leaves or enters the process passes through here. When the
 * process is killed, which can be at any await, its timers never fire, its calls are not sent, and answers do not reach it.
 */
export class SimProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly #world: VirtualClock;
  readonly #network: Network;
  readonly #onKill: (() => void)[] = [];
  #alive = true;
  /** The process is paused (SIGSTOP) until then, and its timers and messages wait. */
  #pausedUntilMs = 0;

  constructor(name: string, world: { readonly clock: VirtualClock; readonly network: Network }, skewMs = 0) {
    this.name = name;
    this.#world = world.clock;
    this.#network = world.network;
    this.clock = {
      now: () => world.clock.now() + skewMs,
      monotonic: () => world.clock.monotonic(),
      setTimer: (delayMs, run) => this.#timer(delayMs, run),
    };
  }

  get alive(): boolean {
    return this.#alive;
  }

  /**
   * Runs `work` at the other place and returns its result. When the message is lost in either direction, rejects with a NoAnswerError, or with
   * what `translate` makes of it.
   */
  call<Value>(
    to: string,
    work: () => Promise<Value>,
    translate: (error: NoAnswerError) => Error = (error) => error,
  ): Promise<Value> {
    return new Promise((resolve, reject) => {
      if (!this.#alive) return;
      const lose = () => reject(translate(new NoAnswerError(this.name, to)));
      const there = this.#network.leg(this.name, to);
      if (there === null) {
        this.#timer(NO_ANSWER_MS, lose);
        return;
      }
      const answer = (tell: () => void) => {
        const back = this.#network.leg(to, this.name);
        this.#timer(back ?? NO_ANSWER_MS, back === null ? lose : tell);
      };
      this.#world.setTimer(there, () => {
        work().then(
          (value) => answer(() => resolve(value)),
          (error: unknown) => answer(() => reject(error)),
        );
      });
    });
  }

  /** Sends a message that gets no answer. */
  send(to: string, arrive: () => void): void {
    if (!this.#alive) return;
    const there = this.#network.leg(this.name, to);
    if (there !== null) this.#world.setTimer(there, arrive);
  }

  /** Receives a message from outside, if the process is still alive when the message arrives. */
  receive(from: string, arrive: () => void): void {
    const here = this.#network.leg(from, this.name);
    if (here !== null) this.#timer(here, arrive);
  }

  /** Registers a function that is called when the process is killed. */
  onKill(run: () => void): void {
    this.#onKill.push(run);
  }

  kill(): void {
    if (!this.#alive) return;
    this.#alive = false;
    for (const run of this.#onKill) run();
  }

  pause(forMs: number): void {
    this.#pausedUntilMs = this.#world.monotonic() + forMs;
  }

  /** How long the process remains paused, in milliseconds. */
  get pausedMs(): number {
    return this.#pausedUntilMs === 0 ? 0 : Math.max(0, this.#pausedUntilMs - this.#world.monotonic());
  }

  #timer(delayMs: number, run: () => void): Timer {
    return this.#alive ? this.#world.setTimer(delayMs, run, this) : NEVER;
  }
}

const NEVER: Timer = { cancel: () => {} };

/** A store whose methods are all asynchronous, reached over the network. A call without an answer fails as in the real stores. */
export function remote<Port extends object>(process: SimProcess, place: string, port: Port): Port {
  const methods = new Map<PropertyKey, unknown>();
  return new Proxy(port, {
    get(target, property) {
      const known = methods.get(property);
      if (known !== undefined) return known;
      const value = Reflect.get(target, property, target);
      if (typeof value !== "function") return value;
      const method = (...args: unknown[]) =>
        process.call(
          place,
          () => Reflect.apply(value, target, args),
          (error) => new StoreError("unavailable", String(property), error),
        );
      methods.set(property, method);
      return method;
    },
  });
}
