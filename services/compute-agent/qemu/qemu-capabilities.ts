import { MULTIATTACH_TRAIT } from "../../../core/scheduling/request/asked.ts";
import type { DriverCapability } from "../driver.ts";

const ALWAYS = [
  ...["suspend", "live-migrate", "snapshot", "rescue", "inject-nmi", "interfaces", "serial-console"],
] as const satisfies readonly DriverCapability[];

/** What virtual machines can do on a host with volumes, or without them, and with displays, or without them. */
export function qemuCapabilities({
  hasVolumes,
  hasDisplays,
}: {
  readonly hasVolumes: boolean;
  readonly hasDisplays: boolean;
}): ReadonlySet<DriverCapability> {
  const volumes = hasVolumes ? (["volumes", "change-volumes", "volume-snapshots"] as const) : [];
  return new Set([...ALWAYS, ...volumes, ...(hasDisplays ? (["display"] as const) : [])]);
}

/** The traits of such a host. */
export const qemuTraits = ({ hasVolumes }: { readonly hasVolumes: boolean }): readonly string[] => [
  ...["COMPUTE_NODE", "COMPUTE_NET_ATTACH_INTERFACE", "COMPUTE_IMAGE_TYPE_QCOW2", "COMPUTE_IMAGE_TYPE_RAW"],
  ...(hasVolumes ? [MULTIATTACH_TRAIT] : []),
];
