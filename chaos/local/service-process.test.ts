import { afterEach, expect, test } from "vitest";
import { ServiceProcess } from "./service-process.ts";

const SERVES = "echo ready; exec sleep 600";
const FAILS = "exit 3";

const opened: ServiceProcess[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.kill();
});

/** A process whose lives run these scripts, one after the other, and the last one again and again. */
function living(...scripts: readonly [string, ...string[]]) {
  let starts = 0;
  const sleeper = new ServiceProcess({
    ...{ name: "sleeper", argv: ["-c", 'eval "$SCRIPT"'], berth: () => "/bin/sh" },
    env: () => ({ SCRIPT: scripts[Math.min(starts++, scripts.length - 1)] ?? "" }),
  });
  opened.push(sleeper);
  return { sleeper, starts: () => starts };
}

test("replacements that are asked for at once happen one after the other, and each kills a process that serves", async () => {
  const { sleeper, starts } = living(SERVES);
  await sleeper.start();
  const before = sleeper.pid;
  const pids = await Promise.all([1, 2, 3].map(() => sleeper.replace().then(() => sleeper.pid)));
  expect(new Set([before, ...pids]).size).toBe(4);
  expect([starts(), sleeper.running]).toEqual([4, true]);
});

test("a replacement that does not serve is an error of its own, and the next one is made all the same", async () => {
  const { sleeper } = living(SERVES, FAILS, SERVES);
  await sleeper.start();
  const [failed, made] = await Promise.allSettled([sleeper.replace(), sleeper.replace()]);
  expect(failed).toMatchObject({
    reason: expect.objectContaining({ message: expect.stringContaining("exit code 3") }),
  });
  expect([made.status, sleeper.running]).toEqual(["fulfilled", true]);
});
