import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";

/** The directory within a disk's own one at which its file system is mounted. */
const MOUNT = "disk";

/** A directory for a disk. This also ends the mounts of killed tests, which nobody else would. */
const makeDiskDir = (kind: string): string => makeOwnedDir(kind, tmpdir(), endMount);

/** Throws if the file system cannot be ended: then nothing of its directory may be touched, since a call for it may stand still for good. */
function endMount(dir: string): void {
  const path = join(dir, MOUNT);
  if (!readFileSync("/proc/self/mounts", "utf8").includes(` ${path} `)) return;
  try {
    // It may hold up processes.
    execFileSync("fsfreeze", ["--unfreeze", path], { stdio: "pipe" });
  } catch {
    // It was not frozen.
  }
  execFileSync("umount", ["--lazy", path], { stdio: "pipe" });
}

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

/** A file system on which all writing stands still from `freeze` to `thaw`, as on a storage that hangs. */
export interface HangingDisk {
  readonly path: string;
  freeze(): void;
  thaw(): void;
  close(): void;
}

/** Why no file system can be made to hang here, or null when one can. */
export function whyNoHangingDisk(): string | null {
  if (process.getuid?.() !== 0) return "only root can mount a file system";
  try {
    const disk = openHangingDisk();
    try {
      disk.freeze();
    } finally {
      disk.close();
    }
    return null;
  } catch (error) {
    return `no file system can be frozen here: ${(error as Error).message.slice(0, 200)}`;
  }
}

export function openHangingDisk(): HangingDisk {
  const dir = makeDiskDir("hanging-disk");
  const [image, path] = [join(dir, "image"), join(dir, MOUNT)];
  const run = (program: string, ...args: readonly string[]) => execFileSync(program, args, { stdio: "pipe" });
  try {
    writeFileSync(image, "");
    truncateSync(image, 64 * 1_048_576);
    run("mkfs.ext4", "-q", "-F", image);
    mkdirSync(path);
    run("mount", "-o", "loop", image, path);
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
  let isFrozen = false;
  const thaw = () => {
    if (isFrozen) run("fsfreeze", "--unfreeze", path);
    isFrozen = false;
  };
  return {
    path,
    freeze: () => {
      run("fsfreeze", "--freeze", path);
      isFrozen = true;
    },
    thaw,
    close: () => {
      thaw();
      run("umount", "--lazy", path);
      rmSync(dir, { recursive: true, force: true });
    },
  };
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

/** Mounts a file system of so many MiB, and for so many files if that is named, until it is closed. */
export function openSmallDisk(mib: number, filesMax = 0): SmallDisk {
  const dir = makeDiskDir("small-disk");
  const path = join(dir, MOUNT);
  try {
    mkdirSync(path);
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${mib}m,nr_inodes=${filesMax}`, "tmpfs", path], {
      stdio: "pipe",
    });
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
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
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
