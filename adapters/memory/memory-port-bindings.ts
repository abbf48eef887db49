import { BINDING_FAILED, type NeutronPort } from "../../core/stores/networking.ts";
import type { CreateBindingOutcome, HostBinding, NewHostBinding } from "../../core/stores/port-bindings.ts";

/** How a driver connects a port on a host. */
type Bound = Pick<NeutronPort, "host" | "vifType" | "vifDetails" | "status">;

/** The bindings of the twin's ports. The active one is in the port itself. */
export class MemoryPortBindings {
  readonly #ports: {
    port(id: string): NeutronPort | undefined;
    bind(port: NeutronPort): void;
    bound(host: string, port: Pick<NeutronPort, "vnicType" | "networkId">): Bound;
  };
  /** By port. Those of ports that are gone do not count. */
  readonly #prepared = new Map<string, readonly HostBinding[]>();
  /** The ports whose active binding was deleted. Other ports without a host have an active binding to none. */
  readonly #withoutActive = new Set<string>();

  constructor(ports: {
    port(id: string): NeutronPort | undefined;
    bind(port: NeutronPort): void;
    bound(host: string, port: Pick<NeutronPort, "vnicType" | "networkId">): Bound;
  }) {
    this.#ports = ports;
  }

  all(portId: string): readonly HostBinding[] | null {
    const port = this.#ports.port(portId);
    if (port === undefined) return null;
    return port.host === "" ? this.#of(portId) : [activeOf(port), ...this.#of(portId)];
  }

  isPrepared(portId: string, host: string): boolean {
    return this.#of(portId).some((one) => one.host === host);
  }

  /** Whether Neutron takes no changes of this port. */
  lacksActive(portId: string): boolean {
    return this.#withoutActive.has(portId) && this.#ports.port(portId)?.host === "";
  }

  /** Makes a port that has lost its active binding one that is bound nowhere. Returns whether it was such a port. */
  restore(portId: string): boolean {
    const port = this.#ports.port(portId);
    if (port === undefined || !this.lacksActive(portId)) return false;
    this.#withoutActive.delete(portId);
    this.#prepared.delete(portId);
    this.#ports.bind({ ...port, revision: port.revision + 1 });
    return true;
  }

  create(portId: string, wanted: NewHostBinding): CreateBindingOutcome {
    const port = this.#ports.port(portId);
    if (port === undefined) return { kind: "gone" };
    const isActive = this.lacksActive(portId);
    const isTaken = (port.host === wanted.host && !isActive) || this.isPrepared(portId, wanted.host);
    if (isTaken) return { kind: "exists" };
    const { vifType, vifDetails, status } = this.#ports.bound(wanted.host, port);
    if (vifType === BINDING_FAILED)
      return { kind: "refused", why: "Request Failed: internal server error", mayPass: true };
    const binding: HostBinding = { ...wanted, isActive, vifType, vifDetails };
    if (isActive) this.#withoutActive.delete(portId);
    if (isActive) this.#ports.bind({ ...port, ...wanted, vifType, vifDetails, status, revision: port.revision + 1 });
    else {
      this.#prepared.set(portId, [...this.#of(portId), binding]);
      this.#ports.bind({ ...port, revision: port.revision + 1 });
    }
    return { kind: "created", binding };
  }

  /** The binding that was active keeps its host, and is connected no longer. */
  activate(portId: string, host: string): "active" | "missing" {
    const port = this.#ports.port(portId);
    if (port?.host === host) return "active";
    const chosen = this.#of(portId).find((one) => one.host === host);
    if (port === undefined || chosen === undefined) return "missing";
    const { vifType, vifDetails, vnicType, profile } = chosen;
    const former = { ...activeOf(port), isActive: false, vifType: "unbound", vifDetails: {} };
    const others = this.#of(portId).filter((one) => one !== chosen);
    this.#prepared.set(portId, port.host === "" ? others : [...others, former]);
    const { status } = this.#ports.bound(host, port);
    this.#ports.bind({ ...port, host, vifType, vifDetails, vnicType, profile, status, revision: port.revision + 1 });
    return "active";
  }

  delete(portId: string, host: string): void {
    const port = this.#ports.port(portId);
    if (port?.host === host) {
      this.#withoutActive.add(portId);
      this.#ports.bind({ ...port, ...this.#ports.bound("", port), revision: port.revision + 1 });
    }
    this.#prepared.set(
      portId,
      this.#of(portId).filter((one) => one.host !== host),
    );
  }

  #of(portId: string): readonly HostBinding[] {
    return this.#ports.port(portId) === undefined ? [] : (this.#prepared.get(portId) ?? []);
  }
}

const activeOf = ({ host, vifType, vifDetails, vnicType, profile }: NeutronPort): HostBinding => ({
  ...{ host, isActive: true, vifType, vifDetails, vnicType, profile },
});
