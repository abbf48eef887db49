import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { processTree, signalTree } from "./process-tree.ts";

test("a tree is killed as a whole, whatever its processes are doing", async () => {
  const shell = spawn("/bin/sh", ["-c", "trap '' TERM; (trap '' TERM; echo up; while :; do sleep 1; done) & wait"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(shell.stdout, "data");
  const pid = shell.pid as number;
  const tree = processTree(pid);
  expect(tree[0]).toBe(pid);
  expect(tree.length).toBeGreaterThan(1);
  const closed = once(shell, "close");
  signalTree(pid, "SIGKILL");
  // The output is closed only when no descendant holds it open.
  await closed;
  expect(processTree(pid)).toEqual([pid]);
});
