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
  readonly #onUnmarked: (error: unknown) => void;
  /** The mark of the directory that this process uses, or null if it could not be marked. */
  #mark: string | null = null;

  /** `note` is the agent's own file. `onUnmarked` is called when the first directory could not be marked, or its mark could not be noted. */
  constructor(note: string, onUnmarked: (error: unknown) => void = () => undefined) {
    this.#note = note;
    this.#onUnmarked = onUnmarked;
  }

  /** Whether the agent has had a directory of guests. A directory that is missing is then not made again. */
  async isNoted(): Promise<boolean> {
    return (await readIfAny(this.#note)) !== null;
  }

  /**
   * Rejects with a QemuError if this is not the directory that the agent has noted, and with the system's error if its mark cannot be read. The first directory is noted, and marked if no agent has
   * done that. A crash in between leaves the mark, which is noted at the next start. A first directory that cannot be marked, since it is full or cannot be written to, is used all the same, as by
   * agents that knew no marks: the guests in it need their agent. It is marked at a later start.
   */
  async check(directory: string): Promise<void> {
    const noted = await readIfAny(this.#note);
    if (noted !== null) {
      if (noted !== (await readIfAny(join(directory, MARK)))) throw this.otherThan(directory);
      this.#mark = noted;
      return;
    }
    try {
      const mark = (await readIfAny(join(directory, MARK))) ?? (await markFirst(directory));
      // After a loss of power the agent would refuse its own directory if the note were durable and the mark were not.
      await sync(directory);
      await this.#noteDown(mark);
      this.#mark = mark;
    } catch (error) {
      this.#onUnmarked(error);
    }
  }

  /** Rejects if the directory does not bear the mark that it had at the `check`. Marks nothing: another directory may be in its place by now. */
  async confirm(directory: string): Promise<void> {
    if (this.#mark !== null && this.#mark !== (await readIfAny(join(directory, MARK)))) throw this.otherThan(directory);
  }

  otherThan(directory: string): QemuError {
    return new QemuError(
      "storage",
      `${directory} is not the directory in which this agent's guests are: ${MARK} is missing there, or is another one. Mount the file system with the guests. If it is mounted, or they are gone for good, remove ${this.#note}: the directory is then used as it is, and servers without a guest can be rebuilt`,
    );
  }

  async #noteDown(mark: string): Promise<void> {
    await mkdir(dirname(this.#note), { recursive: true });
    // Two calls of one process may do this at once.
    const own = `${this.#note}.${randomUUID()}.new`;
    try {
      await write(own, mark);
      await rename(own, this.#note);
    } finally {
      await rm(own, { force: true });
    }
  }
}

/** Two agents may do this at once: the first mark stays. */
async function markFirst(directory: string): Promise<string> {
  const [mark, path] = [randomUUID(), join(directory, MARK)];
  const own = `${path}.${mark}`;
  try {
    await write(own, mark);
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

/** Some file systems cannot do that for a directory, and need not. */
async function sync(directory: string): Promise<void> {
  const handle = await open(directory);
  await handle.sync().catch(() => undefined);
  await handle.close();
}

async function write(path: string, text: string): Promise<void> {
  const file = await open(path, "w");
  try {
    // Whatever the process's umask is: agents that share a directory may run as different users.
    await file.chmod(0o644);
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
