import type { KnownCall } from "../../http/call.ts";

/** A port of a server with the security groups that it is in. */
export interface GroupedPort {
  readonly id: string;
  readonly serverUuid: string;
  /** The ids of its groups. */
  readonly groups: readonly string[];
  /** Groups apply to ports with addresses only. */
  readonly hasAddress: boolean;
  /** Gives the port other groups if it has not been changed since it was read. */
  setGroups(groups: readonly string[]): Promise<SetGroupsOutcome>;
}

export type SetGroupsOutcome =
  | { readonly kind: "set" }
  /** The port or a group has been changed since. */
  | { readonly kind: "changed" }
  /** One of the groups does not exist, or no longer. */
  | { readonly kind: "no-group" }
  | { readonly kind: "refused"; readonly why: string };

/** The ports of servers, in Neutron or of Berth's own. */
export interface GroupedPorts {
  portsOf(serverUuids: readonly string[], call: KnownCall): Promise<readonly GroupedPort[]>;
}
