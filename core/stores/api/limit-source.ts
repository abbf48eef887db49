/** Limits by the name of their resource, as Keystone has them: `servers`, `class:VCPU`, `server_key_pairs`, … -1 is no limit. */
export type NamedLimits = ReadonlyMap<string, number>;

/**
 * The unified limits of the cloud, which Keystone keeps for all services. Both implementations (the client of Keystone and its in-process twin) pass
 * test/contract/limit-source. Calls reject when Keystone does not answer or does not let this service ask: nothing may be concluded from that.
 */
export interface LimitSource {
  /** The registered limits of the compute service: those of every project that has none of its own. */
  registered(): Promise<NamedLimits>;
  /** The project's own limits, which replace registered ones. Empty for a project that has none, or that does not exist. */
  ofProject(projectId: string): Promise<NamedLimits>;
}
