import { pipeline, type Readable, Transform } from "node:stream";
import { ImageDataError, type ImageDirectory } from "../../../adapters/images/image-directory.ts";
import type { WantedImage } from "../../../adapters/images/image-mark.ts";
import type { WantedImages } from "../../../adapters/images/wanted-images.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { Ticker } from "../../../runtime/ticker.ts";
import type { ApiEvents } from "../events.ts";

/** The reasons for which an image can be used on no host, however often it is fetched. */
const FINAL: ReadonlySet<ImageDataError["code"]> = new Set(["refused", "none", "too-large"]);
/** A fetch is slow if fewer bytes than this come in this time. */
const LOOK_AT_PACE_MS = 30_000;
const PACE_BYTES_MIN = 2_000_000;
/** The pause of an image that was broken off for its pace grows up to this multiple. */
const PAUSE_GROWTH_MAX = 32;

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

/** A fetch under way. */
interface Fetch {
  readonly image: WantedImage;
  /** Bytes since the pace was last looked at, and when that was. */
  bytes: number;
  lookedAtMs: number;
  isSlow: boolean;
  /** Breaks the fetch off for its pace. */
  readonly pace: AbortController;
}

/**
 * Fetches the bits of wanted images into the directory that the hosts share, so that hosts need no credentials of the image service. Several apis may
 * do this at a time: each image is claimed by one of them, and a file gets its name only when it is whole and has the stated hash. An image service that
 * does not answer is asked again; bits that no host could use are refused with the reason.
 *
 * An image service may pass on bits from an address of a user's, who can let them drip. So while further images wait, the slow fetch that began last is
 * broken off, and begins again after those that wait, also beside quick ones: they may last for days. The oldest fetch goes on, and so do those before the broken one, since a
 * service that is slow by itself must not make them begin again and again.
 */
export class ImageFetcher {
  readonly #deps: ImageFetcherDeps;
  readonly #options: ImageFetcherOptions;
  readonly #ticker: Ticker;
  /** The fetches under way, by the image's id. */
  readonly #running = new Map<string, Fetch & { readonly ended: Promise<void> }>();
  /** Until when an image is left alone, by its id. */
  readonly #restUntilMs = new Map<string, number>();
  /** How often an image was broken off for its pace, by its id. */
  readonly #brokenOff = new Map<string, number>();

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
    for (const known of [this.#restUntilMs, this.#brokenOff])
      for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
    const times = ({ id }: WantedImage): number => this.#brokenOff.get(id) ?? 0;
    for (const image of images.toSorted((one, other) => times(one) - times(other))) {
      const isResting = (this.#restUntilMs.get(image.id) ?? 0) > clock.monotonic();
      if (this.#running.has(image.id) || isResting) continue;
      if (this.#running.size >= this.#options.fetchesMax) return this.#makeRoom();
      if (!(await this.#claims(image))) continue;
      const fetch = { image, bytes: 0, lookedAtMs: clock.monotonic(), isSlow: false, pace: new AbortController() };
      const ended = this.#fetch(fetch).finally(() => this.#running.delete(image.id));
      this.#running.set(image.id, Object.assign(fetch, { ended }));
    }
  }

  /** Called while an image waits because of the fetches under way. */
  #makeRoom(): void {
    const nowMs = this.#deps.clock.monotonic();
    const fetches = [...this.#running.values()];
    const due = fetches.filter(({ lookedAtMs }) => nowMs - lookedAtMs >= LOOK_AT_PACE_MS);
    for (const fetch of due)
      Object.assign(fetch, { isSlow: fetch.bytes < PACE_BYTES_MIN, bytes: 0, lookedAtMs: nowMs });
    // Where one image is fetched at a time, the oldest one would keep all others away.
    const last = fetches.slice(fetches.length === 1 ? 0 : 1).findLast(({ isSlow }) => isSlow);
    if (last === undefined || !due.includes(last)) return;
    const { id } = last.image;
    this.#brokenOff.set(id, (this.#brokenOff.get(id) ?? 0) + 1);
    last.pace.abort(
      new Error(`fewer than ${PACE_BYTES_MIN} bytes came within ${LOOK_AT_PACE_MS / 1_000} s, and other images wait`),
    );
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
  async #fetch(fetch: Fetch): Promise<void> {
    const { wanted, events, clock } = this.#deps;
    const { image } = fetch;
    try {
      const reason = await this.#store(fetch);
      if (reason === null) {
        await wanted.fetched(image);
        events.imageFetched(image.id);
      } else {
        await wanted.refuse(image, reason);
        events.imageRefused(image.id, reason);
      }
    } catch (error) {
      const growth = Math.min(2 ** (this.#brokenOff.get(image.id) ?? 0), PAUSE_GROWTH_MAX);
      this.#restUntilMs.set(image.id, clock.monotonic() + this.#options.retryMs * growth);
      events.imageNotFetched(image.id, error);
    } finally {
      await wanted.release(image).catch(() => undefined);
    }
  }

  /** Stores the bits. Returns why no host can use them, or null. Rejects when another try can help. */
  async #store(fetch: Fetch): Promise<string | null> {
    const { files, download } = this.#deps;
    const { id, sha512, diskFormat, bytes } = fetch.image;
    const bits = await download(id);
    if (bits === null) return "the image service has no such image, or no data of it";
    try {
      const stored = await files.store(counted(bits, fetch), {
        id,
        diskFormat,
        bytes,
        bytesMax: this.#options.bytesMax,
      });
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

/** The same bits, which count for the pace of the fetch and are broken off with it. */
function counted(bits: Readable, fetch: Fetch): Readable {
  const passed = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      fetch.bytes += chunk.length;
      done(null, chunk);
    },
  });
  const { signal } = fetch.pace;
  const breakOff = () => passed.destroy(signal.reason as Error);
  if (signal.aborted) breakOff();
  signal.addEventListener("abort", breakOff);
  // The reader of the passed bits gets every error.
  return pipeline(bits, passed, () => undefined);
}
