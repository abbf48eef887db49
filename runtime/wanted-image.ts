import { stat } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, systemClock } from "./clock.ts";
import { findImageFile, type ImageFile, nullIfMissing, uploadedName } from "./find-image-file.ts";
import { isSha512 } from "./image-hash.ts";
import { readSharedText } from "./open-shared-file.ts";

/** How often a host looks whether the file of an image is there. */
const POLL_MS = 500;
/** The apis touch the marks of the files that they are to fetch every second. A host gives up if none has for so long. */
const STALLED_MS = 120_000;
/** An api's reason is far shorter. */
const REASON_BYTES_MAX = 4_096;

/** Why the file of an image does not come, in words for the server's fault. */
export class ImageFileError extends Error {
  override readonly name = "ImageFileError";
  /** `refused`: no host can get these bits. `stalled`: no api fetches them at present. */
  readonly code: "refused" | "stalled";

  constructor(code: ImageFileError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

/** An image that is told apart from others by its id and the hash of its bits; null if the image service knows none. */
export interface ImageKey {
  readonly id: string;
  readonly sha512: string | null;
}

/**
 * The name of a file beside the images that tells about one of them: `wanted` asks the apis to fetch its bits, `refused` says why they cannot
 * be used, and `fetching` belongs to the api that fetches them.
 */
export function markName({ id, sha512 }: ImageKey, kind: "wanted" | "refused" | "fetching"): string {
  return `.${sha512 === null ? id : uploadedName(id, sha512)}.${kind}`;
}

/** Makes a call to a directory whose storage may hang. */
type Look = <Value>(call: () => Promise<Value>) => Promise<Value>;

/**
 * Finds the file of an image as `findImageFile` does, and waits for it while the apis are to fetch it. Null if there is none and nobody fetches it.
 * Rejects with an ImageFileError, with the reason of a raised signal, or with the error of a directory that cannot be read. `look` makes each of the calls to the directory.
 */
export async function awaitImageFile(
  dir: string,
  image: ImageKey,
  suffixes: readonly string[],
  {
    clock = systemClock,
    signal,
    look = (call) => call(),
  }: {
    readonly clock?: Pick<Clock, "monotonic" | "setTimer">;
    readonly signal?: AbortSignal;
    readonly look?: Look;
  } = {},
): Promise<ImageFile | null> {
  if (image.sha512 !== null && !isSha512(image.sha512)) {
    const words = "the SHA-512 that is stated for it has not 128 hexadecimal digits: register the image again";
    throw new ImageFileError("refused", `image ${image.id} cannot be used: ${words}`);
  }
  let touched = { atMs: Number.NaN, seenMs: 0 };
  for (;;) {
    // The mark is read first: it is removed after the file has got its name.
    const wantedAtMs = await look(() => changedAt(join(dir, markName(image, "wanted"))));
    const found = await look(() => findImageFile(dir, image, suffixes));
    if (found !== null) return found;
    if (wantedAtMs === null) return look(() => refuseMarked(dir, image));
    const nowMs = clock.monotonic();
    // Clocks of machines differ, so the time of the mark is only compared with itself.
    if (wantedAtMs !== touched.atMs) touched = { atMs: wantedAtMs, seenMs: nowMs };
    else if (nowMs - touched.seenMs > STALLED_MS)
      throw new ImageFileError("stalled", `no api fetches the data of image ${image.id} at present: see that one runs`);
    await paused(clock, signal);
  }
}

/** Resolves after a while, or at once when the signal is raised; then it rejects. */
async function paused(clock: Pick<Clock, "setTimer">, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve) => {
    const timer = clock.setTimer(POLL_MS, end);
    signal?.addEventListener("abort", end);
    function end(): void {
      timer.cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    }
  });
  signal?.throwIfAborted();
}

async function refuseMarked(dir: string, image: ImageKey): Promise<null> {
  const reason = await readSharedText(join(dir, markName(image, "refused")), REASON_BYTES_MAX).catch(nullIfMissing);
  if (reason === null) return null;
  throw new ImageFileError("refused", `the data of image ${image.id} cannot be used: ${reason}`);
}

async function changedAt(path: string): Promise<number | null> {
  const found = await stat(path).catch(nullIfMissing);
  return found === null ? null : found.mtimeMs;
}
