import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";

const BERTH = join(import.meta.dirname, "../../bin/berth");

test("a call with many seeds shows its progress, and reports its results when it is stopped", {
  timeout: 120_000,
}, async () => {
  const child = spawn(BERTH, [
    "sim",
    "--profile",
    "calm",
    "--hosts",
    "3",
    "--requests",
    "5",
    "--jobs",
    "1",
    "--seeds",
    "1..100000",
  ]);
  try {
    let printed = "";
    child.stdout.on("data", (text: Buffer) => {
      printed += text;
    });
    const exited = once(child, "exit");
    const [line] = (await once(child.stderr, "data")) as [Buffer];
    expect(`${line}`).toMatch(/0 % {2}\d+ seeds? held .* simulated .* left/);
    child.kill("SIGINT");
    expect(await exited).toEqual([130, null]);
    expect(printed).toMatch(/^\d+ seeds of profile calm: all laws held\./);
  } finally {
    child.kill("SIGKILL");
  }
});
