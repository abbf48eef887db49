import type { SchedulingSettings } from "../scheduling-settings.ts";
import type { HostFilter } from "./host-filter.ts";

/**
 * Allows isolated images on isolated hosts only. Unless the restriction is lifted, isolated hosts also refuse all other images. Without
 * isolated images only the second rule applies.
 */
export function isolatedHostsFilter(settings: SchedulingSettings): HostFilter {
  const hosts = new Set(settings.isolatedHosts);
  const images = new Set(settings.isolatedImages);
  const restricted = settings.restrictIsolatedHostsToIsolatedImages;
  return {
    name: "IsolatedHostsFilter",
    decidedBy: "kind",
    reads: ["image"],
    isForAllCells: true,
    bind({ imageRef }) {
      if (images.has(imageRef)) return (host) => (hosts.has(host.name) ? null : "not isolated, but the image is");
      if (!restricted || hosts.size === 0) return null;
      return (host) => (hosts.has(host.name) ? "isolated, but the image is not" : null);
    },
  };
}
