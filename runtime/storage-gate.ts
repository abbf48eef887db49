import { type Clock, systemClock, type Timer } from "./clock.ts";
import { stoodStill } from "./stood-still.ts";

/** A storage does not answer at present, so the call was not made, or nobody waits for its answer any longer. */
export class SilentStorageError extends Error {
  override readonly name = "SilentStorageError";
}

export interface StorageGateOptions {
  /** The storage, as the operator knows it, for messages: `the directory /srv/instances`. */
  readonly name: string;
  readonly clock?: Pick<Clock, "monotonic" | "setTimer">;
  /** How many calls may be made at a time. Each of them may hang, with a thread of this process. */
  readonly callsMax?: number;
  /** How many of these may be slow. Half of them if absent: the others always show whether the storage answers, and do not wait for what takes long. */
  readonly slowMax?: number;
  /** A storage that has not answered a call for so long is silent. */
  readonly silentAfterMs?: number;
  /** Called when the storage falls silent, with the reason, and when it answers again, with null. */
  readonly onChanged?: (silence: string | null) => void;
}

interface CallOptions {
  /** How long the call takes says nothing about the storage, since it reads or writes much. */
  readonly isSlow?: boolean;
}

interface Call extends CallOptions {
  readonly sinceMs: number;
  /** Gives the call up when the storage falls silent. Null for a call that is waited for. */
  readonly giveUp: ((error: SilentStorageError) => void) | null;
}

interface Waiting extends CallOptions {
  readonly begin: () => void;
  readonly giveUp: Call["giveUp"];
}

const CALLS_MAX = 8;
const SILENT_AFTER_MS = 15_000;
/** A process that stood still itself takes the answers that have come meanwhile first. */
const READING_MS = 250;

/**
 * The calls of this process to a storage that may hang, such as a directory on NFS. A call that hangs keeps one of the few threads that Node has for files, names and
 * ciphers, so only some are made at a time, and the others wait without a thread. Calls through the gate must not wait for each other.
 *
 * - answering: calls are made in their order. Slow ones get only some of the places, and are passed by others while those are taken: a storage on which only slow calls
 *   hang is found silent by the next call that is not slow.
 * - silent: a call has had no answer for too long. No further call is made. A look is refused, and work waits. When none of the calls has been waiting for so
 *   long, the storage answers again. Nothing asks it meanwhile: the call that hangs is the question.
 */
export class StorageGate {
  readonly #name: string;
  readonly #clock: Pick<Clock, "monotonic" | "setTimer">;
  readonly #callsMax: number;
  readonly #slowMax: number;
  readonly #silentAfterMs: number;
  readonly #onChanged: (silence: string | null) => void;
  /** The calls that have been made and not answered, oldest first. */
  readonly #open = new Set<Call>();
  readonly #waiting: Waiting[] = [];
  #timer: Timer | null = null;
  #isSilent = false;

  constructor(options: StorageGateOptions) {
    this.#name = options.name;
    this.#clock = options.clock ?? systemClock;
    this.#callsMax = options.callsMax ?? CALLS_MAX;
    this.#slowMax = options.slowMax ?? Math.ceil(this.#callsMax / 2);
    this.#silentAfterMs = options.silentAfterMs ?? SILENT_AFTER_MS;
    this.#onChanged = options.onChanged ?? (() => undefined);
  }

  /** Why calls are not made at present, or null while the storage answers. */
  get silence(): string | null {
    return this.#isSilent ? `${this.#name} has not answered for ${this.#silentAfterMs / 1_000} s or longer` : null;
  }

  /** Rejects with a SilentStorageError while the storage is silent. */
  refuseSilence(): void {
    if (this.#isSilent) throw this.#error();
  }

  /**
   * Makes a call after which the caller must know what has become of it: it waits for the storage, however long that takes. So whatever the call writes is there, or is not,
   * when the caller goes on.
   */
  work<Value>(call: () => Promise<Value>, options: CallOptions = {}): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#enter({ ...options, begin: () => this.#make(call, options, null).then(resolve, reject), giveUp: null });
    });
  }

  /**
   * Makes a call that may as well not be made, or whose end need not be known. Rejects with a SilentStorageError when the storage falls silent; the call itself may then still
   * go on.
   */
  look<Value>(call: () => Promise<Value>, options: CallOptions = {}): Promise<Value> {
    if (this.#isSilent) return Promise.reject(this.#error());
    return new Promise((resolve, reject) => {
      this.#enter({ ...options, begin: () => this.#make(call, options, reject).then(resolve, reject), giveUp: reject });
    });
  }

  /** Ends the watch over the calls. Those that are open or wait go on. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #enter(call: Waiting): void {
    if (this.#mayBegin(call)) call.begin();
    else this.#waiting.push(call);
  }

  #mayBegin({ isSlow }: CallOptions): boolean {
    if (this.#isSilent || this.#open.size >= this.#callsMax) return false;
    return isSlow !== true || [...this.#open].filter((call) => call.isSlow === true).length < this.#slowMax;
  }

  async #make<Value>(call: () => Promise<Value>, options: CallOptions, giveUp: Call["giveUp"]): Promise<Value> {
    const made: Call = { ...options, sinceMs: this.#clock.monotonic(), giveUp };
    this.#open.add(made);
    this.#watch();
    try {
      return await call();
    } finally {
      this.#open.delete(made);
      this.#answered();
    }
  }

  #answered(): void {
    if (this.#isSilent) {
      if (this.#overdueMs() >= 0) return;
      this.#isSilent = false;
      this.#onChanged(null);
      this.#watch();
    }
    while (this.#open.size < this.#callsMax && !this.#isSilent) {
      const next = this.#waiting.findIndex((call) => this.#mayBegin(call));
      if (next === -1) break;
      this.#waiting.splice(next, 1)[0]?.begin();
    }
    if (this.#open.size === 0) this.close();
  }

  /** For how long the storage has been silent, or will be answering yet, as a negative number. */
  #overdueMs(): number {
    const oldest = [...this.#open].find(({ isSlow }) => isSlow !== true);
    if (oldest === undefined) return Number.NEGATIVE_INFINITY;
    return this.#clock.monotonic() - oldest.sinceMs - this.#silentAfterMs;
  }

  #watch(): void {
    if (this.#timer !== null || this.#isSilent) return;
    const restMs = -this.#overdueMs();
    if (restMs === Number.POSITIVE_INFINITY) return;
    const dueMs = this.#clock.monotonic() + restMs;
    this.#timer = this.#clock.setTimer(Math.max(0, restMs), () => {
      const wait = stoodStill(dueMs, this.#clock.monotonic()) ? READING_MS : 0;
      if (wait === 0) this.#judge();
      else this.#timer = this.#clock.setTimer(wait, () => this.#judge());
    });
  }

  #judge(): void {
    this.#timer = null;
    if (this.#overdueMs() < 0) {
      this.#watch();
      return;
    }
    this.#isSilent = true;
    this.#onChanged(this.silence);
    const error = this.#error();
    for (const { giveUp } of this.#open) giveUp?.(error);
    const looks = this.#waiting.filter(({ giveUp }) => giveUp !== null);
    for (const look of looks) {
      this.#waiting.splice(this.#waiting.indexOf(look), 1);
      look.giveUp?.(error);
    }
  }

  #error(): SilentStorageError {
    return new SilentStorageError(
      `${this.silence}: repeat this when it answers again (see whether its file system is mounted and its server runs)`,
    );
  }
}
