import { Redis } from "ioredis";
import type { HostPick } from "../../core/scheduling/host-pick.ts";
import type { LawsReading } from "../../core/stores/laws-reading.ts";
import type { SchedulerFigures } from "../../core/stores/scheduler-figures.ts";
import { buildFailureFadeMs, pickFadeMs, picksReadMax, type SoftState } from "../../core/stores/soft-state.ts";

const callMsMax = 200;
const reconnectDelayMsMax = 1_000;

const schedulersKey = "berth:schedulers";
const failureCountsKey = "berth:build-failures:counts";
const picksKey = "berth:picks";
const lawsKey = "berth:laws";
const failureTimesKey = "berth:build-failures:times";
const figuresKey = (schedulerId: string): string => `berth:schedulers:figures:${schedulerId}`;

/** All times are the server's own, so that schedulers with different clocks agree on which of them are alive. */
const nowMs = `local t = redis.call('time'); local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

const livingScript = `${nowMs}
return redis.call('zrangebyscore', KEYS[1], '(' .. now, '+inf')`;

/** Members of a sorted set are removed when their score, the time of their expiry, has passed. */
const announceScript = `${nowMs}
redis.call('zadd', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('zremrangebyscore', KEYS[1], '-inf', now)
redis.call('pexpire', KEYS[1], math.max(redis.call('pttl', KEYS[1]), tonumber(ARGV[2])))
return redis.call('zrange', KEYS[1], 0, -1)`;

/** The formula of `fadedCount` in core/stores/soft-state. */
const faded = `local function faded(count, ago, fade) return math.floor(count * 2 ^ (-4 * ago / fade) * 100 + 0.5) / 100 end`;

/**
 * The count is stored as of its last failure. If that failure is too old, the count starts again at 1. Both keys expire when the youngest
 * count has faded.
 */
const recordFailureScript = `${nowMs}
${faded}
local last = tonumber(redis.call('zscore', KEYS[2], ARGV[1]) or 0)
local count = 1
if last + ARGV[2] > now then
  count = count + faded(tonumber(redis.call('hget', KEYS[1], ARGV[1]) or 0), now - last, tonumber(ARGV[2]))
end
redis.call('hset', KEYS[1], ARGV[1], tostring(count))
redis.call('zadd', KEYS[2], now, ARGV[1])
redis.call('pexpire', KEYS[1], ARGV[2])
redis.call('pexpire', KEYS[2], ARGV[2])`;

const clearFailuresScript = `redis.call('hdel', KEYS[1], ARGV[1])
redis.call('zrem', KEYS[2], ARGV[1])`;

/** Removes up to 1,000 forgotten hosts in a call, then returns all remaining ones as a list: host, present count, host, present count, … */
const readFailuresScript = `${nowMs}
${faded}
local gone = redis.call('zrangebyscore', KEYS[2], '-inf', now - ARGV[1], 'limit', 0, 1000)
if #gone > 0 then
  redis.call('hdel', KEYS[1], unpack(gone))
  redis.call('zrem', KEYS[2], unpack(gone))
end
local answer = redis.call('hgetall', KEYS[1])
for index = 1, #answer, 2 do
  local last = tonumber(redis.call('zscore', KEYS[2], answer[index]) or now)
  answer[index + 1] = tostring(faded(tonumber(answer[index + 1]), now - last, tonumber(ARGV[1])))
end
return answer`;

/** ARGV: how long the picks are kept, followed by the members. */
const recordPicksScript = `${nowMs}
local until_ms = now + ARGV[1]
for index = 2, #ARGV do redis.call('zadd', KEYS[1], until_ms, ARGV[index]) end
redis.call('pexpire', KEYS[1], ARGV[1])`;

const readPicksScript = `${nowMs}
redis.call('zremrangebyscore', KEYS[1], '-inf', now)
return redis.call('zrange', KEYS[1], -ARGV[1], -1)`;

type SoftStateCommands = Redis & {
  berthLiving(key: string): Promise<string[]>;
  berthAnnounce(key: string, schedulerId: string, ttlMs: number): Promise<string[]>;
  berthRecordFailure(counts: string, times: string, host: string, fadeMs: number): Promise<null>;
  berthClearFailures(counts: string, times: string, host: string): Promise<null>;
  berthReadFailures(counts: string, times: string, fadeMs: number): Promise<string[]>;
  berthRecordPicks(key: string, fadeMs: number, ...picks: readonly string[]): Promise<null>;
  berthReadPicks(key: string, limit: number): Promise<string[]>;
};

export interface RedisSoftStateOptions {
  /** `redis://[user:password@]host:port[/db]` */
  readonly url: string;
  readonly fadeMs?: number;
  /** Called once for each outage. From then on calls give neutral answers. */
  readonly onLost?: (reason: string) => void;
  /** Called when the first call after an outage has succeeded. */
  readonly onBack?: () => void;
}

/**
 * The soft state in Redis, shared by all schedulers. No call rejects or waits long: without a connection, or without an answer after 200
 * ms, a call gives the answer of an empty store.
 * - well: from the start. Calls go to Redis.
 * - lost: since a call failed. Calls still try, at no cost while there is no connection, and the first success makes it well again.
 */
export class RedisSoftState implements SoftState {
  readonly #redis: SoftStateCommands;
  readonly #fadeMs: number;
  readonly #onLost: (reason: string) => void;
  readonly #onBack: () => void;
  readonly #firstConnect: Promise<void>;
  #lost = false;
  #closed = false;

  constructor(options: RedisSoftStateOptions) {
    this.#fadeMs = options.fadeMs ?? buildFailureFadeMs;
    this.#onLost = options.onLost ?? (() => {});
    this.#onBack = options.onBack ?? (() => {});
    const redis = new Redis(options.url, {
      connectTimeout: 2_000,
      // Connections to a server that stops answering are closed, so that later calls fail at once.
      socketTimeout: 2_000,
      // These two options must not delay a call: a late answer about soft state has no value.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      enableAutoPipelining: true,
      retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 10), reconnectDelayMsMax),
    });
    // A failed connection shows in the calls, which report it once.
    redis.on("error", () => {});
    redis.defineCommand("berthLiving", { numberOfKeys: 1, lua: livingScript });
    redis.defineCommand("berthAnnounce", { numberOfKeys: 1, lua: announceScript });
    redis.defineCommand("berthRecordFailure", { numberOfKeys: 2, lua: recordFailureScript });
    redis.defineCommand("berthClearFailures", { numberOfKeys: 2, lua: clearFailuresScript });
    redis.defineCommand("berthReadFailures", { numberOfKeys: 2, lua: readFailuresScript });
    redis.defineCommand("berthRecordPicks", { numberOfKeys: 1, lua: recordPicksScript });
    redis.defineCommand("berthReadPicks", { numberOfKeys: 1, lua: readPicksScript });
    this.#redis = redis as SoftStateCommands;
    // The first calls come while the client is still connecting, which is not an outage.
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, callMsMax);
    this.#firstConnect = promise.finally(() => clearTimeout(timer));
    redis.once("ready", resolve);
    redis.once("close", resolve);
  }

  announce(schedulerId: string, ttlMs: number): Promise<readonly string[]> {
    return this.#orElse([schedulerId], async (redis) => {
      const ids = await redis.berthAnnounce(schedulersKey, schedulerId, ttlMs);
      return ids.sort();
    });
  }

  living(): Promise<readonly string[]> {
    return this.#orElse([], async (redis) => (await redis.berthLiving(schedulersKey)).sort());
  }

  async withdraw(schedulerId: string): Promise<void> {
    await this.#orElse(null, (redis) =>
      Promise.all([redis.zrem(schedulersKey, schedulerId), redis.del(figuresKey(schedulerId))]),
    );
  }

  async recordFigures(schedulerId: string, figures: SchedulerFigures, ttlMs: number): Promise<void> {
    await this.#orElse(null, (redis) => redis.set(figuresKey(schedulerId), JSON.stringify(figures), "PX", ttlMs));
  }

  figuresOf(schedulerIds: readonly string[]): Promise<ReadonlyMap<string, SchedulerFigures>> {
    if (schedulerIds.length === 0) return Promise.resolve(new Map());
    return this.#orElse(new Map(), async (redis) => {
      const texts = await redis.mget(schedulerIds.map(figuresKey));
      const found = new Map<string, SchedulerFigures>();
      for (const [index, id] of schedulerIds.entries()) {
        const text = texts[index];
        if (text != null) found.set(id, JSON.parse(text) as SchedulerFigures);
      }
      return found;
    });
  }

  async recordBuildFailure(cell: string, host: string): Promise<void> {
    await this.#orElse(null, (redis) =>
      redis.berthRecordFailure(failureCountsKey, failureTimesKey, `${cell}/${host}`, this.#fadeMs),
    );
  }

  async clearBuildFailures(cell: string, host: string): Promise<void> {
    await this.#orElse(null, (redis) => redis.berthClearFailures(failureCountsKey, failureTimesKey, `${cell}/${host}`));
  }

  buildFailures(): Promise<ReadonlyMap<string, number>> {
    return this.#orElse(new Map(), async (redis) => {
      const flat = await redis.berthReadFailures(failureCountsKey, failureTimesKey, this.#fadeMs);
      const counts = new Map<string, number>();
      for (let index = 0; index + 1 < flat.length; index += 2)
        counts.set(flat[index] as string, Number(flat[index + 1]));
      return counts;
    });
  }

  async recordPicks(schedulerId: string, picks: readonly HostPick[]): Promise<void> {
    if (picks.length === 0) return;
    const members = picks.map(({ cell, host }) => JSON.stringify([schedulerId, cell, host]));
    await this.#orElse(null, (redis) => redis.berthRecordPicks(picksKey, pickFadeMs, ...members));
  }

  recentPicks(schedulerId: string): Promise<readonly HostPick[]> {
    return this.#orElse([], async (redis) => {
      const picks = (await redis.berthReadPicks(picksKey, picksReadMax)).map(
        (member) => JSON.parse(member) as string[],
      );
      return picks.flatMap(([by, cell = "", host = ""]) => (by === schedulerId ? [] : [{ cell, host }]));
    });
  }

  async recordLaws(reading: LawsReading, ttlMs: number): Promise<void> {
    await this.#orElse(null, (redis) => redis.set(lawsKey, JSON.stringify(reading), "PX", ttlMs));
  }

  laws(): Promise<LawsReading | null> {
    return this.#orElse(null, async (redis) => JSON.parse((await redis.get(lawsKey)) ?? "null") as LawsReading | null);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#redis.disconnect();
  }

  async #orElse<Answer>(neutral: Answer, call: (redis: SoftStateCommands) => Promise<Answer>): Promise<Answer> {
    if (this.#closed) return neutral;
    try {
      await this.#firstConnect;
      const answer = await within(callMsMax, call(this.#redis));
      if (this.#lost) {
        this.#lost = false;
        this.#onBack();
      }
      return answer;
    } catch (error) {
      if (!this.#lost && !this.#closed) {
        this.#lost = true;
        this.#onLost(error instanceof Error ? error.message : String(error));
      }
      return neutral;
    }
  }
}

function within<Answer>(limitMs: number, answer: Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${limitMs} ms`)), limitMs);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
