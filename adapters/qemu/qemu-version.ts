import { execFileSync } from "node:child_process";
import { QemuError } from "./qemu-error.ts";

/** It takes milliseconds, and many seconds on a busy machine. */
const ANSWER_MS = 60_000;

/**
 * The version of QEMU as one number: 7.2.22 is 7002022. Throws a QemuError when the program is not installed, fails, or does not tell its version in time. This process
 * stands still meanwhile.
 */
export function qemuVersion(program: string, answerMs = ANSWER_MS): number {
  let text: string;
  try {
    text = execFileSync(program, ["--version"], {
      encoding: "utf8",
      timeout: answerMs,
      killSignal: "SIGKILL",
      stdio: ["ignore", "pipe", "ignore"],
    });
  } catch (error) {
    throw new QemuError("unavailable", whyNot(program, error as NodeJS.ErrnoException, answerMs), { cause: error });
  }
  const [, major = "0", minor = "0", patch = "0"] = /version (\d+)\.(\d+)(?:\.(\d+))?/.exec(text) ?? [];
  return Number(major) * 1_000_000 + Number(minor) * 1_000 + Number(patch);
}

function whyNot(program: string, { code, message }: NodeJS.ErrnoException, answerMs: number): string {
  if (code === "ENOENT") return `${program} is not installed on this host`;
  if (code === "ETIMEDOUT") return `${program} did not tell its version within ${answerMs / 1_000} s`;
  return `${program} does not tell its version: ${message}`;
}
