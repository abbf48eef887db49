import type { VolumeUsage } from "../../core/stores/api/volume-store.ts";
import { integer } from "../../runtime/setting-kinds.ts";
import { setting, type ValuesOf } from "../../runtime/settings.ts";

/** How much one project may have of what Berth's own Image, Networking and Block Storage APIs keep. */
export interface OwnedLimits {
  /** Maximum number of images. Null for no limit. */
  readonly imagesPerProjectMax: number | null;
  /** Maximum number of ports that the project has made itself, beside those that come and go with servers. Null for no limit. */
  readonly portsPerProjectMax: number | null;
  /** Infinity for no limit. */
  readonly volumesPerProject: VolumeUsage;
}

const limit = (about: string, most: string) =>
  setting(integer({ min: -1, max: 1_000_000_000 }), { about: `${about}; -1: unlimited`, default: most });

export const ownedLimitOptions = {
  imagesPerProjectMax: limit("maximum number of images of one project", "1000"),
  portsPerProjectMax: limit(
    "maximum number of ports that one project makes in the api's own Networking API, beside those that servers are made with",
    "500",
  ),
  volumesPerProjectMax: limit("maximum number of volumes of one project", "1000"),
  volumeGibPerProjectMax: limit("maximum size of all volumes of one project in GiB", "-1"),
} as const;

export type OwnedLimitOptions = ValuesOf<typeof ownedLimitOptions>;

/** Derives the limits from the command line options. */
export function ownedLimitsOf(options: OwnedLimitOptions): OwnedLimits {
  return {
    imagesPerProjectMax: options.imagesPerProjectMax === -1 ? null : options.imagesPerProjectMax,
    portsPerProjectMax: options.portsPerProjectMax === -1 ? null : options.portsPerProjectMax,
    volumesPerProject: { volumes: limitOf(options.volumesPerProjectMax), gib: limitOf(options.volumeGibPerProjectMax) },
  };
}

const limitOf = (most: number): number => (most === -1 ? Number.POSITIVE_INFINITY : most);

export const NO_OWNED_LIMITS: OwnedLimits = {
  imagesPerProjectMax: null,
  portsPerProjectMax: null,
  volumesPerProject: { volumes: Number.POSITIVE_INFINITY, gib: Number.POSITIVE_INFINITY },
};
