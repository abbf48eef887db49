import type { ImageRecord } from "../../../core/stores/api/image-store.ts";
import { type Place, resourceLinks } from "../http/links.ts";

/** Whole seconds, as both APIs write times of images. */
function seconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** Returns an image as the Image API v2 shows it. Berth does not know the sizes of images. */
export function imageView(image: ImageRecord): Record<string, unknown> {
  return {
    ...image.properties,
    id: image.id,
    name: image.name,
    status: image.upload?.state ?? "active",
    visibility: image.visibility,
    protected: image.isProtected,
    owner: image.owner,
    disk_format: image.diskFormat,
    container_format: image.containerFormat,
    min_disk: image.minDiskGib,
    min_ram: image.minRamMib,
    tags: image.tags,
    size: null,
    virtual_size: null,
    checksum: null,
    os_hash_algo: null,
    os_hash_value: null,
    os_hidden: false,
    created_at: seconds(image.createdAtMs),
    updated_at: seconds(image.updatedAtMs),
    self: `/v2/images/${image.id}`,
    file: `/v2/images/${image.id}/file`,
    schema: "/v2/schemas/image",
  };
}

/** The progress that Nova shows in these states. */
const PROGRESS = { queued: 25, saving: 50 } as const;

/** An image as the Compute API's old proxy lists it. */
export function briefProxyView({ id, name }: ImageRecord, place: Place): Record<string, unknown> {
  return { id, name, links: resourceLinks(place, "images", id) };
}

export function proxyView(image: ImageRecord, place: Place): Record<string, unknown> {
  return {
    ...briefProxyView(image, place),
    status: image.upload === undefined ? "ACTIVE" : "SAVING",
    progress: image.upload === undefined ? 100 : PROGRESS[image.upload.state],
    minDisk: image.minDiskGib,
    minRam: image.minRamMib,
    metadata: image.properties,
    created: seconds(image.createdAtMs),
    updated: seconds(image.updatedAtMs),
    "OS-EXT-IMG-SIZE:size": 0,
  };
}
