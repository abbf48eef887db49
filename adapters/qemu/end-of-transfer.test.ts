import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../../test/rigs/eventually.ts";
import { endOfTransfer } from "./end-of-transfer.ts";

/** A process whose only thread has the name: the kernel names it after the program's file. */
async function threadNamed(name: string): Promise<ChildProcess> {
  const dir = mkdtempSync(join(tmpdir(), "berth-end-of-transfer-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const program = join(dir, name);
  copyFileSync("/bin/cat", program);
  const child = spawn(program, { stdio: ["pipe", "ignore", "ignore"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const nameOf = () => readFileSync(`/proc/${child.pid}/comm`, "utf8").trim();
  await eventually("the thread's name", () => nameOf() === name, { everyMs: 10, withinMs: 60_000 });
  return child;
}

const guestOf = ({ pid }: ChildProcess) => ({ process: () => ({ pid: pid ?? 0, startTime: "" }) });

test("waits for the thread of the last transfer", async () => {
  const child = await threadNamed("return path");
  let isEnded = false;
  const ended = endOfTransfer(guestOf(child), 60_000).then(() => {
    isEnded = true;
  });
  await expect(endOfTransfer(guestOf(child), 60)).rejects.toThrow("has not ended the guest's last transfer");
  expect(isEnded).toBe(false);
  child.kill("SIGKILL");
  await ended;
});

test("waits neither for other threads nor for a QEMU that is gone", async () => {
  const child = await threadNamed("CPU 0");
  await endOfTransfer(guestOf(child), 0);
  await endOfTransfer({ process: () => null }, 0);
});
