import type { NatsConnection } from "@nats-io/transport-node";
import type { StreamSpec, StreamState } from "../../runtime/bus.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import { ensureStreams, managerOf } from "./ensure-streams.ts";
import { toBusError } from "./nats-errors.ts";
import type { NatsEvent, NatsLink } from "./nats-link.ts";

/** How often it is looked whether everything is there, without any sign that it is not. */
const lookMs = 10_000;
/** Pause before a look that has a reason, and before another one after something was missing that could not be made. */
const againMs = 500;

/**
 * Keeps the streams and consumers of a bus in being. A server whose disk was replaced, or that lost a stream with its copies, comes back
 * without them, and nobody who only publishes and pulls would ever make them again.
 *
 * Modes: **idle** (nothing was asked for, or no connection) → **looking** (each consumer is asked about; after every connection everything
 * is ensured) → **there** (until the next look) or **missing** (made again, and looked at again until that succeeds). A publish or a pull
 * that nobody answers is a reason to look soon.
 */
export class StreamKeeper {
  readonly #link: NatsLink;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #onEvent: (event: NatsEvent) => void;
  readonly #specs = new Map<string, StreamSpec>();
  #connection: NatsConnection | undefined;
  #isMissing = false;
  #timer: Timer | undefined;
  #dueMs = Number.POSITIVE_INFINITY;
  #looking: Promise<void> | undefined;
  /** When another look is wanted after the one that is under way. */
  #afterwardsMs = Number.POSITIVE_INFINITY;
  #ensuresNext = false;
  #closed = false;

  constructor(options: {
    readonly link: NatsLink;
    readonly clock: Clock;
    readonly timeoutMs: number;
    readonly onEvent: (event: NatsEvent) => void;
  }) {
    this.#link = options.link;
    this.#clock = options.clock;
    this.#timeoutMs = options.timeoutMs;
    this.#onEvent = options.onEvent;
    options.link.attach(this);
  }

  get state(): StreamState {
    if (this.#connection === undefined) return "away";
    return this.#isMissing ? "missing" : "there";
  }

  /** Makes them now, and keeps them from now on, also when that fails. Rejects with a `BusError`. */
  async ensure(specs: readonly StreamSpec[]): Promise<void> {
    for (const spec of specs) this.#specs.set(spec.stream, spec);
    this.#lookIn(lookMs);
    const connection = await this.#link.whenUp(this.#timeoutMs);
    try {
      await ensureStreams(connection, specs, this.#timeoutMs);
      this.#isMissing = false;
    } catch (error) {
      // What this user may not do is for others to keep.
      if (toBusError("streams", error).code === "not-permitted")
        for (const spec of specs) this.#specs.delete(spec.stream);
      throw error;
    }
  }

  /**
   * Something may be missing: nobody answered. Not looked at once: a server that has just removed a stream is still removing its files, and
   * one that is made again meanwhile loses them.
   */
  suspect(): void {
    this.#lookIn(againMs);
  }

  onUp(connection: NatsConnection): void {
    this.#connection = connection;
    this.#ensuresNext = true;
    this.#lookIn(0);
  }

  onDown(): void {
    this.#connection = undefined;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    this.#link.detach(this);
    await this.#looking;
  }

  /** The earlier one of two looks that are due counts. One that is wanted while a look is under way follows it: that look may have come too early. */
  #lookIn(delayMs: number): void {
    if (this.#closed || this.#specs.size === 0) return;
    if (this.#looking !== undefined) {
      this.#afterwardsMs = Math.min(this.#afterwardsMs, delayMs);
      return;
    }
    const dueMs = this.#clock.monotonic() + delayMs;
    if (this.#timer !== undefined && this.#dueMs <= dueMs) return;
    this.#timer?.cancel();
    this.#dueMs = dueMs;
    this.#timer = this.#clock.setTimer(delayMs, () => {
      this.#timer = undefined;
      const looking = this.#look().finally(() => {
        this.#looking = undefined;
        const wantedMs = this.#afterwardsMs;
        this.#afterwardsMs = Number.POSITIVE_INFINITY;
        this.#lookIn(Math.min(wantedMs, this.#isMissing ? againMs : lookMs));
      });
      this.#looking = looking;
    });
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const connection = this.#connection;
    if (connection === undefined) return;
    try {
      if (!this.#ensuresNext && !(await this.#findsMissing(connection))) {
        this.#isMissing = false;
        return;
      }
      await ensureStreams(connection, [...this.#specs.values()], this.#timeoutMs);
      // Another connection has come meanwhile: on that one everything is still to be ensured.
      if (connection !== this.#connection) return;
      this.#ensuresNext = false;
      if (this.#isMissing) this.#onEvent({ kind: "streams-made", streams: [...this.#specs.keys()] });
      this.#isMissing = false;
    } catch (error) {
      if (this.#closed || connection !== this.#connection) return;
      // A server whose disk is full refuses to write down what it has already; nothing is missing for that.
      const isMissing = await this.#findsMissing(connection).catch(() => true);
      // The connection may have been lost during this second look, which then says nothing about the streams.
      if (this.#closed || connection !== this.#connection) return;
      if (isMissing) this.#tellMissing(toBusError("streams", error).message);
      else this.#isMissing = false;
    }
  }

  /** Whether a stream or a consumer is not there. Rejects when that cannot be known. */
  async #findsMissing(connection: NatsConnection): Promise<boolean> {
    const manager = await managerOf(connection, this.#timeoutMs);
    for (const { stream, consumers } of this.#specs.values()) {
      for (const { name } of consumers) {
        try {
          await manager.consumers.info(stream, name);
        } catch (error) {
          const known = toBusError(`${stream}/${name}`, error);
          if (known.code !== "no-stream") throw known;
          this.#tellMissing(known.message);
          return true;
        }
      }
    }
    return false;
  }

  #tellMissing(reason: string): void {
    if (!this.#isMissing) this.#onEvent({ kind: "streams-missing", reason });
    this.#isMissing = true;
  }
}
