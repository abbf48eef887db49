import type { Flavor } from "../../../proto/gen/berth/shared.ts";
import type { HostRequest } from "../host-request.ts";
import type { AskedPlace } from "./asked.ts";
import { PLAIN_CONTEXT, type RequestContext } from "./request-context.ts";
import { describeRequestRefusal } from "./request-refusal.ts";
import { translateRequest } from "./translate-request.ts";

/** Extra specs, image properties or metadata in tests. */
export type Specs = Readonly<Record<string, string>>;

const flavorOf = (extraSpecs: Specs, size: Partial<Flavor> = {}): Flavor => ({
  id: "1",
  name: "f",
  vcpus: 4,
  memoryMib: 4096,
  diskGib: 10,
  ephemeralGib: 0,
  swapMib: 0,
  extraSpecs: { ...extraSpecs },
  ...size,
});
/** A request of 4 CPUs, 4 GiB of memory and 10 GiB of disk with the given extra specs, image properties and other fields. */
export const asked = (extraSpecs: Specs, image: Specs = {}, more: Partial<AskedPlace> = {}): AskedPlace => ({
  flavor: flavorOf(extraSpecs),
  imageProperties: image,
  portRequests: [],
  projectId: "p",
  availabilityZone: "",
  forcedHost: "",
  requestedHost: "",
  ...more,
});
/** Throws when the request is refused. */
export function hostRequestOf(ask: AskedPlace, context: RequestContext = PLAIN_CONTEXT): HostRequest {
  const outcome = translateRequest(ask, context);
  if (outcome.kind !== "host-request") throw new Error(describeRequestRefusal(outcome));
  return outcome.hostRequest;
}
