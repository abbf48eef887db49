import type { FlavorRecord } from "../../../../core/stores/api/api-store.ts";
import { type Place, resourceLinks } from "../../http/links.ts";
import type { FlavorDetail } from "./flavor-schemas.ts";

export function flavorBriefView(flavor: FlavorRecord, viewer: { readonly place: Place; readonly minor: number }) {
  return {
    id: flavor.id,
    name: flavor.name,
    links: resourceLinks(viewer.place, "flavors", flavor.id),
    ...(viewer.minor >= 55 && { description: flavor.description }),
  };
}

/** Source: Nova's api-ref, "Flavors". */
export function flavorDetailView(
  flavor: FlavorRecord,
  viewer: { readonly place: Place; readonly minor: number },
): FlavorDetail {
  return {
    ...flavorBriefView(flavor, viewer),
    ram: flavor.memoryMib,
    vcpus: flavor.vcpus,
    disk: flavor.diskGib,
    swap: flavor.swapMib === 0 && viewer.minor < 75 ? "" : flavor.swapMib,
    "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeralGib,
    "OS-FLV-DISABLED:disabled": false,
    "os-flavor-access:is_public": flavor.isPublic,
    rxtx_factor: flavor.rxtxFactor,
    ...(viewer.minor >= 61 && { extra_specs: flavor.extraSpecs }),
  };
}
