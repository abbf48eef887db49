import { readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { isSha512 } from "./image-hash.ts";

/** An image's file in a directory of images. */
export interface ImageFile {
  readonly path: string;
  /** The ending of its name, as given; the empty one for bits that the Image API stored. */
  readonly suffix: string;
  readonly bytes: number;
  readonly changedAtMs: number;
}

/** Characters of the hash in the name of an uploaded file. */
const HASH_LENGTH = 32;
const HASH = new RegExp(`^[0-9a-f]{${HASH_LENGTH}}$`);

/**
 * The name of the file with an image's uploaded bits. It has their hash, so that two uploads to one image do not write the same file. Throws an Error
 * for a text that is no hash, so that nobody can name a file elsewhere.
 */
export function uploadedName(id: string, sha512: string): string {
  if (!isSha512(sha512)) throw new Error(`the SHA-512 that is stated for image ${id} has not 128 hexadecimal digits`);
  return `${id}-${sha512.slice(0, HASH_LENGTH)}`;
}

/**
 * Whether bits with this hash, which were read from a file of an image, are those that the cloud knows: the image service states the hash, or the Image API, which names the files
 * that it has written by their hash, has stored them. Other files may differ from host to host.
 */
export function isKnownContent(
  { id, sha512: stated }: { readonly id: string; readonly sha512: string | null },
  read: { readonly path: string; readonly sha512: string },
): boolean {
  return stated === null ? basename(read.path) === uploadedName(id, read.sha512) : read.sha512 === stated;
}

/**
 * Finds the file of an image: the uploaded one with this hash, or else one that is named by the image's id and one of the suffixes. If the
 * hash is unknown, the only uploaded file is taken, and none of several: all but one are of uploads that failed at their last step. Null if there
 * is none. Rejects with the error of a directory that cannot be read: its files are not missing.
 */
export async function findImageFile(
  dir: string,
  { id, sha512 }: { readonly id: string; readonly sha512: string | null },
  suffixes: readonly string[],
): Promise<ImageFile | null> {
  const uploaded = sha512 === null ? null : await findUploadedFile(dir, { id, sha512 });
  if (uploaded !== null) return uploaded;
  for (const suffix of suffixes) {
    const found = await fileAt(dir, `${id}${suffix}`, suffix);
    if (found !== null) return found;
  }
  return sha512 === null ? await onlyUpload(dir, id) : null;
}

/** Finds the file of an image's uploaded bits with this hash. */
export async function findUploadedFile(
  dir: string,
  { id, sha512 }: { readonly id: string; readonly sha512: string },
): Promise<ImageFile | null> {
  return fileAt(dir, uploadedName(id, sha512), "");
}

async function onlyUpload(dir: string, id: string): Promise<ImageFile | null> {
  const names = (await readdir(dir).catch(nullIfMissing)) ?? [];
  const uploads = names.filter((name) => name.startsWith(`${id}-`) && HASH.test(name.slice(id.length + 1)));
  const [name, ...others] = uploads;
  return name === undefined || others.length > 0 ? null : fileAt(dir, name, "");
}

async function fileAt(dir: string, name: string, suffix: string): Promise<ImageFile | null> {
  const path = join(dir, name);
  const found = await stat(path).catch(nullIfMissing);
  return found?.isFile() ? { path, suffix, bytes: found.size, changedAtMs: found.mtimeMs } : null;
}

/** The answer for a file that is not there. Throws every other error. */
export function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
  throw error;
}
