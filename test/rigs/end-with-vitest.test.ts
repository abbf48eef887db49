import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";

test("a worker ends as soon as the channel to the process that started it is closed", async () => {
  const busy = 'await import(process.argv[1]); setTimeout(() => {}, 60_000); process.send("ready")';
  const module = join(import.meta.dirname, "end-with-vitest.ts");
  const worker = fork(module, { execArgv: ["--input-type=module", "--eval", busy] });
  const ended = once(worker, "exit");
  await once(worker, "message");
  // The kernel closes it when that process ends.
  worker.disconnect();
  expect(await ended).toEqual([null, "SIGKILL"]);
});
