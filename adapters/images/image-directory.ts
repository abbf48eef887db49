import { createHash, randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ImageData } from "../../core/stores/api/image-store.ts";
import { type Clock, systemClock } from "../../runtime/clock.ts";
import { HEADER_BYTES, judgeHeader } from "../../runtime/disk-header.ts";
import { findImageFile, findUploadedFile, uploadedName } from "../../runtime/find-image-file.ts";
import { openSharedFile } from "../../runtime/open-shared-file.ts";

/** Why bits were not stored, in words for the caller. */
export class ImageDataError extends Error {
  override readonly name = "ImageDataError";
  /**
   * `refused`: the bits are wrong. `none`: there are no bits. `too-large`: there are too many. `broken-off`: they stopped. `full`: there is no room for them. `storage`: the
   * directory cannot take them for another reason.
   */
  readonly code: "refused" | "none" | "too-large" | "broken-off" | "full" | "storage";

  constructor(code: ImageDataError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The endings of names of files that hosts or operators put into the directory. */
const SUFFIXES = ["", ".qcow2", ".raw", ".img", ".tar.gz", ".tar.xz", ".tar"];
/** The file of an unfinished upload to which nothing was written for this long belongs to a process that has died. */
const STALE_PART_MS = 86_400_000;
/** Minimum time between two searches for such files. Uploads carry out the searches. */
const SWEEP_MS = 3_600_000;
const FULL: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);
const PART = /^\.[0-9a-f-]{36}\.[0-9a-f-]{36}\.upload$/;

/**
 * A directory with the bits of images, which the apis and the hosts share. An upload is written under a hidden name, and is renamed when it is
 * whole, checked and on disk. Its final name has its hash, so concurrent uploads to one image never write to the same file; the image's row
 * says which of them counts.
 */
export class ImageDirectory {
  readonly #dir: string;
  readonly #clock: Pick<Clock, "now">;
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  constructor(dir: string, clock: Pick<Clock, "now"> = systemClock) {
    this.#dir = dir;
    this.#clock = clock;
  }

  /** Rejects if the directory cannot be read or written. Removes what dead processes left of uploads more than a day ago. */
  async check(): Promise<void> {
    await this.#sweep();
    const probe = join(this.#dir, `.${randomUUID()}.probe`);
    await (await open(probe, "wx")).close();
    await rm(probe, { force: true });
  }

  /**
   * Stores the bits of an image. Rejects with an ImageDataError, and leaves nothing behind then. If `bytes` is a number, it is how many there must be;
   * otherwise nobody has said it.
   */
  async store(
    bits: Readable,
    image: {
      readonly id: string;
      readonly diskFormat: string;
      readonly bytesMax: number;
      readonly bytes?: number | null;
    },
  ): Promise<ImageData> {
    const part = join(this.#dir, `.${image.id}.${randomUUID()}.upload`);
    const measured = new Measurer(image.bytesMax);
    try {
      await pipeline(bits, measured, createWriteStream(part, { flags: "wx", mode: 0o640, flush: true })).catch(
        (error: NodeJS.ErrnoException) => {
          throw faultOf(error);
        },
      );
      if (this.#clock.now() - this.#sweptAtMs > SWEEP_MS) await this.#sweep().catch(throwStorage);
      // A file with the final name would be used at once, so the size is checked before.
      const stated = image.bytes ?? measured.bytes;
      if (measured.bytes < stated)
        throw new ImageDataError("broken-off", `the data ended after ${measured.bytes} of ${stated} bytes`);
      if (measured.bytes > stated)
        throw new ImageDataError("refused", `there are ${measured.bytes} bytes instead of ${stated}`);
      if (measured.bytes === 0) throw new ImageDataError("none", "there are no bits");
      const judged = judgeHeader(measured.header, image.diskFormat);
      if ("refused" in judged) throw new ImageDataError("refused", judged.refused);
      const hashes = measured.hashes();
      await this.#keep(part, uploadedName(image.id, hashes.sha512)).catch(throwStorage);
      return { bytes: measured.bytes, ...hashes, virtualBytes: judged.virtualBytes };
    } finally {
      await rm(part, { force: true });
    }
  }

  /**
   * Opens the file of an image for reading: the uploaded one with this hash, and no other, or if the image service knows no hash, whichever file
   * there is of the image. Null if there is none. The stream ends after `bytes`, even if the file grows. Rejects if it is not a file of this directory but a
   * symbolic link, which every host can make.
   */
  async read(id: string, sha512: string | null): Promise<{ readonly bits: Readable; readonly bytes: number } | null> {
    const found =
      sha512 === null
        ? await findImageFile(this.#dir, { id, sha512 }, SUFFIXES)
        : await findUploadedFile(this.#dir, { id, sha512 });
    if (found === null) return null;
    const file = await openSharedFile(found.path);
    try {
      const { size: bytes } = await file.stat();
      if (bytes > 0) return { bits: file.createReadStream({ end: bytes - 1 }), bytes };
    } catch (error) {
      await file.close();
      throw error;
    }
    await file.close();
    return { bits: Readable.from([]), bytes: 0 };
  }

  /** Removes the bits of an upload that does not count. Does nothing if there are none. */
  async discard(id: string, sha512: string): Promise<void> {
    await rm(join(this.#dir, uploadedName(id, sha512)), { force: true });
  }

  /**
   * Gives the file that a host has made of an image the name of an upload with this hash, so that it is found as such. Does nothing if there is no such
   * file.
   */
  async adopt(id: string, sha512: string): Promise<void> {
    const found = await findImageFile(this.#dir, { id, sha512 }, SUFFIXES);
    const name = uploadedName(id, sha512);
    if (found !== null && found.path !== join(this.#dir, name)) await this.#keep(found.path, name);
  }

  /** Removes all files of an image. Does nothing if there are none. */
  async remove(id: string): Promise<void> {
    for (const name of await readdir(this.#dir))
      if (name.startsWith(id) && /^(?:-[0-9a-f]{32}|\.[a-z0-9.]+)?$/.test(name.slice(id.length)))
        await rm(join(this.#dir, name), { force: true });
  }

  async #sweep(): Promise<void> {
    const nowMs = this.#clock.now();
    this.#sweptAtMs = nowMs;
    for (const name of await readdir(this.#dir)) {
      if (!PART.test(name)) continue;
      const path = join(this.#dir, name);
      const part = await stat(path).catch(() => null);
      if (part !== null && nowMs - part.mtimeMs > STALE_PART_MS) await rm(path, { force: true });
    }
  }

  /** Gives an upload that is whole its name. Resolves when the name is on disk. */
  async #keep(part: string, name: string): Promise<void> {
    await rename(part, join(this.#dir, name));
    const dir = await open(this.#dir);
    await dir.sync().finally(() => dir.close());
  }
}

/** Counts and hashes the bytes that pass, and keeps the first ones. */
class Measurer extends Transform {
  readonly #bytesMax: number;
  readonly #md5 = createHash("md5");
  readonly #sha512 = createHash("sha512");
  header = Buffer.alloc(0);
  bytes = 0;

  constructor(bytesMax: number) {
    super();
    this.#bytesMax = bytesMax;
  }

  override _transform(chunk: Buffer, _encoding: string, done: (error: Error | null, chunk?: Buffer) => void): void {
    this.bytes += chunk.length;
    if (this.bytes > this.#bytesMax) {
      done(new ImageDataError("too-large", `there are more than ${this.#bytesMax} bytes`));
      return;
    }
    if (this.header.length < HEADER_BYTES) this.header = Buffer.concat([this.header, chunk]).subarray(0, HEADER_BYTES);
    this.#md5.update(chunk);
    this.#sha512.update(chunk);
    done(null, chunk);
  }

  hashes(): { readonly md5: string; readonly sha512: string } {
    return { md5: this.#md5.digest("hex"), sha512: this.#sha512.digest("hex") };
  }
}

/** Distinguishes errors of the caller's connection, whose system call is `read` or none, from errors of the directory. */
function faultOf(error: NodeJS.ErrnoException): ImageDataError {
  if (error instanceof ImageDataError) return error;
  if (error.syscall === undefined || error.syscall === "read")
    return new ImageDataError("broken-off", `the upload broke off: ${error.message}`, { cause: error });
  return throwStorage(error);
}

function throwStorage(error: NodeJS.ErrnoException): never {
  if (FULL.has(error.code ?? ""))
    throw new ImageDataError("full", "the directory of images has no room for them", { cause: error });
  // The caller is told no path of the api's machine.
  throw new ImageDataError("storage", `the directory of images does not take them (${error.code})`, { cause: error });
}
