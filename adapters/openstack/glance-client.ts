import type { Readable } from "node:stream";
import type { ImageCaller, ImageProperties } from "../../core/stores/api/image-service.ts";
import type { ImageRecord } from "../../core/stores/api/image-store.ts";
import { type GlanceImage, propertiesOf, readGlanceImage } from "./glance-image.ts";
import type { NeighbourClient } from "./neighbour-client.ts";
import { NeighbourError } from "./neighbour-error.ts";

/** In whose name a call is made: that of a caller of this service, or this service's own. */
type Asker = Pick<ImageCaller, "token" | "requestId"> | null;

/** The formats of an image for which none is known, for example of a container's tarball. Glance takes no bits of an image without formats. */
const UNKNOWN_FORMATS = { disk: "raw", container: "bare" };

/**
 * The calls of the Image API v2 that this service makes. They reject with a NeighbourError.
 *
 * Source: https://docs.openstack.org/api-ref/image/v2/
 */
export class GlanceClient {
  readonly #client: NeighbourClient;

  constructor(client: NeighbourClient) {
    this.#client = client;
  }

  /** The URL to which Nova's links add the id of an image. Source: `_get_alternate_link` of Nova's `views/images.py`. */
  async imagesUrl(): Promise<string> {
    return `${await this.#client.endpoint()}/images`;
  }

  /** Null if there is no image that the asker may see. */
  async image(id: string, asker: Asker): Promise<GlanceImage | null> {
    const answer = await this.#client
      .call({ method: "GET", path: pathOf(id), ...nameOf(asker), expect: [200] })
      .catch(nullIfGone);
    if (answer === null) return null;
    const image = readGlanceImage(answer.body);
    if (image.id === id) return image;
    throw new NeighbourError("bad-answer", "Glance's answer is another image than was asked for", {
      service: "Glance",
    });
  }

  /** Images newest first, after the one with the id `marker`, of which the asker may see all. */
  async images(
    query: {
      readonly limit: number;
      readonly marker: string | null;
      readonly filters: Readonly<Record<string, string>>;
    },
    asker: Asker,
  ): Promise<readonly GlanceImage[]> {
    const { limit, marker, filters } = query;
    const parameters = new URLSearchParams({ ...filters, sort: "created_at:desc,id:asc", limit: String(limit) });
    if (marker !== null) parameters.set("marker", marker);
    const path = `/v2/images?${parameters}`;
    const { body } = await this.#client.call({ method: "GET", path, ...nameOf(asker), expect: [200] });
    const { images } = (body ?? {}) as { images?: unknown };
    if (!Array.isArray(images))
      throw new NeighbourError("bad-answer", "Glance's answer has no list of images", { service: "Glance" });
    return images.map(readGlanceImage);
  }

  /** Registers an image that has no bits yet. The owner is given only where it is another project than the asker's. */
  async create(image: ImageRecord, asker: ImageCaller): Promise<void> {
    const body = {
      ...propertiesOf(image.properties),
      ...{ id: image.id, name: image.name, visibility: image.visibility, protected: image.isProtected },
      disk_format: image.diskFormat ?? UNKNOWN_FORMATS.disk,
      container_format: image.containerFormat ?? UNKNOWN_FORMATS.container,
      ...{ min_disk: image.minDiskGib, min_ram: image.minRamMib, tags: image.tags },
      ...(image.owner !== asker.projectId && { owner: image.owner }),
    };
    await this.#client.call({ method: "POST", path: "/v2/images", body, ...nameOf(asker), expect: [201] });
  }

  /** Deletes an image in the asker's name. */
  async deleteAs(id: string, asker: ImageCaller): Promise<void> {
    await this.#client.call({ method: "DELETE", path: pathOf(id), ...nameOf(asker), expect: [204] });
  }

  /** Makes the properties `to` of those that the image had (`from`). Properties that are the same in both are left alone. */
  async setProperties(
    id: string,
    { from, to }: { readonly from: ImageProperties; readonly to: ImageProperties },
    asker: Asker,
  ): Promise<void> {
    const at = (name: string) => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const gone = Object.keys(from).filter((name) => !Object.hasOwn(to, name));
    const body = [
      ...gone.map((name) => ({ op: "remove", path: at(name) })),
      ...Object.entries(to)
        .filter(([name, value]) => from[name] !== value)
        .map(([name, value]) => ({ op: "add", path: at(name), value })),
    ];
    if (body.length === 0) return;
    const contentType = "application/openstack-images-v2.1-json-patch";
    await this.#client.call({ method: "PATCH", path: pathOf(id), body, contentType, ...nameOf(asker), expect: [200] });
  }

  /** Gives an image its bits. */
  async upload(id: string, bits: () => Readable): Promise<void> {
    const path = `${pathOf(id)}/file`;
    const contentType = "application/octet-stream";
    await this.#client.upload({ method: "PUT", path, contentType, ...nameOf(null), expect: [204] }, bits);
  }

  /** The bits of an image as a stream, which the caller must read or destroy. Null if the image has gone or has no bits. */
  async download(id: string): Promise<Readable | null> {
    const path = `${pathOf(id)}/file`;
    const headers = { accept: "application/octet-stream" };
    const answer = await this.#client
      .download({ method: "GET", path, headers, ...nameOf(null), expect: [200, 204] })
      .catch(nullIfGone);
    if (answer === null || answer.status === 200) return answer?.body ?? null;
    answer.body.resume();
    return null;
  }

  /** Deletes an image in this service's own name. Does nothing if there is none. */
  async remove(id: string): Promise<void> {
    await this.#client.call({ method: "DELETE", path: pathOf(id), ...nameOf(null), expect: [204] }).catch(nullIfGone);
  }
}

const pathOf = (id: string): string => `/v2/images/${encodeURIComponent(id)}`;

const nameOf = (asker: Asker) => ({ callerToken: asker?.token ?? null, requestId: asker?.requestId ?? null });

function nullIfGone(error: unknown): null {
  if (error instanceof NeighbourError && error.code === "not-found") return null;
  throw error;
}
