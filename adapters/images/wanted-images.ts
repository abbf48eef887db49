import { randomUUID } from "node:crypto";
import { lstat, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Clock } from "../../runtime/clock.ts";
import { findImageFile } from "../../runtime/find-image-file.ts";
import { isSha512 } from "../../runtime/image-hash.ts";
import { type ImageKey, markName } from "../../runtime/wanted-image.ts";

/** An image whose bits hosts wait for. */
export interface WantedImage extends ImageKey {
  readonly diskFormat: string;
  /** Null if the image service does not say. */
  readonly bytes: number | null;
}

const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const WANTED = new RegExp(`^\\.(${UUID})(?:-[0-9a-f]{32})?\\.wanted$`);
/** A mark is far smaller. */
const MARK_BYTES_MAX = 4_096;
/** An api that has not touched its claim for so long is dead. */
const DEAD_CLAIM_MS = 30_000;

/**
 * The images that the directory of images lacks and hosts wait for. Their marks are files of the directory, so the apis and the hosts, which have
 * nothing else in common, share them, and they outlast every process. A mark is touched as long as an api sees it.
 */
export class WantedImages {
  readonly #dir: string;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #claims = new Set<string>();
  /** The names of marks that could not be used when they were last read. */
  #bad: ReadonlySet<string> = new Set();
  /** When the present time of another api's claim was first seen. */
  readonly #seen = new Map<string, { readonly changedAtMs: number; readonly atMs: number }>();

  constructor(dir: string, clock: Pick<Clock, "monotonic">) {
    this.#dir = dir;
    this.#clock = clock;
  }

  /** Marks an image as wanted, unless its file is there. May be repeated. */
  async want(image: WantedImage): Promise<void> {
    if ((await findImageFile(this.#dir, image, [])) !== null) return;
    const mark = this.#pathOf(image, "wanted");
    // A mark that cannot be read is written again.
    if ((await readMark(this.#dir, basename(mark)).catch(() => null)) !== null) return;
    const { id, sha512, diskFormat, bytes } = image;
    await this.#write(mark, JSON.stringify({ id, sha512, diskFormat, bytes }));
    await rm(this.#pathOf(image, "refused"), { force: true });
  }

  /**
   * The images that are wanted now. Touches their marks, so that hosts see that an api is at work. Everything with access to the directory can write a
   * mark, so one that is damaged, or belongs to another image than its name says, is skipped and not touched. Each such mark is told to `onBad` once.
   */
  async wanted(onBad: (error: Error) => void = () => undefined): Promise<readonly WantedImage[]> {
    const found: WantedImage[] = [];
    const bad = new Set<string>();
    for (const name of await readdir(this.#dir)) {
      if (!WANTED.test(name)) continue;
      try {
        const image = await readMark(this.#dir, name);
        if (image === null) continue;
        await touch(join(this.#dir, name));
        found.push(image);
      } catch (error) {
        bad.add(name);
        if (!this.#bad.has(name))
          onBad(new Error(`the mark ${name} in the directory of images is skipped: remove it`, { cause: error }));
      }
    }
    this.#bad = bad;
    return found;
  }

  /** Claims the fetching of an image for this process. False while another one has it. Repeat it to keep the claim. */
  async claim(image: ImageKey): Promise<boolean> {
    const path = this.#pathOf(image, "fetching");
    if (this.#claims.has(path)) {
      await touch(path);
      return true;
    }
    try {
      await (await open(path, "wx")).close();
      this.#claims.add(path);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (await this.#isDead(path)) await rm(path, { force: true });
    return false;
  }

  /** Ends a claim of this process. */
  async release(image: ImageKey): Promise<void> {
    const path = this.#pathOf(image, "fetching");
    if (this.#claims.delete(path)) await rm(path, { force: true });
  }

  /** The file is there: hosts wait no longer. */
  async fetched(image: ImageKey): Promise<void> {
    await rm(this.#pathOf(image, "wanted"), { force: true });
  }

  /** No host can use these bits, for this reason. */
  async refuse(image: ImageKey, reason: string): Promise<void> {
    await this.#write(this.#pathOf(image, "refused"), reason);
    await rm(this.#pathOf(image, "wanted"), { force: true });
  }

  /** The clocks of machines differ, so the time of a claim is only compared with itself. */
  async #isDead(path: string): Promise<boolean> {
    const found = await stat(path).catch(() => null);
    if (found === null) return false;
    const seen = this.#seen.get(path);
    const nowMs = this.#clock.monotonic();
    if (seen?.changedAtMs === found.mtimeMs) {
      if (nowMs - seen.atMs <= DEAD_CLAIM_MS) return false;
      this.#seen.delete(path);
      return true;
    }
    this.#seen.set(path, { changedAtMs: found.mtimeMs, atMs: nowMs });
    return false;
  }

  /** Writes a file so that readers see it whole or not at all. */
  async #write(path: string, text: string): Promise<void> {
    const part = join(this.#dir, `.${randomUUID()}.mark`);
    await writeFile(part, text, { flag: "wx", flush: true });
    await rename(part, path);
  }

  #pathOf(image: ImageKey, kind: Parameters<typeof markName>[1]): string {
    return join(this.#dir, markName(image, kind));
  }
}

/** Reads a mark. Null if it has gone. Rejects with an Error if it is not a mark of the image that its name says. */
async function readMark(dir: string, name: string): Promise<WantedImage | null> {
  const path = join(dir, name);
  const file = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (file === null) return null;
  if (!file.isFile() || file.size > MARK_BYTES_MAX) throw new Error("it is no file of a few bytes");
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  return text === null ? null : wantedOf(name, JSON.parse(text));
}

/** Each part of a mark becomes part of a file's name or a limit, so none is taken on trust. */
function wantedOf(name: string, document: unknown): WantedImage {
  const fields = (typeof document === "object" && document !== null ? document : {}) as Record<string, unknown>;
  const { id, sha512, diskFormat, bytes } = fields;
  const isKey = typeof id === "string" && (sha512 === null || (typeof sha512 === "string" && isSha512(sha512)));
  if (!isKey || id !== WANTED.exec(name)?.[1] || markName({ id, sha512 }, "wanted") !== name)
    throw new Error("it does not describe the image that its name says");
  if (typeof diskFormat !== "string") throw new Error("its diskFormat is no text");
  if (bytes !== null && !(Number.isSafeInteger(bytes) && Number(bytes) >= 0)) throw new Error("its bytes are no size");
  return { id, sha512, diskFormat, bytes: bytes === null ? null : Number(bytes) };
}

/** A file that has gone in the meantime is not touched. */
async function touch(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
}
