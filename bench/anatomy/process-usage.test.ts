import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { threadsCpuMs, usageOf } from "./process-usage.ts";

const PIDS_MAX = 4_194_304;

test("the CPU time of threads is told by their name", () => {
  const own = readFileSync(`/proc/${process.pid}/task/${process.pid}/comm`, "utf8").trim();
  expect(threadsCpuMs(process.pid, own)).toBeGreaterThan(0);
  expect(threadsCpuMs(process.pid, "no such thread")).toBe(0);
});

test("a process that does not exist has used nothing", () => {
  expect(threadsCpuMs(PIDS_MAX + 1, "node")).toBe(0);
  expect(usageOf(PIDS_MAX + 1)).toBeNull();
});
