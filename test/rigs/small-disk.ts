import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Why a small file system cannot be made here, or null when it can. */
export function whyNoSmallDisk(): string | null {
  if (process.getuid?.() !== 0) return "only root can mount a small file system";
  try {
    openSmallDisk(1).close();
    return null;
  } catch (error) {
    return `a small file system cannot be mounted here: ${(error as Error).message.slice(0, 200)}`;
  }
}

/** A directory with a file system of its own. */
export interface SmallDisk {
  readonly path: string;
  /** Takes all the room that is left. Repeatable. */
  fill(): void;
  /** Gives the room back. */
  empty(): void;
  close(): void;
}

/** Mounts a file system of so many MiB, until it is closed. */
export function openSmallDisk(mib: number): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), "berth-small-disk-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${mib}m`, "tmpfs", path], { stdio: "pipe" });
  const filling = join(path, "filling");
  return {
    path,
    fill: () => {
      // It ends with an error when the disk is full.
      execFileSync("sh", ["-c", 'cat /dev/zero >> "$0" 2> /dev/null || true', filling]);
    },
    empty: () => rmSync(filling, { force: true }),
    close: () => {
      execFileSync("umount", ["--lazy", path]);
      rmSync(path, { recursive: true, force: true });
    },
  };
}
