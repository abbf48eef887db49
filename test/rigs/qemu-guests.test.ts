import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { makeQemuGuestsDir } from "./qemu-guests.ts";

const processes: ChildProcess[] = [];
afterEach(() => {
  for (const one of processes.splice(0)) one.kill("SIGKILL");
});

/** A process in a directory, as a QEMU in that of its guest. */
async function processIn(cwd: string): Promise<ChildProcess> {
  mkdirSync(cwd, { recursive: true });
  const child = spawn("sleep", ["600"], { cwd, stdio: "ignore" });
  processes.push(child);
  await once(child, "spawn");
  return child;
}

test("the guests of a killed test end, and not one whose own directory a test that runs has removed", async () => {
  const made = makeQemuGuestsDir(Buffer.alloc(512));
  const killed = mkdtempSync(join(tmpdir(), "berth-qemu-"));
  try {
    const kept = await processIn(join(made.instancesPath, "guest-a+0"));
    rmSync(join(made.instancesPath, "guest-a+0"), { recursive: true });
    const left = await processIn(join(killed, "instances", "guest-b+0"));
    const ended = once(left, "exit");
    rmSync(killed, { recursive: true });
    await makeQemuGuestsDir(Buffer.alloc(512)).remove();
    await ended;
    expect([kept.exitCode, kept.signalCode]).toEqual([null, null]);
    const keptEnd = once(kept, "exit");
    kept.kill("SIGTERM");
    expect(await keptEnd).toEqual([null, "SIGTERM"]);
  } finally {
    rmSync(killed, { recursive: true, force: true });
    await made.remove();
  }
});
