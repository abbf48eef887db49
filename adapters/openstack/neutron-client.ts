import {
  type AskedBy,
  type CreatePortsOutcome,
  type NetworkFilter,
  type Networking,
  type NeutronNetwork,
  type NeutronPort,
  type NeutronPortFilter,
  type NewNeutronPort,
  OWN_NAME,
  type PortUpdate,
  type UpdatePortOutcome,
} from "../../core/stores/networking.ts";
import { NetworkingError } from "../../core/stores/networking-error.ts";
import type { CreateBindingOutcome, HostBinding, NewHostBinding } from "../../core/stores/port-bindings.ts";
import { CHANGED_STATUS, expectedRefusal, FORBIDDEN_STATUS } from "./expected-refusal.ts";
import type { NeighbourAnswer, NeighbourCall, NeighbourClient } from "./neighbour-client.ts";
import { NeighbourError } from "./neighbour-error.ts";
import { bindingOf, listedItems, NORMAL_VNIC, networkOf, portOf } from "./neutron-documents.ts";
import { readPages } from "./neutron-pages.ts";

/** How Neutron is found in the catalogue. */
export const NEUTRON = { service: "Neutron", types: ["network"] } as const;
/** Neutron's words for refusals that are expected when ports are made. */
const NO_ADDRESS = [
  "IpAddressGenerationFailure",
  "IpAddressGenerationFailureAllSubnets",
  "IpAddressGenerationFailureNoMatchingSubnet",
];
const ADDRESS_TAKEN = ["IpAddressInUse", "IpAddressAlreadyAllocated"];

/** Bindings of a port to several hosts. */
const BINDINGS_EXTENSION = "binding-extended";

const bindingsPath = (portId: string): string => `/v2.0/ports/${encodeURIComponent(portId)}/bindings`;

/** The filter of one list, and the path below which Neutron has the items. */
type Filter = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Neutron over HTTP. A port is changed with `If-Match`, so a late call changes nothing that a later one has written.
 *
 * Source: https://docs.openstack.org/api-ref/network/v2/ (revisions: the extension `revision-if-match`)
 */
export class NeutronClient implements Networking {
  readonly #client: Pick<NeighbourClient, "call">;

  /** The caller closes the client. */
  constructor(client: Pick<NeighbourClient, "call">) {
    this.#client = client;
  }

  async networks(filter: NetworkFilter, by: AskedBy): Promise<readonly NeutronNetwork[]> {
    const { ids, projectId, isShared, isExternal } = filter;
    if (ids?.length === 0) return [];
    const values = { id: ids, tenant_id: projectId, shared: flag(isShared), "router:external": flag(isExternal) };
    return (await this.#list("networks", values, by)).map(networkOf);
  }

  async autoNetwork(projectId: string, by: AskedBy): Promise<NeutronNetwork | null> {
    const path = `/v2.0/auto-allocated-topology/${encodeURIComponent(projectId)}`;
    try {
      const answer = await this.#call({ method: "GET", path, ...by, expect: [200] });
      const { auto_allocated_topology: topology } = (answer.body ?? {}) as {
        auto_allocated_topology?: { id?: unknown };
      };
      const ids = typeof topology?.id === "string" ? [topology.id] : [];
      const [network] = await this.networks({ ids }, by);
      return network ?? null;
    } catch (error) {
      // 409: the cloud lacks what it takes. 404: Neutron lacks the extension.
      if (error instanceof NeighbourError) return null;
      throw error;
    }
  }

  async ports({ id, deviceIds, networkId, address }: NeutronPortFilter, by: AskedBy): Promise<readonly NeutronPort[]> {
    if (deviceIds?.length === 0) return [];
    const fixed = address === undefined ? undefined : `ip_address=${address}`;
    const filter = { id, device_id: deviceIds, network_id: networkId, fixed_ips: fixed };
    return (await this.#list("ports", filter, by)).map(portOf);
  }

  async createPorts(ports: readonly NewNeutronPort[], by: AskedBy): Promise<CreatePortsOutcome> {
    if (ports.length === 0) return { kind: "created", ports: [] };
    try {
      const body = { ports: ports.map(newPortBody) };
      const answer = await this.#call({ method: "POST", path: "/v2.0/ports", body, ...by, expect: [201] });
      return { kind: "created", ports: inOrder(ports, listedItems(answer.body, "ports").map(portOf)) };
    } catch (error) {
      return outcomeOfRefusal(error);
    }
  }

  async updatePort(
    id: string,
    update: PortUpdate,
    revision: number,
    by: AskedBy = OWN_NAME,
  ): Promise<UpdatePortOutcome> {
    try {
      const answer = await this.#call({
        method: "PUT",
        path: `/v2.0/ports/${encodeURIComponent(id)}`,
        headers: { "if-match": `revision_number=${revision}` },
        body: { port: updateBody(update) },
        ...by,
        expect: [200],
      });
      return { kind: "updated", port: portOf((answer.body as { port?: unknown } | null)?.port) };
    } catch (error) {
      if (!(error instanceof NeighbourError)) throw error;
      if (error.status === CHANGED_STATUS) return { kind: "changed" };
      if (error.code === "not-found") return { kind: (await this.#restoreBinding(id)) ? "changed" : "gone" };
      return { kind: error.status === FORBIDDEN_STATUS ? "forbidden" : "refused", why: error.why };
    }
  }

  async deletePort(id: string, revision: number | null): Promise<"deleted" | "changed"> {
    const path = `/v2.0/ports/${encodeURIComponent(id)}`;
    const headers = revision === null ? {} : { "if-match": `revision_number=${revision}` };
    try {
      await this.#call({ method: "DELETE", path, headers, ...OWN_NAME, expect: [204], isRepeatable: true });
    } catch (error) {
      if (!(error instanceof NeighbourError)) throw error;
      if (error.status === CHANGED_STATUS) return "changed";
      if (error.code !== "not-found") throw new NetworkingError("bad-answer", error.message);
      if (await this.#restoreBinding(id)) return "changed";
    }
    return "deleted";
  }

  async hasBindings(): Promise<boolean> {
    const path = `/v2.0/extensions/${BINDINGS_EXTENSION}`;
    return (await this.#ownCall({ method: "GET", path, expect: [200, 404] })).status === 200;
  }

  async bindings(portId: string): Promise<readonly HostBinding[] | null> {
    return (await this.#allBindings(portId))?.filter(({ host }) => host !== "") ?? null;
  }

  async createBinding(portId: string, { host, vnicType, profile }: NewHostBinding): Promise<CreateBindingOutcome> {
    const binding = { host, vnic_type: vnicType, profile };
    const call = { method: "POST", path: bindingsPath(portId), body: { binding }, ...OWN_NAME } as const;
    try {
      const answer = await this.#client.call({ ...call, expect: [200, 201] });
      return { kind: "created", binding: bindingOf((answer.body as { binding?: unknown } | null)?.binding) };
    } catch (error) {
      // Neutron answers so when no driver can connect the port, and keeps nothing of the binding then. It also answers so to any fault of its own.
      if (error instanceof NeighbourError && error.status === 500)
        return { kind: "refused", why: error.why, mayPass: true };
      const refusal = expectedRefusal(error, call);
      if (refusal.code === "not-found") return { kind: "gone" };
      return refusal.code === "conflict" ? { kind: "exists" } : { kind: "refused", why: refusal.why, mayPass: false };
    }
  }

  async activateBinding(portId: string, host: string): Promise<"active" | "missing"> {
    const path = `${bindingsPath(portId)}/${encodeURIComponent(host)}/activate`;
    // 409: it is active already.
    const answer = await this.#ownCall({ method: "PUT", path, expect: [200, 404, 409] });
    return answer.status === 404 ? "missing" : "active";
  }

  async deleteBinding(portId: string, host: string): Promise<void> {
    const path = `${bindingsPath(portId)}/${encodeURIComponent(host)}`;
    await this.#ownCall({ method: "DELETE", path, expect: [200, 204, 404] });
  }

  /** Also the one to no host, which is the active one of a port that is bound nowhere. */
  async #allBindings(portId: string): Promise<readonly HostBinding[] | null> {
    const answer = await this.#ownCall({ method: "GET", path: bindingsPath(portId), expect: [200, 404] });
    return answer.status === 404 ? null : listedItems(answer.body, "bindings").map(bindingOf);
  }

  /**
   * Neutron answers 404 to changes and to the deletion of a port that it lists if the port's active binding was deleted. Such a port gets the active
   * binding of one that is bound nowhere, and loses the prepared ones, which would be in the way of its next binding. False if the port is gone.
   */
  async #restoreBinding(portId: string): Promise<boolean> {
    if (!(await this.#isListed(portId))) return false;
    const left = (await this.#allBindings(portId)) ?? [];
    if (left.some(({ isActive }) => isActive)) return true;
    for (const { host } of left) await this.deleteBinding(portId, host);
    const { vnicType, profile } = left[0] ?? { vnicType: NORMAL_VNIC, profile: {} };
    const outcome = await this.createBinding(portId, { host: "", vnicType, profile });
    if (outcome.kind === "created" || outcome.kind === "exists") return true;
    if (outcome.kind === "gone" && !(await this.#isListed(portId))) return false;
    const why = outcome.kind === "refused" ? outcome.why : "404";
    throw new NetworkingError(
      "bad-answer",
      `Neutron lists port ${portId} without an active binding, so that it cannot be changed, and does not take a new one: ${why}`,
    );
  }

  async #isListed(id: string): Promise<boolean> {
    return (await this.ports({ id }, OWN_NAME)).length > 0;
  }

  /** A call without refusals that its caller expects. */
  async #ownCall(call: Pick<NeighbourCall, "method" | "path" | "expect">): Promise<NeighbourAnswer> {
    const own = { ...call, ...OWN_NAME };
    return this.#call(own).catch((error: unknown) => {
      throw error instanceof NeighbourError ? new NetworkingError("bad-answer", error.message) : error;
    });
  }

  async #list(collection: string, filter: Filter, by: AskedBy): Promise<readonly unknown[]> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(filter))
      for (const one of value === undefined ? [] : [value].flat()) query.append(name, one);
    const ask = (path: string) => this.#call({ method: "GET", path, ...by, expect: [200] });
    try {
      return (await readPages(collection, `/v2.0/${collection}`, query.toString(), ask)) ?? [];
    } catch (error) {
      // Lists have no expected refusals, so Neutron did not understand the question.
      throw error instanceof NeighbourError ? new NetworkingError("bad-answer", error.message) : error;
    }
  }

  /** Throws `NeighbourError` for refusals that the caller may expect, and `NetworkingError` for everything else. */
  async #call(call: NeighbourCall): Promise<NeighbourAnswer> {
    try {
      return await this.#client.call(call);
    } catch (error) {
      throw expectedRefusal(error, call);
    }
  }
}

const flag = (value: boolean | undefined): string | undefined =>
  value === undefined ? undefined : value ? "True" : "False";

function newPortBody(port: NewNeutronPort): Record<string, unknown> {
  return {
    network_id: port.networkId,
    tenant_id: port.projectId,
    admin_state_up: true,
    device_id: port.serverUuid,
    device_owner: port.deviceOwner,
    ...(port.address !== null && { fixed_ips: [{ ip_address: port.address }] }),
    ...(port.securityGroups !== null && { security_groups: port.securityGroups }),
    ...(port.host !== null && { "binding:host_id": port.host }),
  };
}

/** A port that leaves its server is unbound with it. Source: `_unbind_ports` in nova/network/neutron.py. */
function updateBody({ device, host, profile, securityGroups, fixedAddresses }: PortUpdate): Record<string, unknown> {
  const fixed = fixedAddresses?.map(({ subnetId, address }) => ({
    subnet_id: subnetId,
    ...(address !== null && { ip_address: address }),
  }));
  return {
    ...(fixed !== undefined && { fixed_ips: fixed }),
    ...(device === null && { device_id: "", device_owner: "", "binding:host_id": "" }),
    ...(device && { device_id: device.serverUuid, device_owner: device.owner }),
    ...(host !== undefined && { "binding:host_id": host }),
    ...(profile !== undefined && { "binding:profile": profile }),
    ...(securityGroups !== undefined && { security_groups: securityGroups }),
  };
}

/** Neutron's order is not promised, so each port of the request gets a port of the answer that fits it. */
function inOrder(wanted: readonly NewNeutronPort[], made: readonly NeutronPort[]): readonly NeutronPort[] {
  const left = [...made];
  return wanted.map(({ serverUuid, networkId, address }) => {
    const has = (port: NeutronPort) => address === null || port.fixedAddresses.some((one) => one.address === address);
    const at = left.findIndex((port) => port.deviceId === serverUuid && port.networkId === networkId && has(port));
    const [port] = at === -1 ? [] : left.splice(at, 1);
    if (port === undefined)
      throw new NetworkingError("bad-answer", "Neutron's answer lacks a port that it was asked for");
    return port;
  });
}

function outcomeOfRefusal(error: unknown): CreatePortsOutcome {
  if (!(error instanceof NeighbourError)) throw error;
  if (error.code === "over-quota") return { kind: "over-quota" };
  if (error.status === FORBIDDEN_STATUS) return { kind: "forbidden", why: error.why };
  if (NO_ADDRESS.includes(error.type ?? "")) return { kind: "no-address" };
  if (ADDRESS_TAKEN.includes(error.type ?? "")) return { kind: "address-taken" };
  return { kind: "refused", why: error.why };
}
