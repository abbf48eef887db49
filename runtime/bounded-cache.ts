import type { Clock } from "./clock.ts";

/**
 * Values by key, each until it expires. When there are more than `entriesMax` entries, the least recently used one is evicted. Cost:
 * constant.
 */
export class BoundedCache<Value> {
  readonly #clock: Clock;
  readonly #entriesMax: number;
  /** The least recently used entry comes first. */
  readonly #entries = new Map<string, { readonly value: Value; readonly untilMs: number }>();

  constructor(options: { readonly clock: Clock; readonly entriesMax: number }) {
    this.#clock = options.clock;
    this.#entriesMax = options.entriesMax;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    if (entry.untilMs <= this.#clock.monotonic()) return undefined;
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** Keeps the value for `ttlMs`, or not at all when `ttlMs` is not positive. */
  set(key: string, value: Value, ttlMs: number): void {
    this.#entries.delete(key);
    if (ttlMs <= 0) return;
    this.#entries.set(key, { value, untilMs: this.#clock.monotonic() + ttlMs });
    if (this.#entries.size > this.#entriesMax) this.#entries.delete(this.#entries.keys().next().value as string);
  }
}
