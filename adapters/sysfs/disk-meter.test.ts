import { execFileSync, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../test/rigs/eventually.ts";
import { DiskMeter } from "./disk-meter.ts";

let directory: string;
/** The file `answer`. It stays open, since an answer would be lost if nobody had it open before the script of a busy machine begins. */
let answers: number;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "berth-disk-"));
  execFileSync("mkfifo", [join(directory, "answer")]);
  // Opening it for both directions waits for nobody.
  answers = openSync(join(directory, "answer"), "r+");
});
afterEach(() => {
  closeSync(answers);
  rmSync(directory, { recursive: true });
});

/** Waits in the system, as for a file system whose server is gone, until something is written to the file `answer`. */
const hanging = () => `read blocks < ${join(directory, "answer")} && echo "$blocks 4096"`;
const answer = () => writeSync(answers, "7\n");

test("measures the file system of a directory, and knows nothing of one that does not exist", () => {
  const { blocks, bsize } = statfsSync(directory);
  expect(new DiskMeter().measure(directory)).toBe(blocks * bsize);
  expect(new DiskMeter().measure(join(directory, "nowhere"))).toBeNull();
});

test("a path with unusual characters is a path, and no part of a command", () => {
  const path = join(directory, "$(touch x); -f 'y");
  execFileSync("mkdir", [path]);
  expect(new DiskMeter().measure(path)).toBeGreaterThan(0);
});

test("a file system that does not answer is unknown, keeps nobody waiting again, and is measured when it comes back", async () => {
  const meter = new DiskMeter({ firstAnswerMs: 1, answerMs: 60_000, script: hanging() });
  expect(meter.measure("/hangs")).toBeNull();
  expect(meter.measure("/hangs")).toBeNull();
  answer();
  await eventually("the late answer", () => meter.measure("/hangs") === 7 * 4096);
});

test("a process whose file system does not answer can end", async () => {
  const module = new URL("./disk-meter.ts", import.meta.url).href;
  const program = `const { DiskMeter } = await import(${JSON.stringify(module)});
    new DiskMeter({ firstAnswerMs: 1, script: ${JSON.stringify(hanging())} }).measure("/hangs");`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], { stdio: "ignore" });
  try {
    await eventually("its end", () => child.exitCode !== null, { everyMs: 20, withinMs: 30_000 });
    expect(child.exitCode).toBe(0);
  } finally {
    child.kill("SIGKILL");
    answer();
  }
});

test("a script that fails leaves the size unknown", () => {
  expect(new DiskMeter({ script: "echo nothing" }).measure(directory)).toBeNull();
});
