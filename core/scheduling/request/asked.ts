import type { Flavor, PortResourceRequest, ServerSpec } from "../../../proto/gen/berth/shared.ts";

/** What a server's own words say of the resources it wants: a server spec's flavor, image and ports. */
export interface Asked {
  readonly flavor: Flavor;
  readonly imageProperties: Readonly<Record<string, string>>;
  readonly portRequests: readonly PortResourceRequest[];
}

/** And of where it may go, which the request filters read. */
export interface AskedPlace extends Asked {
  readonly projectId: string;
  readonly availabilityZone: string;
  readonly forcedHost: string;
  readonly requestedHost: string;
}

/** Null: the spec has no flavor, so it asks for nothing that could be placed. */
export function askedOf(spec: ServerSpec): AskedPlace | null {
  const { flavor, imageProperties, portRequests, projectId, availabilityZone, forcedHost, requestedHost } = spec;
  if (flavor === undefined) return null;
  return { flavor, imageProperties, portRequests, projectId, availabilityZone, forcedHost, requestedHost };
}
