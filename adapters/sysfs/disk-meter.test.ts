import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../test/rigs/eventually.ts";
import { DiskMeter } from "./disk-meter.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "berth-disk-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** A thread that answers once the file `answer` exists, like a file system whose server comes back. */
function slowThread(): URL {
  const file = join(directory, "slow.mjs");
  const text = `import { existsSync } from "node:fs";
    import { workerData } from "node:worker_threads";
    const look = () => {
      if (!existsSync(${JSON.stringify(join(directory, "answer"))})) return;
      clearInterval(timer);
      workerData.bytes[0] = 7;
      Atomics.store(workerData.flag, 0, 1);
      Atomics.notify(workerData.flag, 0);
    };
    const timer = setInterval(look, 5);`;
  writeFileSync(file, text);
  return pathToFileURL(file);
}

test("measures the file system of a directory, and knows nothing of one that does not exist", () => {
  const { blocks, bsize } = statfsSync(directory);
  expect(new DiskMeter().measure(directory)).toBe(blocks * bsize);
  expect(new DiskMeter().measure(join(directory, "nowhere"))).toBeNull();
});

test("a file system that does not answer is unknown, keeps nobody waiting again, and is measured when it comes back", async () => {
  const meter = new DiskMeter({ firstAnswerMs: 1, thread: slowThread() });
  expect(meter.measure("/hangs")).toBeNull();
  expect(meter.measure("/hangs")).toBeNull();
  writeFileSync(join(directory, "answer"), "");
  await eventually("the late answer", () => meter.measure("/hangs") === 7);
});

test("a thread that cannot be started leaves the size unknown", () => {
  const meter = new DiskMeter({ firstAnswerMs: 1, thread: pathToFileURL(join(directory, "none.mjs")) });
  expect(meter.measure(directory)).toBeNull();
});
