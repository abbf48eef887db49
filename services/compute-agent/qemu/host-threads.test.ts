import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { warnOfFewThreads } from "../../../adapters/qemu/file-threads.ts";
import { STORAGE_THREADS } from "./host-storage.ts";

test.each([
  [null, "UV_THREADPOOL_SIZE is not set"],
  ["43", 'UV_THREADPOOL_SIZE is "43"'],
  ["many", 'UV_THREADPOOL_SIZE is "many"'],
  ["0", 'UV_THREADPOOL_SIZE is "0"'],
])("warns of %s threads when 36 may hang with the storage", (told, words) => {
  const warning = warnOfFewThreads(36, told);
  expect(warning).toContain(words);
  expect(warning).toContain("at least 44");
});

test("is silent about enough threads", () => {
  expect(warnOfFewThreads(36, "44")).toBeNull();
});

test("the threads that bin/berth gives an agent are enough for the storage of virtual machines", () => {
  const launcher = readFileSync(join(import.meta.dirname, "../../../bin/berth"), "utf8");
  const [, given] = /UV_THREADPOOL_SIZE:-(\d+)/.exec(launcher) ?? [];
  expect(given).toBeDefined();
  expect(warnOfFewThreads(STORAGE_THREADS, given)).toBeNull();
});
