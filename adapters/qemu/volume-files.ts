import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { StorageGate } from "../../runtime/storage-gate.ts";
import { mountedFile, type VolumeFile } from "./mounted-volumes.ts";
import { QemuError } from "./qemu-error.ts";
import { withBacking } from "./volume-chain.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** A symbolic link is not followed, and opening a pipe does not wait for its writer. */
const SAFELY = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The parts of a volume that decide about its file. `sizeBytes` is 0 when nobody knows the size. */
export interface SizedVolume {
  readonly volumeId: string;
  readonly sizeBytes: number;
  /** A volume of Cinder, and how this host reaches it. Absent for one of Berth's own. */
  readonly inCinder?: boolean;
  readonly connection?: string;
}

/**
 * The files of volumes: those of Berth's own in one directory, and those of Cinder below another one (`mountedFile`). All hosts between which servers
 * with volumes move share them. The directories are never created here, so that a file system that is not mounted is noticed. No file is ever
 * removed or truncated.
 */
export class VolumeFiles {
  readonly #dir: string | null;
  readonly #mounts: string | null;
  readonly #storage: Readonly<Record<"own" | "mounts", StorageGate>>;

  /** `storage` are the ways to both directories, which may hang. */
  constructor(
    dirs: { readonly own: string | null; readonly mounts: string | null },
    storage: Partial<Readonly<Record<"own" | "mounts", StorageGate>>> = {},
  ) {
    this.#dir = dirs.own;
    this.#mounts = dirs.mounts;
    this.#storage = {
      own: storage.own ?? new StorageGate({ name: `the directory of volumes ${dirs.own}` }),
      mounts: storage.mounts ?? new StorageGate({ name: `the directory of Cinder's exports ${dirs.mounts}` }),
    };
  }

  /**
   * The file of a volume. One of Cinder is never made, enlarged or measured here, and refers to no files but its own. Waits for a storage that does not answer.
   */
  async fileOf(volume: SizedVolume, may: { readonly mayCreate: boolean }): Promise<VolumeFile> {
    if (volume.inCinder !== true) return { path: await this.ensure(volume, may), format: "raw" };
    const file = mountedFile(volume.volumeId, volume.connection ?? "", this.#mounts);
    return this.#storage.mounts.work(() => withBacking(file, (path) => this.#openRegular(path, volume)));
  }

  /**
   * The path of an own volume's file, which has at least the volume's size when this resolves. With `mayCreate` a missing file is made, sparse and
   * readable for this user alone. Rejects with a QemuError if the file is missing otherwise, is smaller than the volume, or is no regular file.
   */
  async ensure(volume: SizedVolume, { mayCreate }: { readonly mayCreate: boolean }): Promise<string> {
    const path = this.#pathOf(volume.volumeId);
    return this.#storage.own.work(() => this.#ensureAt(path, volume, mayCreate));
  }

  async #ensureAt(path: string, volume: SizedVolume, mayCreate: boolean): Promise<string> {
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
    if (this.#dir === null)
      throw new QemuError("unavailable", "this host has no directory of volumes: give its agent --volume-dir");
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

  async #openRegular(path: string, volume: SizedVolume): Promise<FileHandle> {
    const file = await this.#open(path, volume, false);
    try {
      await this.#regular(file, path);
      return file;
    } catch (error) {
      await file.close();
      throw error;
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

  #unusable(path: string, { volumeId, inCinder }: SizedVolume, error: unknown): QemuError {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = {
      ELOOP: `${path} is a symbolic link, so it is not used as a volume`,
      ENXIO: `${path} is no regular file, so it is not used as a volume`,
      EISDIR: `${path} is no regular file, so it is not used as a volume`,
      ENOENT:
        inCinder === true
          ? `volume ${volumeId} has no file ${path} on this host: is Cinder's export mounted at ${dirname(path)}?`
          : `volume ${volumeId} has no file on this host: is ${this.#dir} there, and the same on all hosts?`,
    }[code ?? ""];
    return new QemuError("storage", why ?? `${path} cannot be opened: ${message}`, { cause: error });
  }
}

/** The files of a host with these directories, or null for a host that has neither. */
export function volumeFilesOf(
  dirs: {
    readonly volumeDir?: string | undefined;
    readonly volumeMounts?: string | undefined;
  },
  storage: ConstructorParameters<typeof VolumeFiles>[1] = {},
): VolumeFiles | null {
  const [own, mounts] = [dirs.volumeDir ?? null, dirs.volumeMounts ?? null];
  return own === null && mounts === null ? null : new VolumeFiles({ own, mounts }, storage);
}

const isSize = (bytes: number): boolean => Number.isSafeInteger(bytes) && bytes > 0;
