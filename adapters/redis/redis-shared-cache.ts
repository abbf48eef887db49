import { Redis } from "ioredis";
import type { SharedCache } from "../../runtime/shared-cache.ts";

const CALL_MS_MAX = 200;

export interface RedisSharedCacheOptions {
  /** `redis://[user:password@]host:port[/db]` */
  readonly url: string;
  /** Prefix of every key, so that several caches can share a server. */
  readonly prefix: string;
}

/** A cache in Redis. A read returns nothing when there is no answer within 200 ms or no connection. */
export class RedisSharedCache implements SharedCache {
  readonly #redis: Redis;
  readonly #prefix: string;

  constructor(options: RedisSharedCacheOptions) {
    this.#prefix = options.prefix;
    this.#redis = new Redis(options.url, {
      connectTimeout: 2_000,
      commandTimeout: CALL_MS_MAX,
      socketTimeout: 2_000,
      // A cache must not delay its reader, so a call without a connection fails at once.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      enableAutoPipelining: true,
      retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 10), 1_000),
    });
    // A failed connection shows in the results of the calls.
    this.#redis.on("error", () => {});
  }

  async get(key: string): Promise<string | null> {
    try {
      return await this.#redis.get(this.#prefix + key);
    } catch {
      return null;
    }
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    try {
      await this.#redis.set(this.#prefix + key, value, "PX", Math.max(1, Math.round(ttlMs)));
    } catch {
      // The value is not cached, and the next reader computes it again.
    }
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
  }
}
