import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";

/** The directory within a disk's own one at which its file system is mounted. */
const MOUNT = "disk";

/** Has a file system mounted at `path`, until it is closed. This also ends the mounts of killed tests, which nobody else would. */
function openDisk(
  kind: string,
  mount: (path: string, dir: string) => void,
): { readonly path: string; readonly close: () => void } {
  const dir = makeOwnedDir(kind, tmpdir(), endMount);
  const path = join(dir, MOUNT);
  const close = () => {
    endMount(dir);
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    mkdirSync(path);
    mount(path, dir);
  } catch (error) {
    close();
    throw error;
  }
  return { path, close };
}

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
  const run = (program: string, ...args: readonly string[]) => execFileSync(program, args, { stdio: "pipe" });
  const { path, close } = openDisk("hanging-disk", (at, dir) => {
    const image = join(dir, "image");
    writeFileSync(image, "");
    truncateSync(image, 64 * 1_048_576);
    run("mkfs.ext4", "-q", "-F", image);
    run("mount", "-o", "loop", image, at);
  });
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
      close();
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
  const { path, close } = openDisk("small-disk", (at) => {
    const options = `size=${mib}m,nr_inodes=${filesMax}`;
    execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", at], { stdio: "pipe" });
  });
  const filling = join(path, "filling");
  return {
    path,
    fill: () => {
      // It ends with an error when the disk is full.
      execFileSync("sh", ["-c", 'cat /dev/zero >> "$0" 2> /dev/null || true', filling]);
    },
    empty: () => rmSync(filling, { force: true }),
    close,
  };
}
