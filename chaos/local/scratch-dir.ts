import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface ScratchDir {
  readonly path: string;
  remove(): Promise<void>;
}

/** Removes the directory when the pipe from this process closes without a message. Processes that still use it end for the same reason. */
const WATCHER = 'read -r word; [ -n "$word" ] && exit; until rm -rf "$0" 2>/dev/null; do sleep 1; done';

/** A directory in `parent` that is removed with this process, however this process ends. */
export function makeScratchDir(parent = tmpdir()): ScratchDir {
  const path = mkdtempSync(join(parent, "berth-cloud-"));
  // Postgres' own account has to reach the directories inside.
  chmodSync(path, 0o711);
  const watcher = spawn("/bin/sh", ["-c", WATCHER, path], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  watcher.stdin.on("error", () => undefined);
  watcher.unref();
  return {
    path,
    async remove() {
      watcher.stdin.end("gone\n");
      await rm(path, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
