/** A bare metal node, with Ironic's words for its states. */
export interface NodeFacts {
  /** `available`, `active`, `cleaning` or `clean failed`. */
  readonly provisionState: string;
  /** `power on` or `power off`. */
  readonly powerState: string;
  /** Why no further server can have the node, or empty if one can. */
  readonly closedBecause: string;
}

/**
 * An agent's report about its host's hypervisor, in addition to the provider tree. The facts are plain data, stored and sent as JSON.
 */
export interface HypervisorFacts {
  readonly type: string;
  /** The version in Nova's encoding, in which 1.2.3 is 1002003. */
  readonly version: number;
  readonly hostIp: string;
  /** Nova's supported_instances: architecture, hypervisor type and VM mode. */
  readonly supportedInstances: readonly (readonly [string, string, string])[];
  /** Values of Nova's monitors, by metric name. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Nova's `cpu_info`: arch, model, vendor, features, topology {cells, sockets, cores, threads}, maxphysaddr {bits}. */
  readonly cpuInfo: Readonly<Record<string, unknown>>;
  /** When the host booted, in milliseconds since the epoch, or 0 when that is unknown. */
  readonly bootedAtMs: number;
  /** Why no server can be built on the host at present. Absent if one can. */
  readonly closedBecause?: string;
  /** Absent unless the host is a bare metal node. */
  readonly node?: NodeFacts;
}

/** The facts of a host whose agent reports nothing about its hypervisor. */
export const UNKNOWN_HYPERVISOR: HypervisorFacts = {
  type: "",
  version: 0,
  hostIp: "",
  supportedInstances: [],
  metrics: {},
  cpuInfo: {},
  bootedAtMs: 0,
};

/** Completes stored facts, since older versions of Berth may have left some out. */
export function hypervisorOf(stored: Partial<HypervisorFacts>): HypervisorFacts {
  return { ...UNKNOWN_HYPERVISOR, ...stored };
}
