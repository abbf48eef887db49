import type { Clock } from "../../../runtime/clock.ts";
import { IdleLimit } from "../../../runtime/idle-limit.ts";
import { Fault } from "../http/fault.ts";

/** A second upload of an image may run beside the first one, which may be of a client that has gone and was not missed yet. */
const UPLOADS_PER_IMAGE_MAX = 2;
/** Each upload occupies a connection, and room in the directory until it fails. */
const UPLOADS_PER_PROJECT_MAX = 8;

/**
 * The uploads and downloads of images' data that an api has open. A project and an image have few uploads at once, a stream in which nothing
 * moves is broken off, and the end of the api breaks off all.
 */
export class ImageStreams {
  readonly #idleMs: number;
  readonly #clock: Pick<Clock, "setTimer">;
  readonly #open = new Set<IdleLimit>();
  readonly #uploads: { readonly imageId: string; readonly projectId: string }[] = [];
  #isClosed = false;

  constructor(idleMs: number, clock: Pick<Clock, "setTimer">) {
    this.#idleMs = idleMs;
    this.#clock = clock;
  }

  /** Whether streams are broken off because the api ends. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Opens a download. */
  download(): IdleLimit {
    return this.#stream();
  }

  /** Opens an upload. Throws a Fault (429) if the image or the project has as many as it may have. */
  upload(imageId: string, projectId: string): IdleLimit {
    const count = (field: "imageId" | "projectId", value: string) =>
      this.#uploads.filter((upload) => upload[field] === value).length;
    if (count("imageId", imageId) >= UPLOADS_PER_IMAGE_MAX)
      throw new Fault(
        429,
        `Image ${imageId} has ${UPLOADS_PER_IMAGE_MAX} uploads under way: wait for one of them to end.`,
      );
    if (count("projectId", projectId) >= UPLOADS_PER_PROJECT_MAX)
      throw new Fault(
        429,
        `The project has ${UPLOADS_PER_PROJECT_MAX} uploads under way: wait for one of them to end.`,
      );
    const upload = { imageId, projectId };
    this.#uploads.push(upload);
    const stream = this.#stream();
    stream.once("close", () => this.#uploads.splice(this.#uploads.indexOf(upload), 1));
    return stream;
  }

  /** Breaks off all streams, and those that are opened later. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#open) stream.destroy(new Error("the api is being stopped"));
  }

  #stream(): IdleLimit {
    const stream = new IdleLimit(this.#idleMs, this.#clock);
    this.#open.add(stream);
    stream.once("close", () => this.#open.delete(stream));
    if (this.#isClosed) stream.destroy(new Error("the api is being stopped"));
    return stream;
  }
}
