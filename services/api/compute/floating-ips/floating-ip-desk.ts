import type {
  AssociateOutcome,
  FloatingIp,
  FloatingIpFilter,
  FloatingIpTarget,
} from "../../../../core/stores/floating-ips.ts";
import type { NeutronNetwork } from "../../../../core/stores/networking.ts";
import { askedBy, askNeighbour } from "../../http/ask-neighbour.ts";
import type { KnownCall } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import { badRequest, conflict, Fault, notFound } from "../../http/fault.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";

/** The pool of calls that name none. Source: Nova's setting `default_floating_pool`. */
const DEFAULT_POOL = "nova";

/** A floating IP with the name of its external network. */
export interface PooledFloatingIp {
  readonly floatingIp: FloatingIp;
  readonly pool: string;
}

/**
 * The calls about floating IPs, which are those of Neutron. Berth's own network has nothing outside, so it answers like a Neutron without external
 * networks. Like Nova, Neutron is asked in the caller's name. Refusals are thrown with Nova's statuses and messages.
 */
export class FloatingIpDesk {
  readonly #neutron: NeutronDeps | null;

  constructor(neutron: NeutronDeps | null) {
    this.#neutron = neutron;
  }

  /** The external networks that the caller may see. */
  async pools(call: KnownCall): Promise<readonly NeutronNetwork[]> {
    const neutron = this.#neutron;
    if (neutron === null) return [];
    return askNeighbour(() => neutron.networking.networks({ isExternal: true }, askedBy(neutron, call)));
  }

  /** The floating IPs of the caller's project. */
  async list(call: KnownCall): Promise<readonly PooledFloatingIp[]> {
    const found = await this.#find(call, { projectId: call.identity.projectId });
    return this.#pooled(call, found);
  }

  /** Throws a 404 for a floating IP that the caller may not see. */
  async show(call: KnownCall, asked: string): Promise<PooledFloatingIp> {
    const id = canonicalUuid(asked);
    const found = id === null ? [] : await this.#find(call, { id });
    const [pooled] = await this.#pooled(call, found);
    if (pooled === undefined) throw notFound(`Floating IP not found for ID ${asked.slice(0, 100)}`);
    return pooled;
  }

  /** Finds the one floating IP with an address. Throws a 404 with the text `missing` if there is none, and `ambiguous` if there are several. */
  async byAddress(
    call: KnownCall,
    address: string,
    { ambiguous, missing }: { readonly ambiguous: (message: string) => Fault; readonly missing: string },
  ): Promise<FloatingIp> {
    const [found, ...others] = await this.#find(call, { address });
    if (found === undefined) throw notFound(missing);
    if (others.length > 0) throw ambiguous(`Multiple floating IPs are found for address ${address}.`);
    return found;
  }

  async create(call: KnownCall, pool: string | null): Promise<PooledFloatingIp> {
    const neutron = this.#neutron;
    const name = pool ?? DEFAULT_POOL;
    const networks = (await this.pools(call)).filter((network) => network.id === name || network.name === name);
    const [network, ...others] = networks;
    if (neutron === null || network === undefined) throw notFound("Floating IP pool not found.");
    if (others.length > 0) throw badRequest(`Multiple floating IP pools matches found for name '${name}'`);
    const wanted = { projectId: call.identity.projectId, networkId: network.id };
    const outcome = await askNeighbour(() => neutron.floatingIps.createFloatingIp(wanted, askedBy(neutron, call)));
    switch (outcome.kind) {
      case "created":
        return { floatingIp: outcome.floatingIp, pool: network.name || network.id };
      case "no-address":
        throw notFound(pool === null ? "No more floating IPs available." : `No more floating IPs in pool ${pool}.`);
      case "over-quota":
        throw new Fault(403, pool === null ? "IP allocation over quota." : `IP allocation over quota in pool ${pool}.`);
      case "forbidden":
        throw new Fault(403, outcome.why);
      case "gone":
        throw notFound("Floating IP pool not found.");
      case "invalid":
        throw badRequest(outcome.why);
      default:
        return outcome satisfies never;
    }
  }

  async remove(call: KnownCall, { id, address }: FloatingIp): Promise<void> {
    const neutron = this.#neutron;
    if (neutron === null) return;
    const outcome = await askNeighbour(() => neutron.floatingIps.deleteFloatingIp(id, askedBy(neutron, call)));
    if (outcome.kind === "forbidden") throw new Fault(403, outcome.why);
    if (outcome.kind === "gone") throw notFound(`Floating IP not found for address ${address}.`);
  }

  /** Lets a floating IP lead to a fixed address of a port, or with null to nothing. Throws a 409 if others kept changing it. */
  async associate(
    call: KnownCall,
    floatingIp: FloatingIp,
    target: FloatingIpTarget | null,
  ): Promise<Exclude<AssociateOutcome, { kind: "changed" | "forbidden" }>> {
    const neutron = this.#neutron;
    if (neutron === null) throw notFound("floating IP not found");
    const outcome = await askNeighbour(() => neutron.floatingIps.associate(floatingIp, target, askedBy(neutron, call)));
    if (outcome.kind === "forbidden") throw new Fault(403, outcome.why);
    if (outcome.kind === "changed")
      throw conflict(`Floating IP ${floatingIp.address} has just been changed by another call; try again.`);
    return outcome;
  }

  async #find(call: KnownCall, filter: FloatingIpFilter): Promise<readonly FloatingIp[]> {
    const neutron = this.#neutron;
    if (neutron === null) return [];
    const found = await askNeighbour(() => neutron.floatingIps.floatingIps(filter, askedBy(neutron, call)));
    const { projectId, isAdmin } = call.identity;
    return found.filter((one) => neutron.sendsTokens || isAdmin || one.projectId === projectId);
  }

  async #pooled(call: KnownCall, found: readonly FloatingIp[]): Promise<readonly PooledFloatingIp[]> {
    const neutron = this.#neutron;
    if (neutron === null || found.length === 0) return [];
    const ids = [...new Set(found.map(({ networkId }) => networkId))];
    const networks = await askNeighbour(() => neutron.networking.networks({ ids }, askedBy(neutron, call)));
    const names = new Map(networks.map(({ id, name }) => [id, name]));
    return found.map((floatingIp) => ({ floatingIp, pool: names.get(floatingIp.networkId) || floatingIp.networkId }));
  }
}
