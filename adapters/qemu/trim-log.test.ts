import { appendFileSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { trimLog } from "./trim-log.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "berth-log-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test("keeps the last whole lines, and the writer appends after them", async () => {
  const path = join(dir, "console.log");
  const writer = openSync(path, "a");
  for (let line = 0; line < 100; line += 1) writeSync(writer, `line ${line}\n`);
  await trimLog(path, 50);
  expect(statSync(path).size).toBeLessThanOrEqual(50);
  writeSync(writer, "more\n");
  expect(readFileSync(path, "utf8")).toMatch(/^line \d+\n(line \d+\n)*line 99\nmore\n$/);
});

test("leaves a short log, and one that is not there, alone", async () => {
  const path = join(dir, "console.log");
  await trimLog(path, 50);
  appendFileSync(path, "x".repeat(100));
  await trimLog(path, 50);
  expect(statSync(path).size).toBe(100);
});
