import type { FlavorRecord } from "../core/stores/api/api-store.ts";

const SIZES = [1, 2, 4] as const;

/** One flavor for each size in VCPUs. */
export const SIM_FLAVORS: FlavorRecord[] = SIZES.map((vcpus) => ({
  id: `${vcpus}`,
  name: `sim-${vcpus}`,
  vcpus,
  memoryMib: vcpus * 1_024,
  diskGib: vcpus * 5,
  ephemeralGib: 0,
  swapMib: 0,
  extraSpecs: {},
  rxtxFactor: 1,
  isPublic: true,
  description: null,
}));

/** The image of every server. Images are not registered anywhere. */
export const SIM_IMAGE = "70a599e0-31e7-49b7-b260-868f441e862b";
