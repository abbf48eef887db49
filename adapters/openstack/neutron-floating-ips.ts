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
import type { AskedBy } from "../../core/stores/networking.ts";
import { NetworkingError } from "../../core/stores/networking-error.ts";
import { CHANGED_STATUS, expectedRefusal, IDS_MAX } from "./expected-refusal.ts";
import type { NeighbourAnswer, NeighbourCall, NeighbourClient } from "./neighbour-client.ts";
import { NeighbourError } from "./neighbour-error.ts";
import { readPages } from "./neutron-pages.ts";
import { documentFields, documentId, textField } from "./read-document.ts";

const PATH = "/v2.0/floatingips";
const NO_ADDRESS = ["IpAddressGenerationFailure", "ExternalIpAddressExhausted"];
const GONE = "FloatingIPNotFound";

/** The floating IPs of Neutron, over HTTP. A floating IP is changed with `If-Match`, so a late call changes nothing that a later one has written. */
export class NeutronFloatingIps implements FloatingIps {
  readonly #client: Pick<NeighbourClient, "call">;

  /** The caller closes the client. */
  constructor(client: Pick<NeighbourClient, "call">) {
    this.#client = client;
  }

  async floatingIps(filter: FloatingIpFilter, by: AskedBy): Promise<readonly FloatingIp[]> {
    const { id, projectId, address, portIds } = filter;
    const documents: unknown[] = [];
    for (let at = 0; at < (portIds?.length ?? 1); at += IDS_MAX) {
      const values = { id, tenant_id: projectId, floating_ip_address: address };
      const query = new URLSearchParams(Object.entries(values).filter((one): one is [string, string] => !!one[1]));
      for (const portId of portIds?.slice(at, at + IDS_MAX) ?? []) query.append("port_id", portId);
      // Without the extension `router`, the path does not exist.
      for (const document of (await this.#list("floatingips", PATH, query, by)) ?? []) documents.push(document);
    }
    return this.#withServers(documents, by);
  }

  async createFloatingIp({ projectId, networkId }: NewFloatingIp, by: AskedBy): Promise<CreateFloatingIpOutcome> {
    const body = { floatingip: { floating_network_id: networkId, tenant_id: projectId } };
    const answer = await this.#call({ method: "POST", path: PATH, body, ...by, expect: [201] });
    if (!(answer instanceof NeighbourError))
      return { kind: "created", floatingIp: floatingIpOf(documentFields(answer.body).floatingip, new Map()) };
    const { code, type, why } = answer;
    if (NO_ADDRESS.includes(type ?? "")) return { kind: "no-address" };
    if (code === "over-quota") return { kind: "over-quota" };
    if (code === "refused") return { kind: "forbidden", why };
    return { kind: code === "not-found" ? "gone" : "invalid", why };
  }

  async associate(
    { id, revision }: Pick<FloatingIp, "id" | "revision">,
    target: FloatingIpTarget | null,
    by: AskedBy,
  ): Promise<AssociateOutcome> {
    const to = target === null ? { port_id: null } : { port_id: target.portId, fixed_ip_address: target.fixedAddress };
    const answer = await this.#call({
      ...{ method: "PUT", path: `${PATH}/${encodeURIComponent(id)}`, body: { floatingip: to }, ...by, expect: [200] },
      headers: { "if-match": `revision_number=${revision}` },
    });
    if (!(answer instanceof NeighbourError)) return { kind: "associated" };
    const { code, status, type, why } = answer;
    if (status === CHANGED_STATUS || type === GONE) return { kind: "changed" };
    if (code === "refused") return { kind: "forbidden", why };
    return { kind: code === "conflict" ? "taken" : "refused", why };
  }

  async deleteFloatingIp(id: string, by: AskedBy): Promise<DeleteFloatingIpOutcome> {
    const path = `${PATH}/${encodeURIComponent(id)}`;
    const answer = await this.#call({ method: "DELETE", path, ...by, expect: [204] });
    if (!(answer instanceof NeighbourError)) return { kind: "deleted" };
    if (answer.code === "not-found") return { kind: "gone", why: answer.why };
    if (answer.code === "refused") return { kind: "forbidden", why: answer.why };
    throw new NetworkingError("bad-answer", answer.message);
  }

  /** A Neutron without the extension `fip-port-details` does not say which server has a port, so its ports are read. */
  async #withServers(documents: readonly unknown[], by: AskedBy): Promise<readonly FloatingIp[]> {
    const unexplained = documents.map(documentFields).filter((one) => one.port_id && one.port_details === undefined);
    const owners = new Map<string, string>();
    for (let at = 0; at < unexplained.length; at += IDS_MAX) {
      const ids = unexplained.slice(at, at + IDS_MAX).map((one) => ["id", textField(one.port_id)]);
      const ports = await this.#list("ports", "/v2.0/ports", new URLSearchParams(ids), by);
      if (ports === null) throw new NetworkingError("bad-answer", "Neutron has no list of ports");
      for (const port of ports.map(documentFields)) owners.set(documentId(port, "port"), textField(port.device_id));
    }
    return documents.map((document) => floatingIpOf(document, owners));
  }

  /** Null if Neutron has no such list. */
  #list(collection: string, path: string, query: URLSearchParams, by: AskedBy): Promise<readonly unknown[] | null> {
    return readPages(collection, path, query.toString(), async (page) => {
      const answer = await this.#call({ method: "GET", path: page, ...by, expect: [200] });
      if (!(answer instanceof NeighbourError)) return answer;
      if (answer.code === "not-found") return null;
      throw new NetworkingError("bad-answer", answer.message);
    });
  }

  /** Returns refusals that the caller may expect, and throws `NetworkingError` for everything else. */
  async #call(call: NeighbourCall): Promise<NeighbourAnswer | NeighbourError> {
    try {
      return await this.#client.call(call);
    } catch (error) {
      return expectedRefusal(error, call);
    }
  }
}

/** `owners` are the servers of ports about which the document says nothing. */
function floatingIpOf(document: unknown, owners: ReadonlyMap<string, string>): FloatingIp {
  const found = documentFields(document);
  const portId = textField(found.port_id) || null;
  const owner = textField(documentFields(found.port_details).device_id) || owners.get(portId ?? "");
  return {
    id: documentId(found, "floating IP"),
    address: textField(found.floating_ip_address),
    projectId: textField(found.project_id ?? found.tenant_id),
    networkId: textField(found.floating_network_id),
    portId,
    fixedAddress: textField(found.fixed_ip_address) || null,
    serverUuid: owner || null,
    revision: typeof found.revision_number === "number" ? found.revision_number : 0,
  };
}
