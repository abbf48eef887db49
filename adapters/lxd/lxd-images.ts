import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { isKnownContent } from "../../runtime/find-image-file.ts";
import { openSharedFile } from "../../runtime/open-shared-file.ts";
import { awaitImageFile, ImageFileError } from "../../runtime/wanted-image.ts";
import { whyNoTarball } from "./check-tarball.ts";
import type { LxdClient } from "./lxd-client.ts";
import { LxdError } from "./lxd-error.ts";

/** The cloud's facts about an image. An image that differs from them is refused. */
export interface ExpectedLxdImage {
  readonly id: string;
  readonly sha512: string | null;
}

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/;
const SUFFIXES = ["", ".tar.gz", ".tar.xz", ".tar"];

/** An image in LXD as the source of a new container. */
export interface ImageSource {
  readonly type: "image";
  readonly fingerprint: string;
}

/** An image that LXD has, and the file that it came from. */
export interface UsableImage {
  readonly source: ImageSource;
  readonly expected: ExpectedLxdImage;
  readonly path: string;
}

/** LXD's words about a `metadata.yaml` that no LXD can use. */
const BAD_METADATA = /^yaml: |Architecture isn't supported:/;

interface ReadImage {
  readonly bytes: number;
  readonly changedAtMs: number;
  readonly sha256: string;
  readonly sha512: string;
}

/**
 * Makes images known to LXD: unified tarballs (`metadata.yaml` and `rootfs/`), which an operator puts into a directory of the host under
 * their ids. LXD names an image by the SHA-256 of its tarball, so each content is imported once.
 */
export class LxdImages {
  readonly #client: Pick<LxdClient, "call" | "run" | "importImage">;
  readonly #dir: string;
  /** The content of the files when they were last read, by path. */
  readonly #read = new Map<string, ReadImage>();
  /** Imports under way, by the SHA-256 of the tarball. */
  readonly #running = new Map<string, Promise<string>>();

  constructor(client: Pick<LxdClient, "call" | "run" | "importImage">, dir: string) {
    this.#client = client;
    this.#dir = dir;
  }

  /**
   * Returns the image in LXD, into which it is imported if necessary. Rejects with an LxdError; a final one when no host could use the image, which a file whose content
   * the cloud does not know never tells: it may be broken on this host alone.
   */
  async usable(expected: ExpectedLxdImage, signal: AbortSignal): Promise<UsableImage> {
    if (!ID.test(expected.id))
      throw new LxdError("image", `"${expected.id.slice(0, 100)}" is not the id of an image`, { isFinal: true });
    const { path, read } = await this.#find(expected, signal);
    if (expected.sha512 !== null && read.sha512 !== expected.sha512)
      throw new LxdError(
        "image",
        `the file of image ${expected.id} on this host has another SHA-512 than the image service states: copy the image to the host again`,
      );
    let imported = this.#running.get(read.sha256);
    if (imported === undefined) {
      imported = this.#import(path, read, expected.id).finally(() => this.#running.delete(read.sha256));
      this.#running.set(read.sha256, imported);
    }
    try {
      return { source: { type: "image", fingerprint: await imported }, expected, path };
    } catch (error) {
      if (!(error instanceof LxdError) || !error.isFinal || (await isKnown(path, expected))) throw error;
      throw new LxdError(error.code, error.message, { cause: error });
    }
  }

  /** Rejects with a final error when no host could use a file with this content. */
  async #import(path: string, { sha256, bytes }: ReadImage, id: string): Promise<string> {
    try {
      await this.#client.call(`/1.0/images/${sha256}`);
      return sha256;
    } catch (error) {
      if (!(error instanceof LxdError) || error.code !== "not-found") throw error;
    }
    const file = await openImage(path);
    let fingerprint: string;
    try {
      // Several builds may wait for one import, so none of them may cancel it.
      fingerprint = await this.#client.importImage(file.createReadStream(), bytes, NEVER);
    } catch (error) {
      if (!(error instanceof LxdError) || error.code === "unavailable") throw error;
      const why = await whyUnusable(path, error);
      const words = why === null ? "cannot be imported" : `cannot be used: ${why}`;
      throw new LxdError("image", `image ${id} ${words}: ${error.message}`, { isFinal: why !== null, cause: error });
    }
    if (fingerprint === sha256) return fingerprint;
    this.#read.delete(path);
    await this.#removeForeign(fingerprint);
    throw new LxdError("image", `the file of image ${id} has changed while it was imported: try again`);
  }

  /** Removes from LXD what is not the content that was asked for: every host that has the directory can write to it at any time. */
  async #removeForeign(fingerprint: string): Promise<void> {
    // It may be the content of another image that is being imported.
    if (this.#running.has(fingerprint)) return;
    await this.#client.run(`/1.0/images/${fingerprint}`, { method: "DELETE" }).catch(() => undefined);
  }

  /**
   * Settles as the creation of a container from an image does. If LXD has refused it since no host could unpack the image, it rejects with an error that says so, and
   * with a final one if the cloud knows the content of the file, so that no other host is tried.
   */
  async blamed({ path, expected }: UsableImage, created: Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await created;
    } catch (error) {
      const isUnpacking = error instanceof LxdError && error.code === "refused" && error.message.includes("Unpack");
      const why = isUnpacking ? await whyNoTarball(path, signal) : null;
      if (why === null) throw error;
      const isFinal = await isKnown(path, expected);
      throw new LxdError("image", `the image cannot be used: ${why}`, { isFinal, cause: error });
    }
  }

  async #find(
    image: ExpectedLxdImage,
    signal: AbortSignal,
  ): Promise<{ readonly path: string; readonly read: ReadImage }> {
    const found = await awaitImageFile(this.#dir, image, SUFFIXES, { signal }).catch((error: unknown) => {
      if (!(error instanceof ImageFileError)) throw error;
      throw new LxdError("image", error.message, { isFinal: error.code === "refused", cause: error });
    });
    if (found !== null)
      return { path: found.path, read: await this.#readOnce(found.path, found.bytes, found.changedAtMs) };
    throw new LxdError(
      "image",
      `this host has no file of image ${image.id}: copy the image into its directory of images`,
    );
  }

  async #readOnce(path: string, bytes: number, changedAtMs: number): Promise<ReadImage> {
    const known = this.#read.get(path);
    if (known?.bytes === bytes && known.changedAtMs === changedAtMs) return known;
    const read = { bytes, changedAtMs, ...(await hashesOf(path)) };
    this.#read.set(path, read);
    return read;
  }
}

const NEVER = new AbortController().signal;

async function openImage(path: string): Promise<FileHandle> {
  return openSharedFile(path).catch((error: Error) => {
    throw new LxdError("image", `the file of an image cannot be read: ${error.message}`, { cause: error });
  });
}

async function hashesOf(path: string): Promise<Pick<ReadImage, "sha256" | "sha512">> {
  const [sha256, sha512] = [createHash("sha256"), createHash("sha512")];
  const file = await openImage(path);
  await pipeline(file.createReadStream(), async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of chunks) {
      sha256.update(chunk);
      sha512.update(chunk);
    }
  });
  return { sha256: sha256.digest("hex"), sha512: sha512.digest("hex") };
}

/** Whether the file has the content that the cloud knows. It is read anew, since it may have changed since LXD got it. */
async function isKnown(path: string, expected: ExpectedLxdImage): Promise<boolean> {
  const read = await hashesOf(path).catch(() => null);
  return read !== null && isKnownContent(expected, { path, sha512: read.sha512 });
}

async function whyUnusable(path: string, { message }: LxdError): Promise<string | null> {
  if (BAD_METADATA.test(message)) return "its metadata.yaml is wrong";
  return whyNoTarball(path, NEVER);
}
