import { createHmac, timingSafeEqual } from "node:crypto";
import { join } from "node:path";
import { nullIfMissing } from "../../runtime/find-image-file.ts";
import { isSha512 } from "../../runtime/image-hash.ts";
import { readSharedText } from "../../runtime/open-shared-file.ts";
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

/** Whether a file of the directory of images is named as the mark of a wanted image. */
export function isWantedMark(name: string): boolean {
  return WANTED.test(name);
}

/**
 * The content of the mark of a wanted image, with a seal (HMAC-SHA-256) that only a holder of the apis' key can make: an api fetches what a mark names in its own name,
 * and every host can write to the directory. An older api ignores the seal.
 */
export function sealedMark(image: WantedImage, key: Uint8Array): string {
  const { id, sha512, diskFormat, bytes } = image;
  return JSON.stringify({ id, sha512, diskFormat, bytes, seal: sealOf(image, key).toString("hex") });
}

/**
 * Reads a mark. Null if it has gone. Rejects with an Error if it is not a mark of the image that its name says, or has no seal by this key. A host may put an earlier
 * mark back, but every image that had one was in the directory for it to read.
 */
export async function readMark(dir: string, name: string, key: Uint8Array): Promise<WantedImage | null> {
  const text = await readSharedText(join(dir, name), MARK_BYTES_MAX).catch(nullIfMissing);
  return text === null ? null : wantedOf(name, JSON.parse(text), key);
}

/** Each part of a mark becomes part of a file's name or a limit, so none is taken on trust. */
function wantedOf(name: string, document: unknown, key: Uint8Array): WantedImage {
  const fields = (typeof document === "object" && document !== null ? document : {}) as Record<string, unknown>;
  const { id, sha512, diskFormat, bytes } = fields;
  const isKey = typeof id === "string" && (sha512 === null || (typeof sha512 === "string" && isSha512(sha512)));
  if (!isKey || id !== WANTED.exec(name)?.[1] || markName({ id, sha512 }, "wanted") !== name)
    throw new Error("it does not describe the image that its name says");
  if (typeof diskFormat !== "string") throw new Error("its diskFormat is no text");
  if (bytes !== null && !(Number.isSafeInteger(bytes) && Number(bytes) >= 0)) throw new Error("its bytes are no size");
  const image = { id, sha512, diskFormat, bytes: bytes === null ? null : Number(bytes) };
  if (!isSealed(image, fields.seal, key))
    throw new Error(
      "it has no seal of an api of this cloud: an api of an older version has written it, or something that is no api has",
    );
  return image;
}

function isSealed(image: WantedImage, seal: unknown, key: Uint8Array): boolean {
  const expected = sealOf(image, key);
  const given = Buffer.from(typeof seal === "string" ? seal : "", "hex");
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function sealOf({ id, sha512, diskFormat, bytes }: WantedImage, key: Uint8Array): Buffer {
  return createHmac("sha256", key)
    .update(JSON.stringify([id, sha512, diskFormat, bytes]))
    .digest();
}
