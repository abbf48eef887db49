import { randomUUID } from "node:crypto";
import { lutimes, open, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Clock } from "../../runtime/clock.ts";
import { findImageFile } from "../../runtime/find-image-file.ts";
import { type ImageKey, markName } from "../../runtime/wanted-image.ts";
import { isWantedMark, readMark, sealedMark, type WantedImage } from "./image-mark.ts";

/** An api that has not touched its claim for so long is dead. */
const DEAD_CLAIM_MS = 30_000;

/**
 * The images that the directory of images lacks and hosts wait for. Their marks are files of the directory, so the apis and the hosts, which have
 * nothing else in common, share them, and they outlast every process. A mark is touched as long as an api sees it. Only apis write marks, which they seal with
 * their key, since what a mark names is fetched in their name.
 */
export class WantedImages {
  readonly #dir: string;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #key: Uint8Array;
  readonly #claims = new Set<string>();
  /** The names of marks that could not be used when they were last read. */
  #bad: ReadonlySet<string> = new Set();
  /** When the present time of another api's claim was first seen. */
  readonly #seen = new Map<string, { readonly changedAtMs: number; readonly atMs: number }>();

  /** `key` is that of the marks' seals, which all apis of a cloud share. */
  constructor(dir: string, clock: Pick<Clock, "monotonic">, key: Uint8Array) {
    this.#dir = dir;
    this.#clock = clock;
    this.#key = key;
  }

  /** Marks an image as wanted, unless its file is there. May be repeated. */
  async want(image: WantedImage): Promise<void> {
    if ((await findImageFile(this.#dir, image, [])) !== null) return;
    const mark = this.#pathOf(image, "wanted");
    // A mark that cannot be read, or has no seal, is written again.
    if ((await readMark(this.#dir, basename(mark), this.#key).catch(() => null)) !== null) return;
    await this.#write(mark, sealedMark(image, this.#key));
    await rm(this.#pathOf(image, "refused"), { force: true });
  }

  /**
   * The images that are wanted now. Touches their marks, so that hosts see that an api is at work. Everything with access to the directory can write a
   * mark, so one that is damaged, has no seal, or belongs to another image than its name says, is skipped and not touched. Each such mark is told to `onBad` once.
   */
  async wanted(onBad: (error: Error) => void = () => undefined): Promise<readonly WantedImage[]> {
    const found: WantedImage[] = [];
    const bad = new Set<string>();
    for (const name of await readdir(this.#dir)) {
      if (!isWantedMark(name)) continue;
      try {
        const image = await readMark(this.#dir, name, this.#key);
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

/** Does nothing if the file has gone in the meantime. If a host has put a symbolic link in its place, only the link itself is touched. */
async function touch(path: string): Promise<void> {
  const now = new Date();
  await lutimes(path, now, now).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
}
