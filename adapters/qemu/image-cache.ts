import { createHash, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { findImageFile, isKnownContent, nullIfMissing } from "../../runtime/find-image-file.ts";
import { openSharedFile } from "../../runtime/open-shared-file.ts";
import { SilentStorageError, StorageGate } from "../../runtime/storage-gate.ts";
import { unlessAborted } from "../../runtime/unless-aborted.ts";
import { awaitImageFile, ImageFileError } from "../../runtime/wanted-image.ts";
import { type ImageFacts, type ImageFormat, inspectImage } from "./disk-image.ts";
import { QemuError } from "./qemu-error.ts";

/** An image that guests' disks can be built on. It never changes. */
export interface BaseImage extends ImageFacts {
  readonly path: string;
  readonly sha512: string;
}

/** The cloud's facts about an image. An image that differs from them is refused. */
export interface ExpectedImage {
  readonly id: string;
  readonly format: ImageFormat | null;
  readonly sha512: string | null;
}

/** The record that is stored beside a cached image, so that the image need not be read again. */
interface Entry extends BaseImage {
  readonly source: { readonly bytes: number; readonly changedAtMs: number };
  /** Whether the cloud knows this content as the image's (see `isKnownContent`). Absent in the record of an earlier version. */
  readonly isKnown?: boolean;
  /** The copy when its content was last known to be right. Absent in the record of an earlier version. */
  readonly mark?: FileMark | undefined;
}

/**
 * What changes with any write to a file, and with its replacement, whatever times the writer gives it. Hosts that share the file may know it by different inodes, which earlier
 * versions compare.
 */
interface FileMark {
  readonly bytes: number;
  readonly inode: number;
  readonly changedAtMs: number;
}

/** A copy of an image whose content is not what it was when it was checked. */
export interface DamagedCopy {
  readonly imageId: string;
  readonly path: string;
}

/** The ways to the directory of images and to that of the copies, which may hang. */
export type ImageStorage = Readonly<Record<"source" | "copies", StorageGate>>;

/** The file of an image in the directory of images. */
type Source = Entry["source"] & { readonly path: string; readonly format: ImageFormat | null };

/** How many images are copied, or read for their hash, at a time. Each may hang with two threads of this process. */
const COPYING_MAX = 4;
/** The threads of this process that may hang with images that are copied or read. */
export const COPYING_THREADS = 2 * COPYING_MAX;

/** Characters of the content's hash in the name of a copy. */
const HASH_LENGTH = 32;

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/;
/** The endings of files that operators name by the image's id, and what they tell about the format. */
const SUFFIXES: ReadonlyMap<string, ImageFormat | null> = new Map<string, ImageFormat | null>([
  ["", null],
  [".qcow2", "qcow2"],
  [".raw", "raw"],
  [".img", null],
]);

/**
 * Copies of images in a directory of the host, made from a directory into which the Image API stores uploads, and operators put images under their ids. A copy is checked once,
 * before the first guest is built on it, and has its content's hash in its name, so that a changed source cannot change the base of
 * existing guests. A copy that was written to since is checked again, before a guest is built on it and before a guest that was built on it is booted, and made again if its
 * content has changed or cannot be read.
 */
export class ImageCache {
  readonly #sourceDir: string;
  readonly #dir: string;
  readonly #onDamaged: (copy: DamagedCopy) => void;
  readonly #storage: ImageStorage;
  /** The reading of whole images: how long it takes says nothing. */
  readonly #reading = new StorageGate({
    ...{ name: "the reading of images", callsMax: COPYING_MAX, slowMax: COPYING_MAX },
  });
  /** Images that builds wait for, with the number of these builds. */
  readonly #fetching = new Map<
    string,
    { readonly image: Promise<BaseImage>; readonly end: AbortController; waiting: number }
  >();

  /** Bases of guests that are being checked, by their hashes. */
  readonly #checks = new Map<string, Promise<void>>();
  /** The damaged copies of which the operator has been told, each with the time of the change. */
  readonly #told = new Set<string>();

  constructor(options: {
    readonly sourceDir: string;
    readonly dir: string;
    /** Called for each copy that is found damaged. Guests that were built on it read from it. */
    readonly onDamaged?: ((copy: DamagedCopy) => void) | undefined;
    readonly storage?: Partial<ImageStorage>;
  }) {
    this.#sourceDir = options.sourceDir;
    this.#dir = options.dir;
    this.#onDamaged = options.onDamaged ?? (() => undefined);
    const { sourceDir, dir, storage } = options;
    this.#storage = {
      source: storage?.source ?? new StorageGate({ name: `the directory of images ${sourceDir}` }),
      copies: storage?.copies ?? new StorageGate({ name: `the directory of copied images ${dir}` }),
    };
  }

  /**
   * The image, copied if necessary. When its file is gone from the source directory, the copy that was made from it serves on, because the
   * servers of a deleted image are still rebuilt, resized and moved. Rejects with a QemuError; a final one when no host could use the image, which a file
   * whose content the cloud does not know never tells.
   * After its signal is raised it rejects at once. The fetching ends when no other build waits for the image.
   */
  image(expected: ExpectedImage, signal: AbortSignal): Promise<BaseImage> {
    if (!ID.test(expected.id))
      return Promise.reject(
        new QemuError("image", `"${expected.id.slice(0, 100)}" is not the id of an image`, { isFinal: true }),
      );
    const key = `${expected.id} ${expected.format} ${expected.sha512}`;
    const running = this.#fetching.get(key) ?? this.#begin(key, expected);
    running.waiting += 1;
    return unlessAborted(running.image, signal).finally(() => {
      running.waiting -= 1;
      if (running.waiting > 0) return;
      if (this.#fetching.get(key) === running) this.#fetching.delete(key);
      running.end.abort(new Error("no build waits for the image"));
    });
  }

  /**
   * Checks the copy with this content on which a guest is built, if anything has written to it since it was checked last, and makes it again if its content has changed. Rejects with
   * a QemuError if that cannot be done: the guest would read another disk than it has written to. After its signal is raised it rejects at once, and the check goes on for the next
   * call. A base that is not in this directory is left to QEMU.
   */
  checkBase(sha512: string, signal: AbortSignal): Promise<void> {
    let check = this.#checks.get(sha512);
    if (check === undefined) {
      check = this.#checkBase(sha512).finally(() => this.#checks.delete(sha512));
      check.catch(() => undefined);
      this.#checks.set(sha512, check);
    }
    return unlessAborted(check, signal);
  }

  /**
   * Whether the copy at this path has, as it is now, the content that the cloud knows as the image's. Then whatever is wrong with it is wrong on every host. It is read as a
   * whole; a copy that cannot be read is none.
   */
  async isAsKnown({ id, sha512 }: ExpectedImage, path: string, signal: AbortSignal): Promise<boolean> {
    const known = await this.#storage.copies.look(() => this.#known(id).catch(() => null));
    const entry = known?.[0];
    if (entry?.path !== path || !(sha512 === null ? entry.isKnown === true : entry.sha512 === sha512)) return false;
    return this.#has(path, entry.sha512, signal);
  }

  async #checkBase(sha512: string): Promise<void> {
    const ending = `-${sha512.slice(0, HASH_LENGTH)}`;
    const names = await this.#storage.copies.look(() => readdir(this.#dir).catch(nullIfMissing));
    for (const name of names ?? []) {
      if (!name.endsWith(ending)) continue;
      const [id, path] = [name.slice(0, -ending.length), join(this.#dir, name)];
      if (await this.#isIntact(id, path, sha512)) continue;
      try {
        await this.image({ id, format: null, sha512 }, NEVER);
      } catch (error) {
        const { message } = error as Error;
        throw new QemuError(
          "image",
          `the guest's disk is built on ${path}, which was changed or cannot be read on this host, and it cannot be made again: ${message}`,
          { cause: error },
        );
      }
    }
  }

  /** Whether a copy has this content still. The index tells only of the latest copy of each image, so the others have marks of their own. */
  async #isIntact(id: string, path: string, sha512: string): Promise<boolean> {
    const known = await this.#storage.copies.look(() => this.#known(id).catch(() => null));
    if (known?.[0].path === path) return (await this.#entry(id, NEVER)) !== null;
    const marked = `${path}.mark`;
    const [mark, kept] = await this.#storage.copies.look(() =>
      Promise.all([markOf(path), readFile(marked, "utf8").catch(() => null)]),
    );
    if (kept !== null && isSame(mark, markIn(kept))) return true;
    if (!(await this.#has(path, sha512, NEVER))) {
      this.#tellDamaged(id, path, mark);
      return false;
    }
    // Without it, the copy is read again the next time.
    await this.#storage.copies.look(() => writeFile(marked, JSON.stringify(mark))).catch(() => undefined);
    return true;
  }

  #begin(key: string, expected: ExpectedImage) {
    const end = new AbortController();
    const running = { image: this.#find(expected, end.signal), end, waiting: 0 };
    this.#fetching.set(key, running);
    return running;
  }

  async #find(expected: ExpectedImage, signal: AbortSignal): Promise<BaseImage> {
    const image = await this.#current(expected, signal);
    if (expected.sha512 !== null && image.sha512 !== expected.sha512) throw otherContent(expected.id);
    if (expected.format !== null && image.format !== expected.format) {
      const words = `it was declared as ${expected.format}, but its content is ${image.format}`;
      const isFinal = expected.sha512 !== null || image.isKnown === true;
      throw new QemuError("image", `image ${expected.id} cannot be used: ${words}`, { isFinal });
    }
    const { path, format, virtualBytes, sha512 } = image;
    return { path, format, virtualBytes, sha512 };
  }

  async #current(expected: ExpectedImage, signal: AbortSignal): Promise<Entry> {
    const { id, sha512 } = expected;
    const entry = await this.#entry(id, signal);
    const source = await this.#source(expected, { copy: entry, signal });
    if (source === null) {
      // A copy with another hash than the image service states is of an earlier file.
      if (entry !== null && (sha512 === null || sha512 === entry.sha512)) return entry;
      const words = (await this.#isDamaged(id)) ? "only a copy of it that was changed or cannot be read, and " : "";
      throw new QemuError(
        "image",
        `this host has ${words}no file of image ${id}: copy the image into its directory of images`,
      );
    }
    const isCurrent = entry?.source.bytes === source.bytes && entry.source.changedAtMs === source.changedAtMs;
    return isCurrent ? entry : await this.#reading.look(() => this.#copy(expected, source, signal), { isSlow: true });
  }

  /** Null when the directory of images has no file of the image. A file that the apis are to fetch is awaited, unless there is a copy. */
  async #source(
    image: ExpectedImage,
    { copy, signal }: { readonly copy: Entry | null; readonly signal: AbortSignal },
  ): Promise<Source | null> {
    const isCopied = copy !== null && (image.sha512 === null || image.sha512 === copy.sha512);
    const suffixes = [...SUFFIXES.keys()];
    // The file may be awaited for minutes, in which each look is a call of its own.
    const look = <Value>(call: () => Promise<Value>) => this.#storage.source.look(call);
    const finding = isCopied
      ? look(() => findImageFile(this.#sourceDir, image, suffixes))
      : awaitImageFile(this.#sourceDir, image, suffixes, { signal, look });
    const found = await finding.catch((error: unknown) => {
      if (!(error instanceof ImageFileError)) throw error;
      throw new QemuError("image", error.message, { isFinal: error.code === "refused", cause: error });
    });
    return found === null ? null : { ...found, format: SUFFIXES.get(found.suffix) ?? null };
  }

  /** The copy of an image. Null if there is none, or if its content has changed or cannot be read: it is copied again then. */
  async #entry(id: string, signal: AbortSignal): Promise<Entry | null> {
    let entry: Entry;
    let mark: FileMark;
    try {
      [entry, mark] = await this.#storage.copies.look(() => this.#known(id));
    } catch (error) {
      if (error instanceof SilentStorageError) throw error;
      return null;
    }
    if (isSame(mark, entry.mark)) return entry;
    if (!(await this.#has(entry.path, entry.sha512, signal))) {
      this.#tellDamaged(id, entry.path, mark);
      return null;
    }
    const known = { ...entry, mark };
    // On a disk that is full, the copy is read again the next time.
    await this.#storage.copies.look(() => this.#record(id, known)).catch(() => undefined);
    return known;
  }

  /** Whether the image's only copy is one that was found damaged. */
  async #isDamaged(id: string): Promise<boolean> {
    const known = await this.#storage.copies.look(() => this.#known(id).catch(() => null));
    return known !== null && this.#told.has(nameOf(known[0].path, known[1]));
  }

  /** Once for each change: without a file of the image, every build finds it again. */
  #tellDamaged(imageId: string, path: string, mark: FileMark): void {
    const name = nameOf(path, mark);
    if (this.#told.has(name)) return;
    this.#told.add(name);
    this.#onDamaged({ imageId, path });
  }

  /** Whether a file has this content. One that cannot be read has not, as after an error of the disk: it can be made again. Rejects when the signal is raised. */
  async #has(path: string, sha512: string, signal: AbortSignal): Promise<boolean> {
    try {
      return (await this.#reading.look(() => sha512Of(path, signal), { isSlow: true })) === sha512;
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  async #known(id: string): Promise<[Entry, FileMark]> {
    const entry = JSON.parse(await readFile(this.#indexOf(id), "utf8")) as Entry;
    return [entry, await markOf(entry.path)];
  }

  async #copy(expected: ExpectedImage, source: Source, signal: AbortSignal): Promise<Entry> {
    const { id } = expected;
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    const copy = join(this.#dir, `.new-${randomUUID()}`);
    const hash = createHash("sha512");
    const hashing = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        hash.update(chunk);
        done(null, chunk);
      },
    });
    try {
      // Each host that has the directory can write to it.
      const read = await openSharedFile(source.path).catch((error: Error) => {
        throw new QemuError("image", `image ${id} cannot be read: ${error.message}`, { cause: error });
      });
      const written = createWriteStream(copy, { mode: 0o400, flush: true });
      await pipeline(read.createReadStream(), hashing, written, { signal });
      const sha512 = hash.digest("hex");
      if (expected.sha512 !== null && sha512 !== expected.sha512) throw otherContent(id);
      const isKnown = isKnownContent(expected, { path: source.path, sha512 });
      const facts = await inspectImage(copy, source.format).catch((error: unknown) => {
        if (!(error instanceof QemuError)) throw error;
        const isFinal = error.isFinal && isKnown;
        throw new QemuError(error.code, `image ${id}: ${error.message}`, { isFinal, cause: error });
      });
      const path = join(this.#dir, `${id}-${sha512.slice(0, HASH_LENGTH)}`);
      await rename(copy, path);
      const { bytes, changedAtMs } = source;
      const entry = { path, ...facts, sha512, isKnown, source: { bytes, changedAtMs }, mark: await markOf(path) };
      await this.#record(id, entry);
      return entry;
    } finally {
      await rm(copy, { force: true });
    }
  }

  async #record(id: string, entry: Entry): Promise<void> {
    const index = `${this.#indexOf(id)}.${randomUUID()}`;
    await writeFile(index, JSON.stringify(entry));
    await rename(index, this.#indexOf(id));
  }

  #indexOf(id: string): string {
    return join(this.#dir, `${id}.json`);
  }
}

const NEVER = new AbortController().signal;

const otherContent = (id: string): QemuError =>
  new QemuError(
    "image",
    `the file of image ${id} on this host has another SHA-512 than the image service states: copy the image to the host again`,
  );

const nameOf = (path: string, { bytes, changedAtMs }: FileMark): string => `${path} ${bytes} ${changedAtMs}`;

const isSame = (mark: FileMark, known: FileMark | null | undefined): boolean =>
  mark.bytes === known?.bytes && mark.changedAtMs === known.changedAtMs;

/** Null for a text that is no mark, as after a crash. */
function markIn(text: string): FileMark | null {
  try {
    return JSON.parse(text) as FileMark;
  } catch {
    return null;
  }
}

async function markOf(path: string): Promise<FileMark> {
  const { size: bytes, ino: inode, ctimeMs: changedAtMs } = await stat(path);
  return { bytes, inode, changedAtMs };
}

async function sha512Of(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha512");
  await pipeline(createReadStream(path), hash, { signal });
  return hash.digest("hex");
}
