/**
 * A cache that several processes may share. It may forget anything at any time, and nothing it does rejects: a cache that
 * cannot be reached is an empty one.
 */
export interface SharedCache {
  /** Null: not there, or not reachable. */
  get(key: string): Promise<string | null>;
  /** Keeps the value for up to `ttlMs` (at least 1). */
  set(key: string, value: string, ttlMs: number): Promise<void>;
}
