import { expect, onTestFinished, test } from "vitest";
import { startLocalRedis } from "../../adapters/redis/local-server.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { ChildServerPart } from "./child-server-part.ts";
import { SupervisedPart } from "./supervised-part.ts";

test("a server that dies by itself is reported, with its last output, and started again", {
  timeout: 60_000,
}, async () => {
  const redis = await startLocalRedis();
  const part = new ChildServerPart({ name: "redis", role: "redis", cell: null }, redis);
  const told: string[] = [];
  const supervised = new SupervisedPart(part, {
    died: () => told.push(part.lastWords),
    started: () => told.push("started"),
  });
  onTestFinished(() => {
    supervised.release();
    return redis.stop();
  });
  process.kill(redis.pid, "SIGKILL");
  await eventually("it to serve again", () => told.includes("started"));
  expect(told).toEqual([expect.stringContaining("killed by SIGKILL"), "started"]);
  await supervised.kill();
  await supervised.start();
  expect([told.length, supervised.running]).toEqual([3, true]);
});
