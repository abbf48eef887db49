import { createHash, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ImageData } from "../../core/stores/api/image-store.ts";
import { findImageFile, uploadedName } from "../../runtime/find-image-file.ts";
import { HEADER_BYTES, judgeHeader } from "./disk-header.ts";

/** Why bits were not stored, in words for the caller. */
export class ImageDataError extends Error {
  override readonly name = "ImageDataError";
  /** `refused`: the bits are wrong. `too-large`: there are too many. `broken-off`: they stopped. `storage`: the directory cannot take them. */
  readonly code: "refused" | "too-large" | "broken-off" | "storage";

  constructor(code: ImageDataError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The endings of names of files that hosts or operators put into the directory. */
const SUFFIXES = ["", ".qcow2", ".raw", ".img", ".tar.gz", ".tar.xz", ".tar"];
/** A part of an upload that nothing was written to for so long belongs to a process that has died. */
const STALE_PART_MS = 86_400_000;
const PART = /^\.[0-9a-f-]{36}\.[0-9a-f-]{36}\.upload$/;

/**
 * A directory with the bits of images, which the apis and the hosts share. An upload is written under a hidden name, and is renamed when it is
 * whole, checked and on disk. Its final name has its hash, so concurrent uploads to one image never write to the same file; the image's row
 * says which of them counts.
 */
export class ImageDirectory {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Rejects if the directory cannot be read or written. Removes what dead processes left of uploads more than a day ago. */
  async check(nowMs: number): Promise<void> {
    for (const name of await readdir(this.#dir)) {
      if (!PART.test(name)) continue;
      const path = join(this.#dir, name);
      const part = await stat(path).catch(() => null);
      if (part !== null && nowMs - part.mtimeMs > STALE_PART_MS) await rm(path, { force: true });
    }
    const probe = join(this.#dir, `.${randomUUID()}.probe`);
    await (await open(probe, "wx")).close();
    await rm(probe, { force: true });
  }

  /** Stores the bits of an image. Rejects with an ImageDataError, and leaves nothing behind then. */
  async store(
    bits: Readable,
    image: { readonly id: string; readonly diskFormat: string; readonly bytesMax: number },
  ): Promise<ImageData> {
    const part = join(this.#dir, `.${image.id}.${randomUUID()}.upload`);
    const measured = new Measurer(image.bytesMax);
    try {
      await pipeline(bits, measured, createWriteStream(part, { flags: "wx", mode: 0o640, flush: true })).catch(
        (error: NodeJS.ErrnoException) => {
          throw faultOf(error);
        },
      );
      if (measured.bytes === 0) throw new ImageDataError("refused", "there are no bits");
      const judged = judgeHeader(measured.header, image.diskFormat);
      if ("refused" in judged) throw new ImageDataError("refused", judged.refused);
      const hashes = measured.hashes();
      await rename(part, join(this.#dir, uploadedName(image.id, hashes.sha512)));
      await this.#sync();
      return { bytes: measured.bytes, ...hashes, virtualBytes: judged.virtualBytes };
    } finally {
      await rm(part, { force: true });
    }
  }

  /** Opens the file of an image for reading. Null if there is none. */
  async read(id: string, sha512: string | null): Promise<{ readonly bits: Readable; readonly bytes: number } | null> {
    const found = await findImageFile(this.#dir, { id, sha512 }, SUFFIXES);
    return found === null ? null : { bits: createReadStream(found.path), bytes: found.bytes };
  }

  /** Removes the bits of an upload that does not count. Does nothing if there are none. */
  async discard(id: string, sha512: string): Promise<void> {
    await rm(join(this.#dir, uploadedName(id, sha512)), { force: true });
  }

  async #sync(): Promise<void> {
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

/** An error of the caller's connection has no path; one of the directory has. */
function faultOf(error: NodeJS.ErrnoException): ImageDataError {
  if (error instanceof ImageDataError) return error;
  const cause = { cause: error };
  if (error.path === undefined && error.syscall !== "write")
    return new ImageDataError("broken-off", `the upload broke off: ${error.message}`, cause);
  return new ImageDataError("storage", `the directory of images does not take them: ${error.message}`, cause);
}
