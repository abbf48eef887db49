/** A value of JSON's type object, as another service has written it. */
export type JsonFields = Readonly<Record<string, unknown>>;

/** How a port is connected on one host. A port has one active binding at most; the others are prepared for a move. */
export interface HostBinding {
  readonly host: string;
  readonly isActive: boolean;
  /** `binding_failed` if no driver can connect the port on the host, and `unbound` if no driver was asked. */
  readonly vifType: string;
  /** What the host needs to know about the connection, such as the VLAN of a virtual function. */
  readonly vifDetails: JsonFields;
  /** `normal`, `direct`, `direct-physical`, `macvtap`, … */
  readonly vnicType: string;
  /** What the host, or Berth, has told Neutron about the connection, such as the slot of a PCI device. */
  readonly profile: JsonFields;
}

/** A binding to prepare. */
export type NewHostBinding = Pick<HostBinding, "host" | "vnicType" | "profile">;

export type CreateBindingOutcome =
  | { readonly kind: "created"; readonly binding: HostBinding }
  /** The port has a binding to the host already, which stays as it is. */
  | { readonly kind: "exists" }
  | { readonly kind: "gone" }
  /**
   * No driver can connect the port on this host, or Neutron does not take the binding. With `mayPass`, the answer is that of a fault of Neutron as well, so that
   * only its repetition shows that no driver can do it.
   */
  | { readonly kind: "refused"; readonly why: string; readonly mayPass: boolean };

/**
 * The bindings of ports to several hosts, of which one is active (Neutron's extension `binding-extended`). Bindings have no revisions: a late call may still
 * have its effect.
 *
 * Source: https://docs.openstack.org/api-ref/network/v2/#port-binding
 */
export interface PortBindings {
  /** Whether the service has bindings to several hosts. */
  hasBindings(): Promise<boolean>;
  /** All bindings of a port; null if the port is gone. */
  bindings(portId: string): Promise<readonly HostBinding[] | null>;
  /** Prepares a binding. It is active at once if the port has no active one. */
  createBinding(portId: string, binding: NewHostBinding): Promise<CreateBindingOutcome>;
  /** Makes a prepared binding the active one, and the one that was active a prepared one. An active binding stays active. */
  activateBinding(portId: string, host: string): Promise<"active" | "missing">;
  /**
   * Deletes a binding to a host, also the active one. A binding that does not exist counts as deleted. A port that has lost its active binding is bound to no
   * host. Until it gets one by `createBinding`, its next change or deletion answers `changed`, and has ended its prepared bindings then.
   */
  deleteBinding(portId: string, host: string): Promise<void>;
}
