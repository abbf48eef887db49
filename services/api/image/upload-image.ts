import type { Readable } from "node:stream";
import { ImageDataError, type ImageDirectory } from "../../../adapters/images/image-directory.ts";
import type { ImageData, ImageRecord } from "../../../core/stores/api/image-store.ts";
import { badRequest, conflict, Fault } from "../http/fault.ts";
import type { Identity } from "../http/identity.ts";
import { findOwn, type ImageDeps, imageNotFound } from "./change-images.ts";

/** The HTTP status of each reason. Source: Glance's `image_data.upload`. */
const STATUSES = { refused: 400, none: 400, "broken-off": 400, "too-large": 413, full: 413, storage: 503 } as const;

/**
 * Stores the bits of an image that has none, and makes it active. Of several uploads at once, the one that ends first counts. An upload
 * that fails, or whose process dies, leaves an image that still awaits its bits, so the upload can be repeated.
 */
export async function uploadImage(
  deps: ImageDeps & { readonly files: Pick<ImageDirectory, "store" | "discard"> },
  identity: Identity,
  asked: { readonly id: string; readonly bits: Readable; readonly bytesMax: number },
): Promise<void> {
  const { id, diskFormat } = await findAwaiting(deps, identity, asked.id);
  const stored = await deps.files.store(asked.bits, { id, diskFormat, bytesMax: asked.bytesMax }).catch((error) => {
    // The openstack client uploads its standard input, which is empty in a script.
    if (deps.data === "optional" && error instanceof ImageDataError && error.code === "none") return null;
    return asFault(error);
  });
  if (stored === null) return;
  let current: ImageRecord | null = null;
  const changed = await deps.store
    .updateImage(id, (image) => {
      current = image;
      refuseWithData(deps, image);
      if (image.diskFormat !== diskFormat || image.containerFormat === null)
        throw conflict(`A format of image ${id} was changed during the upload.`);
      return { ...image, data: stored, updatedAtMs: deps.clock.now() };
    })
    .catch(async (error: unknown) => {
      if (error instanceof Fault && hasOther(current, stored)) await deps.files.discard(id, stored.sha512);
      throw error;
    });
  if (changed === null) {
    await deps.files.discard(id, stored.sha512);
    throw imageNotFound(id);
  }
  deps.catalog.forget(id);
}

/** Returns an image of the caller's that may get its bits, and says in which format. */
async function findAwaiting(
  deps: ImageDeps,
  identity: Identity,
  asked: string,
): Promise<{ readonly id: string; readonly diskFormat: string }> {
  const image = await findOwn(deps.store, identity, asked);
  refuseWithData(deps, image);
  const { id, diskFormat, containerFormat } = image;
  if (diskFormat === null || containerFormat === null)
    throw badRequest("Properties disk_format, container_format must be set prior to saving data.");
  return { id, diskFormat };
}

function refuseWithData({ data: rule }: Pick<ImageDeps, "data">, { id, data, upload }: ImageRecord): void {
  const isWanting = data === "awaited" || (data === undefined && rule === "optional");
  if (isWanting && upload === undefined) return;
  throw conflict(
    `Image ${id} has its data already: data can be uploaded only once, for an image whose status is queued.`,
  );
}

/**
 * Whether the image has other bits than these for good, so that no upload needs their file. While the image awaits its bits, another upload
 * of the same bits may have written the same file.
 */
function hasOther(image: ImageRecord | null, { sha512 }: ImageData): boolean {
  const data = image?.data;
  return data !== undefined && data !== "awaited" && data.sha512 !== sha512;
}

function asFault(error: unknown): never {
  if (!(error instanceof ImageDataError)) throw error;
  throw new Fault(STATUSES[error.code], `The data of the image were not saved: ${error.message}.`, { cause: error });
}
