/** One request group of a port. */
export interface PortGroup {
  readonly id: string;
  readonly resources: Readonly<Record<string, number>>;
  readonly required: readonly string[];
}

/** A network port as far as scheduling needs it, with the resources that it requests from a host (Neutron's `resource_request`). */
export interface PortRecord {
  readonly id: string;
  readonly projectId: string;
  readonly networkId: string;
  readonly name: string;
  /** The port's IPv4 address, or null on a network that is not Berth's own. */
  readonly address: string | null;
  /** Whether the port was made for its server and is removed with it. */
  readonly endsWithServer: boolean;
  /** Empty when the port requests no resources. */
  readonly groups: readonly PortGroup[];
  /** The ids of its security groups; null for its project's default group. */
  readonly securityGroups: readonly string[] | null;
  readonly createdAtMs: number;
  /** The server that has the port or is about to get it, or null. `ageMs` is the age of the binding by the store's own clock. */
  readonly binding: { readonly serverUuid: string; readonly atMs: number; readonly ageMs: number } | null;
}
