import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../../..");
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Runs a program under this Node to its end, and resolves with its exit code. Signals are passed on to it, since it would outlive this process. */
export async function runProgram(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<number> {
  const child = spawn(process.execPath, words, { cwd: ROOT, stdio: "inherit", env: { ...process.env, ...env } });
  const passOn = (signal: NodeJS.Signals) => child.kill(signal);
  for (const signal of SIGNALS) process.on(signal, passOn);
  try {
    const [code] = (await once(child, "exit")) as [number | null];
    return code ?? 1;
  } finally {
    for (const signal of SIGNALS) process.off(signal, passOn);
  }
}
