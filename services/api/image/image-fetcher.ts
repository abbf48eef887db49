import type { Readable } from "node:stream";
import { ImageDataError, type ImageDirectory } from "../../../adapters/images/image-directory.ts";
import type { WantedImage, WantedImages } from "../../../adapters/images/wanted-images.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { Ticker } from "../../../runtime/ticker.ts";
import type { ApiEvents } from "../events.ts";

/** The reasons for which an image can be used on no host, however often it is fetched. */
const FINAL: ReadonlySet<ImageDataError["code"]> = new Set(["refused", "none", "too-large"]);

export interface ImageFetcherDeps {
  readonly wanted: Pick<WantedImages, keyof WantedImages>;
  readonly files: Pick<ImageDirectory, "store" | "discard">;
  /** Returns the bits of an image. Null if the image has gone. */
  readonly download: (id: string) => Promise<Readable | null>;
  readonly clock: Clock;
  readonly events: Pick<ApiEvents, "imageFetched" | "imageNotFetched" | "imageRefused">;
}

export interface ImageFetcherOptions {
  readonly pollMs: number;
  /** Images that are fetched at once by one process. */
  readonly fetchesMax: number;
  /** Maximum number of bytes of one image. */
  readonly bytesMax: number;
  /** How long an image is left alone after a failed try. */
  readonly retryMs: number;
}

/**
 * Fetches the bits of wanted images into the directory that the hosts share, so that hosts need no credentials of the image service. Several apis may
 * do this at a time: each image is claimed by one of them, and a file gets its name only when it is whole and has the stated hash. An image service that
 * does not answer is asked again; bits that no host could use are refused with the reason.
 */
export class ImageFetcher {
  readonly #deps: ImageFetcherDeps;
  readonly #options: ImageFetcherOptions;
  readonly #ticker: Ticker;
  /** The fetches under way, by the image's id. */
  readonly #running = new Map<string, { readonly image: WantedImage; readonly ended: Promise<void> }>();
  /** Until when an image is left alone, by its id. */
  readonly #restUntilMs = new Map<string, number>();

  constructor(deps: ImageFetcherDeps, options: ImageFetcherOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: options.pollMs,
      work: () => this.look(),
      onError: (error) => deps.events.imageNotFetched(null, error),
    });
  }

  start(): void {
    this.#ticker.start();
  }

  /** Begins no further fetch. Those under way end when their downloads are broken off, and another api goes on with them. */
  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  /** Resolves when no fetch is under way. */
  async idle(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  /** Begins to fetch wanted images, and keeps the claims of those under way. */
  async look(): Promise<void> {
    const { wanted, clock } = this.#deps;
    for (const { image } of this.#running.values()) await this.#claims(image);
    const images = await wanted.wanted((error) => this.#deps.events.imageNotFetched(null, error));
    const ids = new Set(images.map(({ id }) => id));
    for (const id of this.#restUntilMs.keys()) if (!ids.has(id)) this.#restUntilMs.delete(id);
    for (const image of images) {
      if (this.#running.size >= this.#options.fetchesMax) return;
      const isResting = (this.#restUntilMs.get(image.id) ?? 0) > clock.monotonic();
      if (this.#running.has(image.id) || isResting || !(await this.#claims(image))) continue;
      const ended = this.#fetch(image).finally(() => this.#running.delete(image.id));
      this.#running.set(image.id, { image, ended });
    }
  }

  /** Claims an image. One that cannot be claimed does not keep others from being fetched. */
  async #claims(image: WantedImage): Promise<boolean> {
    const { wanted, clock, events } = this.#deps;
    try {
      return await wanted.claim(image);
    } catch (error) {
      this.#restUntilMs.set(image.id, clock.monotonic() + this.#options.retryMs);
      events.imageNotFetched(image.id, error);
      return false;
    }
  }

  /** Never rejects. */
  async #fetch(image: WantedImage): Promise<void> {
    const { wanted, events, clock } = this.#deps;
    try {
      const reason = await this.#store(image);
      if (reason === null) {
        await wanted.fetched(image);
        events.imageFetched(image.id);
      } else {
        await wanted.refuse(image, reason);
        events.imageRefused(image.id, reason);
      }
    } catch (error) {
      this.#restUntilMs.set(image.id, clock.monotonic() + this.#options.retryMs);
      events.imageNotFetched(image.id, error);
    } finally {
      await wanted.release(image).catch(() => undefined);
    }
  }

  /** Stores the bits. Returns why no host can use them, or null. Rejects when another try can help. */
  async #store({ id, sha512, diskFormat, bytes }: WantedImage): Promise<string | null> {
    const { files, download } = this.#deps;
    const bits = await download(id);
    if (bits === null) return "the image service has no such image, or no data of it";
    try {
      const stored = await files.store(bits, { id, diskFormat, bytes, bytesMax: this.#options.bytesMax });
      if (sha512 === null || stored.sha512 === sha512) return null;
      await files.discard(id, stored.sha512);
      return "their SHA-512 is another one than the image service states";
    } catch (error) {
      const isFinal = error instanceof ImageDataError && FINAL.has(error.code);
      if (isFinal) return error.message;
      throw error;
    } finally {
      bits.destroy();
    }
  }
}
