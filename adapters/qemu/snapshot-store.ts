import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { access, open, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { QemuError } from "./qemu-error.ts";

/**
 * The directory in which images are found under their ids, for writing. An image is there whole, or not at all: it is written under another name
 * and renamed when it is on disk. Hosts may share the directory.
 */
export class SnapshotStore {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Whether the image has been published. */
  async has(id: string): Promise<boolean> {
    const found = await stat(this.#pathOf(id)).catch(() => null);
    return found?.isFile() === true;
  }

  /** Returns a new name for an image that is being written. Rejects with a QemuError when the directory cannot be written to. */
  async nameFor(id: string): Promise<string> {
    try {
      await access(this.#dir, constants.W_OK);
    } catch (error) {
      throw new QemuError("storage", "this host cannot write to its directory of images", { cause: error });
    }
    return join(this.#dir, `.${id}.${randomUUID()}.part`);
  }

  /** Makes a complete file the image. Afterwards the image survives a crash of the host. */
  async publish(part: string, id: string): Promise<void> {
    await synced(part);
    await rename(part, this.#pathOf(id));
    await synced(this.#dir);
  }

  /** Removes an incomplete file. Does nothing if there is none. */
  async discard(part: string): Promise<void> {
    await rm(part, { force: true });
  }

  #pathOf(id: string): string {
    return join(this.#dir, `${id}.qcow2`);
  }
}

async function synced(path: string): Promise<void> {
  const file = await open(path);
  await file.sync().finally(() => file.close());
}
