import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runProgram } from "./run-program.ts";

test("the exit code is that of the program", async () => {
  expect(await runProgram(["-e", "process.exitCode = Number(process.env.CODE)"], { CODE: "3" })).toBe(3);
});

test.each(["SIGINT", "SIGTERM"] as const)("%s ends the program, too", async (signal) => {
  const program = "console.log(process.pid); setTimeout(() => {}, 60_000)";
  const call = `const { runProgram } = await import(process.argv[1]); process.exitCode = await runProgram(["-e", ${JSON.stringify(program)}])`;
  const words = ["--input-type=module", "--eval", call, join(import.meta.dirname, "run-program.ts")];
  const caller = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  const [pid] = await once(caller.stdout, "data");
  caller.kill(signal);
  expect(await once(caller, "exit")).toEqual([1, null]);
  expect(() => process.kill(Number(pid), 0)).toThrow("ESRCH");
});
