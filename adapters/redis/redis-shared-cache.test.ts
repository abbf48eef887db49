import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../test/rigs/eventually.ts";
import { type LocalRedis, startLocalRedis } from "./local-server.ts";
import { RedisSharedCache } from "./redis-shared-cache.ts";

let server: LocalRedis;
const caches: RedisSharedCache[] = [];
const open = (prefix = "test:") => {
  const cache = new RedisSharedCache({ url: server.url, prefix });
  caches.push(cache);
  return cache;
};

beforeAll(async () => {
  server = await startLocalRedis();
});
afterAll(async () => {
  for (const cache of caches) await cache.close();
  await server.stop();
});

/** Sets the value repeatedly until it is stored, because connecting takes a moment. */
const put = (cache: RedisSharedCache, key: string, value: string) =>
  eventually("the value", async () => {
    await cache.set(key, value, 60_000);
    return (await cache.get(key)) === value;
  });

test("shows one process the values that another has put, under its prefix and until they expire", async () => {
  const [first, second, stranger] = [open(), open(), open("other:")];
  await put(first, "a", "1");
  expect(await eventually("the value", () => second.get("a"))).toBe("1");
  await put(stranger, "b", "2");
  expect(await stranger.get("a")).toBeNull();
  const redis = new Redis(server.url);
  expect(await redis.pttl("test:a")).toBeGreaterThan(0);
  redis.disconnect();
});

test("is empty while the server is gone, and works again when it is back", async () => {
  const cache = open();
  await put(cache, "a", "1");
  await server.kill();
  await cache.set("a", "2", 60_000);
  expect(await cache.get("a")).toBeNull();
  await server.restart();
  await put(cache, "a", "3");
});
