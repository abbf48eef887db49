import { randomUUID } from "node:crypto";
import { link, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";

/** The name of the mark in a directory of guests. Every agent that uses the directory finds the same one there. */
const MARK = ".berth-guests";

/**
 * Tells the directory of an agent's guests from another one in its place, such as an empty mount point: a file in the directory bears a mark, which the agent notes beside its journal. Without that,
 * all guests would look lost, and new ones would be made beside them.
 */
export class DirectoryMark {
  readonly #note: string;

  /** `note` is the agent's own file. */
  constructor(note: string) {
    this.#note = note;
  }

  /** Whether the agent has had a directory of guests. A directory that is missing is then not made again. */
  async isNoted(): Promise<boolean> {
    return (await readIfAny(this.#note)) !== null;
  }

  /**
   * Rejects with a QemuError if this is not the directory that the agent has noted. The first directory is noted, and marked if no agent has done that. A crash in between leaves the mark, which
   * is noted at the next start.
   */
  async check(directory: string): Promise<void> {
    const [noted, found] = [await readIfAny(this.#note), await readIfAny(join(directory, MARK))];
    if (noted === null) await this.#write(this.#note, found ?? (await this.#mark(directory)));
    else if (noted !== found) throw this.otherThan(directory);
  }

  otherThan(directory: string): QemuError {
    return new QemuError(
      "storage",
      `${directory} is not the directory in which this agent's guests are: ${MARK} is missing there, or is another one. Mount the file system with the guests. If they are gone for good, remove ${this.#note}: the directory is then used as it is, and servers without a guest can be rebuilt`,
    );
  }

  /** Two agents may do this at once: the first mark stays. */
  async #mark(directory: string): Promise<string> {
    const [mark, path] = [randomUUID(), join(directory, MARK)];
    const own = `${path}.${mark}`;
    await write(own, mark);
    try {
      await link(own, path);
      return mark;
    } catch (error) {
      const found = await readIfAny(path);
      if (found === null) throw error;
      return found;
    } finally {
      await rm(own, { force: true });
    }
  }

  async #write(path: string, text: string): Promise<void> {
    await mkdir(dirname(path), { recursive: true });
    // Two calls of one process may do this at once.
    const own = `${path}.${randomUUID()}.new`;
    await write(own, text);
    await rename(own, path);
  }
}

async function write(path: string, text: string): Promise<void> {
  const file = await open(path, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

function readIfAny(path: string): Promise<string | null> {
  return readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
    throw error;
  });
}
