import type { GlanceImage } from "../adapters/openstack/glance-image.ts";
import { NeighbourError } from "../adapters/openstack/neighbour-error.ts";
import type { GlanceParts } from "../services/api/image/open-glance.ts";
import type { SimProcess } from "./sim-process.ts";

/** The images with which users rebuild servers that boot from volumes. */
export const SIM_GLANCE_IMAGES = [
  "155d900f-4e14-4e4c-a73d-069cbf4541e6",
  "7f2d4a1c-90b1-4c3e-8a55-2c1f0e6d9b11",
  "c0ffee00-5d0f-4b6b-9e0a-6f1d2c3b4a59",
] as const;
const PLACE = "glance";
const FEATURES = { minDiskGib: 0, minRamMib: 0, properties: {}, createdAtMs: 0, updatedAtMs: 0, bytes: 1 } as const;

/**
 * The Glance of a simulated cloud as an api's process reaches it. It has images for the volumes of servers. Hosts need none of them, and users of such a world make none, so that nothing else
 * is asked of it.
 */
export function simGlanceReachedBy(process: SimProcess): GlanceParts {
  const find = (id: string) =>
    process.call(
      PLACE,
      async () => (SIM_GLANCE_IMAGES.some((known) => known === id) ? imageOf(id) : null),
      () => new NeighbourError("unreachable", "Glance does not answer", { service: "Glance" }),
    );
  return {
    client: {
      image: find,
      ...{ imagesUrl: unasked, images: unasked, create: unasked, deleteAs: unasked, setProperties: unasked },
      ...{ upload: unasked, download: unasked, remove: unasked },
    },
    files: {
      ...{ check: async () => {}, store: unasked, read: async () => null },
      ...{ discard: async () => {}, adopt: async () => {}, remove: async () => {} },
    },
    wanted: {
      ...{ want: async () => {}, wanted: async () => [], claim: async () => false },
      ...{ release: async () => {}, fetched: async () => {}, refuse: async () => {} },
    },
    close: async () => {},
  };
}

const unasked = () => Promise.reject(new Error("simulated users neither make nor change images of Glance"));

const imageOf = (id: string): GlanceImage => ({
  ...{ id, name: "image", status: "active", diskFormat: "raw", containerFormat: "bare", ...FEATURES },
  ...{ virtualBytes: 1, sha512: null, owner: null, isProtected: false, hash: null },
});
