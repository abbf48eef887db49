import type { Flavor } from "../../../proto/gen/berth/shared.ts";
import type { HostRequest } from "../host-request.ts";
import type { Asked, AskedPlace } from "./asked.ts";
import { cpuPolicy } from "./cpu-policy.ts";
import { driverCapabilities } from "./driver-capabilities.ts";
import { extraSpecGroups } from "./extra-spec-groups.ts";
import { availabilityZone } from "./filters/availability-zone.ts";
import { disabledHosts } from "./filters/disabled-hosts.ts";
import { imageModels } from "./filters/image-models.ts";
import { imageType } from "./filters/image-type.ts";
import { isolatedAggregates } from "./filters/isolated-aggregates.ts";
import { namedHost } from "./filters/named-host.ts";
import { pciDevices } from "./filters/pci-devices.ts";
import { tenantAggregates } from "./filters/tenant-aggregates.ts";
import { flavorSize } from "./flavor-size.ts";
import { HostRequestDraft } from "./host-request-draft.ts";
import { imageTraits } from "./image-traits.ts";
import { memoryEncryption } from "./memory-encryption.ts";
import { memoryPages } from "./memory-pages.ts";
import { numaNodes } from "./numa-nodes.ts";
import { pciAffinity } from "./pci-affinity.ts";
import { persistentMemory } from "./persistent-memory.ts";
import { portGroups } from "./port-groups.ts";
import { PLAIN_CONTEXT, type RequestContext } from "./request-context.ts";
import type { RequestRefusal } from "./request-refusal.ts";
import type { RequestFilter, TranslationRule } from "./translation-rule.ts";
import { trustedPlatform } from "./trusted-platform.ts";

export type RequestTranslation = { readonly kind: "host-request"; readonly hostRequest: HostRequest } | RequestRefusal;

/** The rules in order. A rule may read what earlier rules wrote. */
const RULES: readonly TranslationRule[] = [
  extraSpecGroups,
  imageTraits,
  numaNodes,
  cpuPolicy,
  memoryPages,
  pciAffinity,
  portGroups,
  flavorSize,
  memoryEncryption,
  persistentMemory,
  trustedPlatform,
  driverCapabilities,
];

const FILTERS: readonly RequestFilter[] = [
  pciDevices,
  availabilityZone,
  tenantAggregates,
  isolatedAggregates,
  disabledHosts,
  imageType,
  imageModels,
  namedHost,
];

/**
 * Translates a request for a server into a host request: the request groups (docs/requests.md lists the effect of each extra spec and image
 * property), narrowed by the request filters that the context turns on. It refuses a request that no host could serve, and an image that
 * contradicts its flavor. Cost: tens of microseconds, so remember the result.
 * Source: nova/scheduler/utils.py ResourceRequest.from_request_spec, nova/scheduler/request_filter.py.
 */
export function translateRequest(asked: AskedPlace, context: RequestContext): RequestTranslation {
  const draft = new HostRequestDraft();
  const refused = write(asked, draft);
  if (refused) return refused;
  for (const filter of FILTERS) {
    const refusal = filter(asked, draft, context);
    if (refusal) return refusal;
  }
  return draft.finish();
}

/** Translates only the resources, without the server's place, to find out whether the request is valid at all. */
export function translateResources(asked: Asked): RequestTranslation {
  const draft = new HostRequestDraft();
  return write(asked, draft) ?? pciDevices(asked, draft, PLAIN_CONTEXT) ?? draft.finish();
}

/** Translates a flavor alone. */
export function translateFlavor(flavor: Flavor): RequestTranslation {
  return translateResources({ flavor, imageProperties: {}, portRequests: [] });
}

function write(asked: Asked, draft: HostRequestDraft): RequestRefusal | null {
  for (const rule of RULES) {
    const refused = rule(asked, draft);
    if (refused) return refused;
  }
  return null;
}
