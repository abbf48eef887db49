import type { AskedBy } from "./networking.ts";

/** A floating IP of the Networking service: an address of an external network that may lead to a fixed address of a port. */
export interface FloatingIp {
  readonly id: string;
  readonly address: string;
  readonly projectId: string;
  /** The external network, which Nova calls a pool. */
  readonly networkId: string;
  /** Null if it leads to no port. */
  readonly portId: string | null;
  readonly fixedAddress: string | null;
  /** The server that has the port; null if nothing has it, or if the caller may not see the port. */
  readonly serverUuid: string | null;
  /** Raised by each change. */
  readonly revision: number;
}

/** The floating IPs that have all of the given values. */
export interface FloatingIpFilter {
  readonly id?: string;
  readonly projectId?: string;
  readonly address?: string;
  readonly portIds?: readonly string[];
}

/** A floating IP to make for a project. */
export interface NewFloatingIp {
  readonly projectId: string;
  /** The external network. */
  readonly networkId: string;
}

/** Where a floating IP leads to. */
export interface FloatingIpTarget {
  readonly portId: string;
  readonly fixedAddress: string;
}

export type CreateFloatingIpOutcome =
  | { readonly kind: "created"; readonly floatingIp: FloatingIp }
  | { readonly kind: "no-address" | "over-quota" }
  | { readonly kind: "forbidden" | "invalid" | "gone"; readonly why: string };

export type AssociateOutcome =
  | { readonly kind: "associated" }
  /** The floating IP has been changed since it was read, or is gone; nothing is written. */
  | { readonly kind: "changed" }
  /** The policy of the Networking service does not let the caller do this. */
  | { readonly kind: "forbidden"; readonly why: string }
  /** The fixed address has another floating IP. */
  | { readonly kind: "taken"; readonly why: string }
  | { readonly kind: "refused"; readonly why: string };

export type DeleteFloatingIpOutcome =
  | { readonly kind: "deleted" }
  | { readonly kind: "forbidden"; readonly why: string }
  | { readonly kind: "gone"; readonly why: string };

/**
 * The floating IPs of the Networking service. Both implementations (Neutron, in-memory) pass test/contract/floating-ips. Operating failures throw a
 * `NetworkingError`. After one with the code `unreachable`, a change may have been made.
 *
 * Source: https://docs.openstack.org/api-ref/network/v2/#floating-ips-floatingips
 */
export interface FloatingIps {
  /** The floating IPs that the caller may see; none where the Networking service has no routers. */
  floatingIps(filter: FloatingIpFilter, by: AskedBy): Promise<readonly FloatingIp[]>;
  /** Gives the caller's project a floating IP of an external network. */
  createFloatingIp(floatingIp: NewFloatingIp, by: AskedBy): Promise<CreateFloatingIpOutcome>;
  /** Lets a floating IP lead to a fixed address of a port, or with null to nothing, if it still has the revision in which it was read. */
  associate(
    floatingIp: Pick<FloatingIp, "id" | "revision">,
    target: FloatingIpTarget | null,
    by: AskedBy,
  ): Promise<AssociateOutcome>;
  /** Gives a floating IP back, also one that leads to a port. */
  deleteFloatingIp(id: string, by: AskedBy): Promise<DeleteFloatingIpOutcome>;
}
