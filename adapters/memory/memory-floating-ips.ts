import { randomUUID } from "node:crypto";
import type {
  AssociateOutcome,
  CreateFloatingIpOutcome,
  DeleteFloatingIpOutcome,
  FloatingIp,
  FloatingIpFilter,
  FloatingIps,
  FloatingIpTarget,
  NewFloatingIp,
} from "../../core/stores/floating-ips.ts";
import type { AskedBy, NeutronNetwork, NeutronPort } from "../../core/stores/networking.ts";
import { ipv4At } from "../../core/tasks/ipv4.ts";

type Kept = Omit<FloatingIp, "serverUuid">;

/** The part of the twin of Neutron that floating IPs stand on. */
export interface FloatingIpGround {
  ports(): readonly NeutronPort[];
  network(
    id: string,
  ): (Pick<NeutronNetwork, "isExternal"> & { readonly first: string; readonly size: number }) | undefined;
  /** Does the work of a call, unless the call does not arrive. */
  answer<Value>(work: () => Value): Promise<Value>;
}

/**
 * The in-process twin of Neutron's floating IPs. The ports of networks in `unreachable` have no router to an external network. Like the extension
 * `fip-port-details`, it says which server has the port.
 */
export class MemoryFloatingIps implements FloatingIps {
  readonly unreachable = new Set<string>();
  /** Maximum number of floating IPs of each project. */
  floatingIpsMax = Number.POSITIVE_INFINITY;
  readonly #kept = new Map<string, Kept>();
  readonly #ground: FloatingIpGround;

  constructor(ground: FloatingIpGround) {
    this.#ground = ground;
  }

  floatingIps(filter: FloatingIpFilter, { callerToken }: AskedBy): Promise<readonly FloatingIp[]> {
    return this.#ground.answer(() =>
      this.#present()
        .filter(({ projectId }) => callerToken === null || projectId === callerToken)
        .filter(({ id }) => filter.id === undefined || id === filter.id)
        .filter(({ projectId }) => filter.projectId === undefined || projectId === filter.projectId)
        .filter(({ address }) => filter.address === undefined || address === filter.address)
        .filter(({ portId }) => filter.portIds === undefined || filter.portIds.includes(portId ?? "")),
    );
  }

  createFloatingIp(
    { projectId, networkId }: NewFloatingIp,
    { callerToken }: AskedBy,
  ): Promise<CreateFloatingIpOutcome> {
    return this.#ground.answer(() => {
      if (callerToken !== null && projectId !== callerToken)
        return { kind: "forbidden", why: "(rule:create_floatingip) is disallowed by policy" };
      const network = this.#ground.network(networkId);
      if (network === undefined) return { kind: "gone", why: `Network ${networkId} could not be found.` };
      if (!network.isExternal) return { kind: "invalid", why: `Network ${networkId} is not a valid external network.` };
      const present = this.#present();
      if (present.filter((one) => one.projectId === projectId).length >= this.floatingIpsMax)
        return { kind: "over-quota" };
      const taken = new Set(present.map(({ address }) => address));
      const address = Array.from({ length: network.size }, (_, at) => ipv4At(network.first, at)).find(
        (one) => !taken.has(one),
      );
      if (address === undefined) return { kind: "no-address" };
      const made = { id: randomUUID(), address, projectId, networkId, portId: null, fixedAddress: null, revision: 1 };
      this.#kept.set(made.id, made);
      return { kind: "created", floatingIp: { ...made, serverUuid: null } };
    });
  }

  associate(
    { id, revision }: Pick<FloatingIp, "id" | "revision">,
    target: FloatingIpTarget | null,
    { callerToken }: AskedBy,
  ): Promise<AssociateOutcome> {
    return this.#ground.answer(() => {
      const kept = this.#present().find((one) => one.id === id);
      if (kept === undefined || kept.revision !== revision) return { kind: "changed" };
      const refusal = target === null ? null : this.#refusal(kept, target, callerToken);
      if (refusal !== null) return refusal;
      const { portId = null, fixedAddress = null } = target ?? {};
      const { serverUuid: _server, ...own } = kept;
      this.#kept.set(id, { ...own, portId, fixedAddress, revision: revision + 1 });
      return { kind: "associated" };
    });
  }

  deleteFloatingIp(id: string, _by: AskedBy): Promise<Exclude<DeleteFloatingIpOutcome, { kind: "forbidden" }>> {
    return this.#ground.answer(() =>
      this.#kept.delete(id) ? { kind: "deleted" } : { kind: "gone", why: `Floating IP ${id} could not be found` },
    );
  }

  #refusal(
    { id, address }: FloatingIp,
    { portId, fixedAddress }: FloatingIpTarget,
    callerToken: string | null,
  ): AssociateOutcome | null {
    const port = this.#ground.ports().find((one) => one.id === portId);
    if (port === undefined || (callerToken !== null && port.projectId !== callerToken))
      return { kind: "refused", why: `Port ${portId} could not be found.` };
    if (!port.fixedAddresses.some((one) => one.address === fixedAddress))
      return { kind: "refused", why: `Port ${portId} does not have fixed ip ${fixedAddress}.` };
    if (this.unreachable.has(port.networkId))
      return { kind: "refused", why: "External network is not reachable from subnet." };
    const other = this.#present().find((one) => one.portId === portId && one.fixedAddress === fixedAddress);
    if (other === undefined || other.id === id) return null;
    return {
      kind: "taken",
      why: `Cannot associate floating IP ${address} (${id}) with port ${portId} using fixed IP ${fixedAddress}, as that fixed IP already has a floating IP on external network.`,
    };
  }

  /** A floating IP leads to nothing as soon as its port, or the fixed address, is gone. */
  #present(): readonly FloatingIp[] {
    const ports = new Map(this.#ground.ports().map((port) => [port.id, port]));
    return [...this.#kept.values()].map((one) => {
      const port = ports.get(one.portId ?? "");
      const isThere = port?.fixedAddresses.some(({ address }) => address === one.fixedAddress) === true;
      return isThere
        ? { ...one, serverUuid: port.deviceId || null }
        : { ...one, portId: null, fixedAddress: null, serverUuid: null };
    });
  }
}
