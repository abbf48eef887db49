import { closeSync, constants, fstatSync, opendirSync, openSync, readlinkSync, readSync, realpathSync } from "node:fs";
import { basename, sep } from "node:path";
import type { UnreadFile } from "../../core/discovery/host-files.ts";

/** Bounds on how much is read of a host's files. Anything beyond a bound is left unread, and reported. */
export interface SysrootBounds {
  readonly entriesPerDirectory: number;
  /** Files, directories and links of the whole host. */
  readonly reads: number;
}

const UNREAD_MAX = 100;

/**
 * Reads files below a directory that stands for a host's root. Every path is resolved first, and a path that leads out of the directory is
 * not followed. Only regular files are read, and without blocking, so a pipe cannot delay the reader.
 */
export class Sysroot {
  readonly unread: UnreadFile[] = [];
  readonly #root: string;
  readonly #bounds: SysrootBounds;
  #reads = 0;

  /** Throws if `root` is not a directory that can be resolved. */
  constructor(root: string, bounds: SysrootBounds) {
    this.#root = realpathSync.native(root);
    this.#bounds = bounds;
  }

  /** The file's text, or undefined if it does not exist or cannot be read. A text longer than `bytesMax` is refused as a whole. */
  text(path: string, bytesMax: number): string | undefined {
    return this.#attempt(path, (resolved) => {
      const file = openSync(resolved, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
      try {
        if (!fstatSync(file).isFile()) return this.#refuse(path, "it is not a regular file");
        const bytes = readUpTo(file, bytesMax + 1);
        if (bytes.length > bytesMax) return this.#refuse(path, `it is longer than ${bytesMax} bytes`);
        return bytes.toString("utf8");
      } finally {
        closeSync(file);
      }
    });
  }

  /** The sorted names in a directory, or undefined if it does not exist or cannot be read. */
  entries(path: string): readonly string[] | undefined {
    return this.#attempt(path, (resolved) => {
      const directory = opendirSync(resolved);
      try {
        const names: string[] = [];
        for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
          if (names.length === this.#bounds.entriesPerDirectory)
            return this.#refuse(path, `it has more than ${this.#bounds.entriesPerDirectory} entries`);
          names.push(entry.name);
        }
        return names.sort();
      } finally {
        directory.closeSync();
      }
    });
  }

  /** The last part of a link's target, which need not exist, or undefined if there is no such link. The link is not followed. */
  link(directory: string, name: string): string | undefined {
    return this.#attempt(
      directory,
      (resolved) => basename(readlinkSync(`${resolved}/${name}`)),
      `${directory}/${name}`,
    );
  }

  #attempt<Result>(
    path: string,
    read: (resolved: string) => Result | undefined,
    reported: string = path,
  ): Result | undefined {
    if (this.#reads >= this.#bounds.reads) {
      if (this.#reads === this.#bounds.reads)
        this.#refuse(reported, "and nothing after it: the limit of the amount to read is reached");
      this.#reads = this.#bounds.reads + 1;
      return undefined;
    }
    this.#reads++;
    try {
      const resolved = realpathSync.native(`${this.#root}${path}`);
      if (!this.#isInside(resolved)) return this.#refuse(reported, "a link leads out of the sysroot");
      return read(resolved);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? String(error);
      // Most files exist only on some machines. The kernel also answers EINVAL where a device has no value.
      if (["ENOENT", "ENOTDIR", "EINVAL"].includes(code)) return undefined;
      return this.#refuse(reported, code);
    }
  }

  #isInside(resolved: string): boolean {
    return this.#root === sep || resolved === this.#root || resolved.startsWith(`${this.#root}${sep}`);
  }

  #refuse(path: string, reason: string): undefined {
    if (this.unread.length < UNREAD_MAX) this.unread.push({ path, reason });
    return undefined;
  }
}

/** Files of /proc and /sys do not state their true size, so they are read until they end. */
function readUpTo(file: number, bytesMax: number): Buffer {
  const chunks: Buffer[] = [];
  let length = 0;
  while (length < bytesMax) {
    const chunk = Buffer.alloc(Math.min(65_536, bytesMax - length));
    const read = readSync(file, chunk);
    if (read === 0) break;
    chunks.push(chunk.subarray(0, read));
    length += read;
  }
  return Buffer.concat(chunks);
}
