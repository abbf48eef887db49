/**
 * A cache that several processes may share. It may forget anything at any time, and none of its methods rejects: a cache that cannot be
 * reached behaves like an empty one.
 */
export interface SharedCache {
  /** Resolves with null when the key is not there or the cache cannot be reached. */
  get(key: string): Promise<string | null>;
  /** Keeps the value for up to `ttlMs` (at least 1). */
  set(key: string, value: string, ttlMs: number): Promise<void>;
}
