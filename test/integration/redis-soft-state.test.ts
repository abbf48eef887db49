import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type LocalRedis, startLocalRedis } from "../../adapters/redis/local-server.ts";
import { RedisSoftState } from "../../adapters/redis/redis-soft-state.ts";
import { softStateContract } from "../contract/soft-state.contract.ts";
import { eventually } from "../rigs/eventually.ts";

let redis: LocalRedis;
beforeAll(async () => {
  redis = await startLocalRedis();
});
afterAll(() => redis.stop());

softStateContract("Redis", () => ({
  connect: ({ fadeMs }) => new RedisSoftState({ url: redis.url, fadeMs }),
  async reset() {
    const client = new Redis(redis.url);
    await client.flushall();
    await client.quit();
  },
}));

describe("the soft state with Redis gone", () => {
  const open: RedisSoftState[] = [];
  afterEach(() => Promise.all(open.splice(0).map((state) => state.close())));
  const make = (url: string) => {
    const told: string[] = [];
    const state = new RedisSoftState({ url, onLost: () => told.push("lost"), onBack: () => told.push("back") });
    open.push(state);
    return { state, told };
  };
  const expectNeutral = async (state: RedisSoftState) => {
    expect(await state.announce("s1", 60_000)).toEqual(["s1"]);
    expect(await state.buildFailures()).toEqual(new Map());
    await state.recordBuildFailure("c1", "h1");
    await state.clearBuildFailures("c1", "h1");
    await state.withdraw("s1");
  };

  test("answers neutrally without a server, and reports that once", async () => {
    const { state, told } = make("redis://127.0.0.1:1");
    await expectNeutral(state);
    expect(told).toEqual(["lost"]);
  });

  test("answers neutrally through a crash, and reports it once and the return once", async () => {
    const { state, told } = make(redis.url);
    await state.announce("s0", 60_000);
    await state.recordBuildFailure("c1", "h1");
    expect(await state.buildFailures()).toEqual(new Map([["c1/h1", 1]]));
    await redis.kill();
    await expectNeutral(state);
    await expectNeutral(state);
    expect(told).toEqual(["lost"]);
    await redis.restart();
    await eventually("the return", async () => {
      await state.recordBuildFailure("c1", "h2");
      return told.includes("back");
    });
    expect((await state.buildFailures()).get("c1/h2")).toBeGreaterThan(0);
    expect(told).toEqual(["lost", "back"]);
  });

  test("answers neutrally while Redis hangs", async () => {
    const { state, told } = make(redis.url);
    await state.announce("s0", 60_000);
    process.kill(redis.pid, "SIGSTOP");
    try {
      await expectNeutral(state);
      expect(told).toEqual(["lost"]);
    } finally {
      process.kill(redis.pid, "SIGCONT");
    }
  });
});
