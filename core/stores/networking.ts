import type { PortGroup } from "../tasks/port-record.ts";
import type { JsonFields, PortBindings } from "./port-bindings.ts";

/** A network of the Networking service (Neutron). */
export interface NeutronNetwork {
  readonly id: string;
  readonly name: string;
  readonly projectId: string;
  readonly isShared: boolean;
  /** A network outside the cloud (`router:external`). */
  readonly isExternal: boolean;
  readonly subnetIds: readonly string[];
  /** The physical network of a flat or VLAN network. Absent for other networks, and for callers who may not see it. */
  readonly physicalNetwork?: string;
  /** Whether the network has a QoS policy, so that the ports that are made there may request resources. */
  readonly hasQosPolicy: boolean;
}

export interface FixedAddress {
  readonly address: string;
  readonly subnetId: string;
}

/** A port of the Networking service. */
export interface NeutronPort {
  readonly id: string;
  readonly projectId: string;
  readonly networkId: string;
  readonly macAddress: string;
  readonly fixedAddresses: readonly FixedAddress[];
  /** `none` and `deferred` for ports that need no address yet. */
  readonly ipAllocation: string;
  /** `ACTIVE`, `DOWN`, `BUILD` or `ERROR`. */
  readonly status: string;
  /** The server that has the port; empty if nothing has it. */
  readonly deviceId: string;
  readonly securityGroups: readonly string[];
  /** The host to which the port is bound; empty for none, and for callers who may not see it. */
  readonly host: string;
  /** How the port is connected on its host; `binding_failed` if no driver can do it, and empty for callers who may not see it. */
  readonly vifType: string;
  /** `normal`, `direct`, … */
  readonly vnicType: string;
  /** The details and the profile of the binding. Empty for callers who may not see them. */
  readonly vifDetails: JsonFields;
  readonly profile: JsonFields;
  /** Raised by each change. The answer to a change may have an earlier one already, since Neutron goes on to bind the port. */
  readonly revision: number;
  /** The request groups of its QoS policy. Empty for callers who may not see them. */
  readonly groups: readonly PortGroup[];
}

/** A call in the name of a caller of Berth, or, with a null token, in this service's own name. */
export interface AskedBy {
  readonly callerToken: string | null;
  /** `req-<uuid>`; null for work that no request waits for. */
  readonly requestId: string | null;
}

/** The author of work in this service's own name. */
export const OWN_NAME: AskedBy = { callerToken: null, requestId: null };

/** A port to make for a server. */
export interface NewNeutronPort {
  readonly projectId: string;
  readonly networkId: string;
  readonly serverUuid: string;
  /** `compute:<zone>` */
  readonly deviceOwner: string;
  /** The address that the port must have, or null for any. */
  readonly address: string | null;
  /** The ids of its security groups, or null for the project's default group. */
  readonly securityGroups: readonly string[] | null;
  /** The host to which it is bound at once, or null. */
  readonly host: string | null;
}

export type CreatePortsOutcome =
  /** The ports, in the order of the request. */
  | { readonly kind: "created"; readonly ports: readonly NeutronPort[] }
  | { readonly kind: "over-quota" }
  | { readonly kind: "no-address" }
  | { readonly kind: "address-taken" }
  /** The policy of the Networking service does not let the caller make such a port. */
  | { readonly kind: "forbidden"; readonly why: string }
  | { readonly kind: "refused"; readonly why: string };

/** A change of a port. Fields that are left out stay. */
export interface PortUpdate {
  /** The server that gets the port; null takes it from its server, and from the host to which it is bound. */
  readonly device?: { readonly serverUuid: string; readonly owner: string } | null;
  /** The host to which the port gets bound. */
  readonly host?: string;
  /** The whole profile of the binding. */
  readonly profile?: JsonFields;
  readonly securityGroups?: readonly string[];
  /** All addresses that the port is to have. A null address is a new one of the subnet. */
  readonly fixedAddresses?: readonly { readonly subnetId: string; readonly address: string | null }[];
}

export type UpdatePortOutcome =
  | { readonly kind: "updated"; readonly port: NeutronPort }
  /** The port has been changed since it was read; nothing is written. */
  | { readonly kind: "changed" }
  | { readonly kind: "gone" }
  /** The policy of the Networking service does not let the caller make this change. */
  | { readonly kind: "forbidden"; readonly why: string }
  | { readonly kind: "refused"; readonly why: string };

/** How many servers one question for ports may name: Neutron takes addresses of at most 8 KiB. Source: `MAX_SEARCH_IDS` in nova/network/security_group_api.py. */
export const DEVICE_IDS_MAX = 150;

/** The ports that have all of the given values. */
export interface NeutronPortFilter {
  readonly id?: string;
  /** The servers that have the ports, at most `DEVICE_IDS_MAX`. */
  readonly deviceIds?: readonly string[];
  readonly networkId?: string;
  readonly address?: string;
}

export interface NetworkFilter {
  readonly ids?: readonly string[];
  readonly projectId?: string;
  readonly isShared?: boolean;
  readonly isExternal?: boolean;
}

/**
 * The Networking service as Berth uses it. Both implementations (Neutron, in-memory) pass test/contract/networking. Operating failures throw
 * a `NetworkingError`. After one with the code `unreachable`, a change may have been made.
 *
 * Source: https://docs.openstack.org/api-ref/network/v2/
 */
export interface Networking extends PortBindings {
  /** The networks that the caller may see. */
  networks(filter: NetworkFilter, by: AskedBy): Promise<readonly NeutronNetwork[]>;
  /**
   * The network that Neutron makes for a project that has none (the extension `auto-allocated-topology`), or null if it cannot. Repeatable: a
   * project has one such network.
   */
  autoNetwork(projectId: string, by: AskedBy): Promise<NeutronNetwork | null>;
  /** The ports that the caller may see. */
  ports(filter: NeutronPortFilter, by: AskedBy): Promise<readonly NeutronPort[]>;
  /** Makes all of these ports or none. The policy for the caller applies, also to the address and the project that a port is to have. */
  createPorts(ports: readonly NewNeutronPort[], by: AskedBy): Promise<CreatePortsOutcome>;
  /**
   * Changes a port if it still has this revision. Of two calls with the same revision, one at most has an effect. Without `by`, the change is made in
   * this service's own name.
   */
  updatePort(id: string, update: PortUpdate, revision: number, by?: AskedBy): Promise<UpdatePortOutcome>;
  /**
   * Deletes a port if it still has this revision, or with null in any case. A port that does not exist counts as deleted. A late call with a revision deletes
   * nothing that has been changed since.
   */
  deletePort(id: string, revision: number | null): Promise<"deleted" | "changed">;
}

/** Neutron's name for a port that no driver can connect on its host. */
export const BINDING_FAILED = "binding_failed";
