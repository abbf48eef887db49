import type { Flavor, PortResourceRequest, ServerSpec } from "../../../proto/gen/berth/shared.ts";

/** The parts of a server spec that say which resources it needs: flavor, image and ports. */
export interface Asked {
  readonly flavor: Flavor;
  readonly imageProperties: Readonly<Record<string, string>>;
  readonly portRequests: readonly PortResourceRequest[];
  /** It has a volume that several servers may have at a time. */
  readonly sharesVolumes?: boolean;
}

/** The trait of hosts whose driver can give a guest a volume that other guests have, too. */
export const MULTIATTACH_TRAIT = "COMPUTE_VOLUME_MULTI_ATTACH";

/** Adds the parts that say where the server may go, which the request filters read. */
export interface AskedPlace extends Asked {
  readonly projectId: string;
  readonly availabilityZone: string;
  readonly forcedHost: string;
  readonly requestedHost: string;
}

/**
 * Extracts these parts of a spec. Null when the spec has no flavor, since there is then nothing to place. A server that boots from a volume needs no
 * local disk for its root.
 *
 * Source: `RequestSpec.from_components` of Nova with `is_bfv`.
 */
export function askedOf(spec: ServerSpec): AskedPlace | null {
  const { flavor, imageProperties, portRequests, projectId, availabilityZone, forcedHost, requestedHost } = spec;
  if (flavor === undefined) return null;
  const isVolumeBacked = spec.volumes.some(({ isRoot }) => isRoot);
  const sharesVolumes = spec.volumes.some(({ isMultiattach }) => isMultiattach);
  return {
    flavor: isVolumeBacked ? { ...flavor, diskGib: 0 } : flavor,
    ...{ imageProperties, portRequests, projectId, availabilityZone, forcedHost, requestedHost },
    ...(sharesVolumes && { sharesVolumes }),
  };
}
