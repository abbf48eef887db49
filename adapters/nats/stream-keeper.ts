import type { NatsConnection } from "@nats-io/transport-node";
import type { StreamSpec, StreamState } from "../../runtime/bus.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import { ensureStreams, managerOf } from "./ensure-streams.ts";
import { toBusError } from "./nats-errors.ts";
import type { NatsEvent, NatsLink } from "./nats-link.ts";

/** Interval of the routine checks that everything exists. */
const lookMs = 10_000;
/** Pause before a check that something gave reason for, and between two tries to make a missing stream or consumer. */
const againMs = 500;

/**
 * Keeps the streams and consumers of a bus in existence. A server whose disk was replaced, or that lost a stream with its copies, comes
 * back without them, and a process that only publishes and pulls would never create them again.
 * Modes: **idle** (nothing was asked for, or no connection) → **looking** (asks for each consumer; after every connection everything is
 * ensured) → **there** (until the next check) or **missing** (made again, and checked again until that succeeds). A publish or a pull that no
 * stream answers is a reason to check soon.
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
  /** When the check after the running one is due. */
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

  /** Makes the streams and consumers now, and keeps them from now on, even when making them fails. Rejects with a `BusError`. */
  async ensure(specs: readonly StreamSpec[]): Promise<void> {
    for (const spec of specs) this.#specs.set(spec.stream, spec);
    this.#lookIn(lookMs);
    const connection = await this.#link.whenUp(this.#timeoutMs);
    try {
      await ensureStreams(connection, specs, this.#timeoutMs);
      this.#isMissing = false;
    } catch (error) {
      // A stream that this user may not make is kept by another process.
      if (toBusError("streams", error).code === "not-permitted")
        for (const spec of specs) this.#specs.delete(spec.stream);
      throw error;
    }
  }

  /**
   * Schedules a check because a publish or a pull was not answered, so something may be missing. The check is not made at once: a server
   * that has just removed a stream is still removing its files, and a stream that is made again meanwhile loses them.
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

  /**
   * When two checks are due, the earlier one counts. A check that is wanted while another is under way follows it, because the running
   * one may have looked too early.
   */
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
      // Another connection has come meanwhile, on which everything is still to be ensured.
      if (connection !== this.#connection) return;
      this.#ensuresNext = false;
      if (this.#isMissing) this.#onEvent({ kind: "streams-made", streams: [...this.#specs.keys()] });
      this.#isMissing = false;
    } catch (error) {
      if (this.#closed || connection !== this.#connection) return;
      // A server whose disk is full refuses to write down streams that it already has. In that case nothing is missing.
      const isMissing = await this.#findsMissing(connection).catch(() => true);
      // The connection may have been lost during this second check, which then says nothing about the streams.
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
