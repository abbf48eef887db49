import type { ServiceImage, ServiceImageStatus } from "../../../core/stores/api/image-service.ts";
import { type ImageRecord, imageStatus } from "../../../core/stores/api/image-store.ts";
import { type Place, resourceLinks } from "../http/links.ts";
import { readFlag } from "../http/schema.ts";

/** Whole seconds, as both APIs write times of images. */
function seconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** Returns an image as the Image API v2 shows it. The sizes and hashes of bits that Berth does not store are unknown. */
export function imageView(image: ImageRecord): Record<string, unknown> {
  const data = image.data === "awaited" ? undefined : image.data;
  return {
    ...image.properties,
    id: image.id,
    name: image.name,
    status: imageStatus(image),
    visibility: image.visibility,
    protected: image.isProtected,
    owner: image.owner,
    disk_format: image.diskFormat,
    container_format: image.containerFormat,
    min_disk: image.minDiskGib,
    min_ram: image.minRamMib,
    tags: image.tags,
    size: data?.bytes ?? null,
    virtual_size: data?.virtualBytes ?? null,
    checksum: data?.md5 ?? null,
    os_hash_algo: data === undefined ? null : "sha512",
    os_hash_value: data?.sha512 ?? null,
    os_hidden: false,
    created_at: seconds(image.createdAtMs),
    updated_at: seconds(image.updatedAtMs),
    self: `/v2/images/${image.id}`,
    file: `/v2/images/${image.id}/file`,
    schema: "/v2/schemas/image",
  };
}

/** The status and the progress that Nova shows for each status. Source: Nova's `views/images.py`. */
const SHOWN: Readonly<Record<ServiceImageStatus, readonly [status: string, progress: number]>> = {
  queued: ["SAVING", 25],
  saving: ["SAVING", 50],
  active: ["ACTIVE", 100],
  deleted: ["DELETED", 0],
  killed: ["ERROR", 0],
  other: ["UNKNOWN", 0],
};

/** The base URLs of the links to an image. */
export interface ImagePlace extends Place {
  /** The URL of the images in the Image API, to which their ids are added. */
  readonly images: string;
}

/** An image as the Compute API's old proxy lists it. */
export function briefProxyView({ id, name }: ServiceImage, place: ImagePlace): Record<string, unknown> {
  const inImageApi = { rel: "alternate", type: "application/vnd.openstack.image", href: `${place.images}/${id}` };
  return { id, name, links: [...resourceLinks(place, "images", id), inImageApi] };
}

export function proxyView(image: ServiceImage, place: ImagePlace): Record<string, unknown> {
  const [status, progress] = SHOWN[image.status];
  const { instance_uuid: server, auto_disk_config: diskConfig } = image.properties;
  return {
    ...briefProxyView(image, place),
    status,
    progress,
    minDisk: image.minDiskGib,
    minRam: image.minRamMib,
    metadata: image.properties,
    created: seconds(image.createdAtMs),
    updated: seconds(image.updatedAtMs),
    "OS-EXT-IMG-SIZE:size": image.bytes ?? 0,
    ...(server !== undefined && { server: { id: server, links: resourceLinks(place, "servers", server) } }),
    ...(diskConfig !== undefined && { "OS-DCF:diskConfig": readFlag(diskConfig) === true ? "AUTO" : "MANUAL" }),
  };
}
