import type { ImageService } from "../../../core/stores/api/image-service.ts";
import type { ImageStore } from "../../../core/stores/api/image-store.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { ApiEvents } from "../events.ts";
import { GlanceImages } from "./glance-images.ts";
import { ImageCatalog } from "./image-catalog.ts";
import { ImageFetcher } from "./image-fetcher.ts";
import type { GlanceParts } from "./open-glance.ts";
import { OwnImages } from "./own-images.ts";

/** How often wanted images are looked for, how many are fetched at once, and when a failed fetch is tried again. */
const FETCHER = { pollMs: 1_000, fetchesMax: 4, retryMs: 10_000 };

interface OpenedImages {
  readonly service: ImageService;
  /** Null when the images are those of Glance. */
  readonly catalog: ImageCatalog | null;
  /** Null when the images are the api's own. */
  readonly fetcher: ImageFetcher | null;
  /** Breaks off the transfers of images' data, which other apis or the next process take up. */
  close(): Promise<void>;
}

/** Opens the service of images: Glance, or the api's own images. Null when this process has none. */
export function openImages(
  deps: { readonly images?: ImageStore; readonly glance?: GlanceParts | null; readonly clock: Clock },
  events: ApiEvents,
  { cacheMs, bytesMax }: { readonly cacheMs: number; readonly bytesMax: number },
): OpenedImages | null {
  const { images: store, glance = null, clock } = deps;
  if (store === undefined) return null;
  if (glance === null) {
    const catalog = new ImageCatalog({ store, clock }, { cacheMs });
    return { service: new OwnImages({ store, catalog, clock }), catalog, fetcher: null, close: async () => undefined };
  }
  const { client, files, wanted } = glance;
  const service = new GlanceImages({ glance: client, store, files, wanted, events, clock }, { cacheMs });
  const download = (id: string) => client.download(id);
  const fetcher = new ImageFetcher({ wanted, files, download, clock, events }, { ...FETCHER, bytesMax });
  const close = async () => {
    await glance.close();
    await Promise.all([service.idle(), fetcher.idle()]);
  };
  return { service, catalog: null, fetcher, close };
}
