import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { makeOwnedDir } from "./owned-dir.ts";

const MODULE = join(import.meta.dirname, "owned-dir.ts");
const KIND = `owned-test-${process.pid}`;
const made: string[] = [];
const noted = (path: string): string => {
  made.push(path);
  return path;
};

/** Starts a process that makes a directory and keeps running. */
async function owner() {
  const script = `import { makeOwnedDir } from ${JSON.stringify(MODULE)}; console.log(makeOwnedDir(process.argv[1])); setInterval(() => {}, 1e9)`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script, KIND]);
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return { child, path: noted(line.toString().trim()) };
}

test("directories of killed processes are removed by the next start of the same kind; those in use or of unknown owner stay", async () => {
  onTestFinished(() => {
    for (const path of made) rmSync(path, { recursive: true, force: true });
  });
  const [killed, living] = await Promise.all([owner(), owner()]);
  const unowned = noted(mkdtempSync(join(tmpdir(), `berth-${KIND}-`)));
  killed.child.kill("SIGKILL");
  await once(killed.child, "exit");
  const own = noted(makeOwnedDir(KIND));
  noted(makeOwnedDir(KIND));
  expect([killed.path, living.path, unowned, own].map((path) => existsSync(path))).toEqual([false, true, true, true]);
});
