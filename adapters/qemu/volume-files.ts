import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { QemuError } from "./qemu-error.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** A symbolic link is not followed, and opening a pipe does not wait for its writer. */
const SAFELY = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The parts of a volume that decide about its file. `sizeBytes` is 0 when nobody knows the size. */
export interface SizedVolume {
  readonly volumeId: string;
  readonly sizeBytes: number;
}

/**
 * The files of volumes in one directory. All hosts between which servers with volumes move share this directory. It is never created here,
 * so that a file system that is not mounted is noticed. No file is ever removed or truncated.
 */
export class VolumeFiles {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /**
   * The path of a volume's file, which has at least the volume's size when this resolves. With `mayCreate` a missing file is made, sparse and
   * readable for this user alone. Rejects with a QemuError if the file is missing otherwise, is smaller than the volume, or is no regular file.
   */
  async ensure(volume: SizedVolume, { mayCreate }: { readonly mayCreate: boolean }): Promise<string> {
    const path = this.#pathOf(volume.volumeId);
    const file = await this.#open(path, volume, mayCreate);
    try {
      const { size } = await this.#regular(file, path);
      if (size < volume.sizeBytes && size > 0)
        throw new QemuError(
          "storage",
          `${path} has ${size} bytes and volume ${volume.volumeId} has ${volume.sizeBytes}: enlarge the file if all of its data is there`,
        );
      // A file without content was made by a process that ended here. Growing is harmless when two hosts do it at once.
      if (size === 0) await this.#fill(file, path, volume);
      return path;
    } finally {
      await file.close();
    }
  }

  #pathOf(volumeId: string): string {
    if (!UUID.test(volumeId))
      throw new QemuError("storage", `"${volumeId.slice(0, 100)}" is no volume id; allowed: a UUID in lower case`);
    return join(this.#dir, `volume-${volumeId}.raw`);
  }

  async #open(path: string, volume: SizedVolume, mayCreate: boolean): Promise<FileHandle> {
    try {
      return await open(path, SAFELY);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "ENOENT" || !mayCreate) throw this.#unusable(path, volume, error);
    }
    if (!isSize(volume.sizeBytes))
      throw new QemuError("storage", `volume ${volume.volumeId} has no file yet, and no size to make one with`);
    try {
      return await open(path, SAFELY | constants.O_CREAT | constants.O_EXCL, 0o600);
    } catch (error) {
      // Another host made it in this moment.
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return this.#open(path, volume, false);
      throw this.#unusable(path, volume, error);
    }
  }

  async #regular(file: FileHandle, path: string): Promise<{ readonly size: number }> {
    const facts = await file.stat();
    if (!facts.isFile()) throw new QemuError("storage", `${path} is no regular file, so it is not used as a volume`);
    return facts;
  }

  async #fill(file: FileHandle, path: string, { volumeId, sizeBytes }: SizedVolume): Promise<void> {
    if (!isSize(sizeBytes)) throw new QemuError("storage", `${path} is empty, and volume ${volumeId} has no size`);
    try {
      await file.truncate(sizeBytes);
      await file.sync();
    } catch (error) {
      const { message } = error as Error;
      throw new QemuError("storage", `${path} cannot get ${sizeBytes} bytes: ${message}`, { cause: error });
    }
  }

  #unusable(path: string, { volumeId }: SizedVolume, error: unknown): QemuError {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = {
      ELOOP: `${path} is a symbolic link, so it is not used as a volume`,
      ENXIO: `${path} is no regular file, so it is not used as a volume`,
      EISDIR: `${path} is no regular file, so it is not used as a volume`,
      ENOENT: `volume ${volumeId} has no file on this host: is ${this.#dir} there, and the same on all hosts?`,
    }[code ?? ""];
    return new QemuError("storage", why ?? `${path} cannot be opened: ${message}`, { cause: error });
  }
}

const isSize = (bytes: number): boolean => Number.isSafeInteger(bytes) && bytes > 0;
