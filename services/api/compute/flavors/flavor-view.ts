import type { FlavorRecord } from "../../../../core/stores/api/api-store.ts";
import { type Place, resourceLinks } from "../../http/links.ts";
import type { FlavorDetail } from "./flavor-schemas.ts";

/** From this microversion on flavors have no `rxtx_factor`, and do not say whether they are disabled. */
export const WITHOUT_FACTOR_FROM_MINOR = 102;

/** The caller to whom a flavor is shown, with the base of links and the microversion. */
export interface FlavorViewer {
  readonly place: Place;
  readonly minor: number;
  readonly showsExtraSpecs: boolean;
}

export function flavorBriefView(flavor: FlavorRecord, viewer: FlavorViewer) {
  return {
    id: flavor.id,
    name: flavor.name,
    links: resourceLinks(viewer.place, "flavors", flavor.id),
    ...(viewer.minor >= 55 && { description: flavor.description }),
  };
}

/** Source: Nova's api-ref, "Flavors". */
export function flavorDetailView(flavor: FlavorRecord, viewer: FlavorViewer): FlavorDetail {
  return {
    ...flavorBriefView(flavor, viewer),
    ram: flavor.memoryMib,
    vcpus: flavor.vcpus,
    disk: flavor.diskGib,
    swap: flavor.swapMib === 0 && viewer.minor < 75 ? "" : flavor.swapMib,
    "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeralGib,
    "os-flavor-access:is_public": flavor.isPublic,
    ...(viewer.minor < WITHOUT_FACTOR_FROM_MINOR && {
      "OS-FLV-DISABLED:disabled": false,
      rxtx_factor: flavor.rxtxFactor,
    }),
    ...(viewer.minor >= 61 && viewer.showsExtraSpecs && { extra_specs: flavor.extraSpecs }),
  };
}
