/** What a host's agent says of the hypervisor, beside the provider tree. Plain data: it is stored and sent as JSON. */
export interface HypervisorFacts {
  readonly type: string;
  /** As Nova counts it: 1.2.3 is 1002003. */
  readonly version: number;
  readonly hostIp: string;
  /** Nova's supported_instances: architecture, hypervisor type, VM mode. */
  readonly supportedInstances: readonly (readonly [string, string, string])[];
  /** What monitors measure, by name. */
  readonly metrics: Readonly<Record<string, number>>;
  /** As Nova's `cpu_info`: arch, model, vendor, features, topology {cells, sockets, cores, threads}, maxphysaddr {bits}. */
  readonly cpuInfo: Readonly<Record<string, unknown>>;
}

/** Of a host whose agent says nothing of its hypervisor. */
export const UNKNOWN_HYPERVISOR: HypervisorFacts = {
  type: "",
  version: 0,
  hostIp: "",
  supportedInstances: [],
  metrics: {},
  cpuInfo: {},
};

/** From what is stored, of which older versions of Berth may have left something out. */
export function hypervisorOf(stored: Partial<HypervisorFacts>): HypervisorFacts {
  return { ...UNKNOWN_HYPERVISOR, ...stored };
}
