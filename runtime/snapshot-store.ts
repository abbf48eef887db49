import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { access, type FileHandle, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { openSharedFile } from "./open-shared-file.ts";
import { SilentStorageError, StorageGate } from "./storage-gate.ts";

/**
 * The directory in which images are found under their ids, for writing. An image is there whole, or not at all: it is written under another name
 * and renamed when it is on disk. Hosts may share the directory.
 */
export class SnapshotStore {
  readonly #dir: string;
  readonly #suffix: string;
  readonly #storage: StorageGate;

  /** `suffix` is the ending of the images' names, such as `.qcow2`. `storage` is the way to the directory, if others use it, too. */
  constructor(dir: string, suffix: string, storage = new StorageGate({ name: dir })) {
    this.#dir = dir;
    this.#suffix = suffix;
    this.#storage = storage;
  }

  /** Whether the image has been published. */
  async has(id: string): Promise<boolean> {
    const found = await this.#storage.look(() => stat(this.#pathOf(id)).catch(() => null));
    return found?.isFile() === true;
  }

  /** Returns a new name for an image that is being written. Rejects when the directory cannot be written to. */
  async nameFor(id: string): Promise<string> {
    try {
      await this.#storage.look(() => access(this.#dir, constants.W_OK));
    } catch (error) {
      if (error instanceof SilentStorageError) throw error;
      throw new Error("this host cannot write to its directory of images: give the agent's user the right to", {
        cause: error,
      });
    }
    return join(this.#dir, `.${id}.${randomUUID()}.part`);
  }

  /**
   * Makes the file of an image that is being written, with this beginning, and calls `use` with a path by which other processes of this user open it, and nothing else: hosts that share the
   * directory may put another file, or a link to one of this machine, in its place at any time. Settles as `use` does. Rejects when the file cannot be made; it may be made later then.
   */
  async withFile<Result>(part: string, beginning: Uint8Array, use: (path: string) => Promise<Result>): Promise<Result> {
    let isWanted = true;
    const make = async (): Promise<FileHandle> => {
      const file = await written(part, beginning);
      if (!isWanted) await file.close();
      return file;
    };
    const file = await this.#storage.look(make, { isSlow: true }).catch((error: unknown) => {
      isWanted = false;
      throw error;
    });
    try {
      return await use(`/proc/${process.pid}/fd/${file.fd}`);
    } finally {
      await this.#close(file);
    }
  }

  /**
   * Closes a file, or lets it be closed when a silent storage answers again: Node ends this process if a file is forgotten that is still open. An error of its data is found when it
   * becomes the image.
   */
  async #close(file: FileHandle): Promise<void> {
    const close = () => file.close().catch(() => undefined);
    await this.#storage.look(close, { isSlow: true }).catch(() => {
      // It is not awaited. The first call may still be under way, and a file may be closed twice.
      void this.#storage.work(close, { isSlow: true });
    });
  }

  /**
   * Makes a complete file the image. Afterwards the image survives a crash of the host. While the storage does not answer, this waits for it. When the signal is raised before the
   * file has got the image's name, it rejects with the signal's reason at once, and the file never gets the name.
   */
  async publish(part: string, id: string, signal: AbortSignal): Promise<void> {
    let isNamed = false;
    const published = this.#storage.work(
      async () => {
        signal.throwIfAborted();
        await synced(await openSharedFile(part));
        signal.throwIfAborted();
        isNamed = true;
        await rename(part, this.#pathOf(id));
        await synced(await open(this.#dir));
      },
      { isSlow: true },
    );
    const { promise: calledOff, reject } = Promise.withResolvers<never>();
    const callOff = () => {
      if (!isNamed) reject(signal.reason);
    };
    if (signal.aborted) callOff();
    signal.addEventListener("abort", callOff);
    await Promise.race([published, calledOff]).finally(() => signal.removeEventListener("abort", callOff));
  }

  /** Removes an incomplete file. Does nothing if there is none. Rejects with a SilentStorageError while the storage does not answer; the file may be removed later then. */
  async discard(part: string): Promise<void> {
    await this.#storage.look(() => rm(part, { force: true }), { isSlow: true });
  }

  /** Removes all incomplete files of the image, which earlier processes may have left. */
  async discardAll(id: string): Promise<void> {
    const names = await this.#storage.look(() => readdir(this.#dir));
    const parts = names.filter((name) => name.startsWith(`.${id}.`) && name.endsWith(".part"));
    for (const name of parts) await this.discard(join(this.#dir, name));
  }

  #pathOf(id: string): string {
    return join(this.#dir, `${id}${this.#suffix}`);
  }
}

async function written(path: string, beginning: Uint8Array): Promise<FileHandle> {
  // A link that has the name already is not followed.
  const file = await open(path, "wx+", 0o644);
  try {
    await file.writeFile(beginning);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function synced(file: FileHandle): Promise<void> {
  await file.sync().finally(() => file.close());
}
