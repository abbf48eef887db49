import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import type {
  AskedBy,
  CreatePortsOutcome,
  NeutronNetwork,
  NeutronPort,
  NewNeutronPort,
} from "../../core/stores/networking.ts";
import { type FakeAnswer, type FakeNeighbour, SERVICE_TOKEN, startFakeNeighbour } from "./fake-neighbour.ts";
import { answerBindings } from "./fake-neutron-bindings.ts";
import { answerFloatingIps } from "./fake-neutron-floating-ips.ts";
import { answerGroups } from "./fake-neutron-groups.ts";
import { neutronRefusal as refusal } from "./neutron-refusal.ts";

type Body = ReturnType<typeof JSON.parse>;

/**
 * Starts the part of Neutron's API that Berth uses, over the in-process twin. Its answers have the form of those of Neutron 21.0. A list has at most
 * `pageMax` items (Neutron's `pagination_max_limit`).
 */
export const startFakeNeutron = (
  twin: MemoryNetworking,
  { pageMax = Number.POSITIVE_INFINITY } = {},
): Promise<FakeNeighbour> =>
  startFakeNeighbour(async (request) => pageOf(await answer(twin, request), request, pageMax));

/** Cuts a list, and links to its next page at an address that only Neutron itself may know. */
function pageOf(whole: FakeAnswer, { method, url = "" }: IncomingMessage, pageMax: number): FakeAnswer {
  const { pathname, searchParams: query } = new URL(url, "http://neutron.internal:9696");
  const [[name, items] = ["", null]] = Object.entries((whole.body ?? {}) as Body);
  if (method !== "GET" || !Array.isArray(items) || pathname.endsWith("/bindings")) return whole;
  const from = items.findIndex(({ id }: Body) => id === query.get("marker")) + 1;
  const page = items.slice(from, from + pageMax);
  if (from + page.length === items.length) return { ...whole, body: { [name]: page } };
  query.set("marker", page.at(-1).id);
  const link = { rel: "next", href: `http://neutron.internal:9696${pathname}?${query}` };
  return { ...whole, body: { [name]: page, [`${name}_links`]: [link] } };
}

async function answer(twin: MemoryNetworking, request: IncomingMessage): Promise<FakeAnswer> {
  const url = new URL(request.url ?? "", "http://neutron");
  const token = request.headers["x-auth-token"];
  if (typeof token !== "string") return { status: 401, body: { error: { message: "no token" } } };
  const by = { callerToken: token === SERVICE_TOKEN ? null : token, requestId: null };
  const query = url.searchParams;
  const [, collection, id] = /^\/v2\.0\/(networks|ports)(?:\/([^/]+))?$/.exec(url.pathname) ?? [];
  const sent = request.method === "POST" || request.method === "PUT" ? await text(request) : "";
  const body: Body = sent === "" ? {} : JSON.parse(sent);
  const ofGroups = await answerGroups(twin.securityGroups, request.method ?? "", url, { body, by });
  if (ofGroups !== null) return ofGroups;
  const call = { body, by, ifMatch: request.headers["if-match"] };
  const ofFloating = await answerFloatingIps(twin.floatingIps, request.method ?? "", url, call);
  if (ofFloating !== null) return ofFloating;
  const ofBindings = await answerBindings(twin, request.method ?? "", url, body);
  if (ofBindings !== null) return ofBindings;
  const topology = /^\/v2\.0\/auto-allocated-topology\/([^/]+)$/.exec(url.pathname)?.[1];
  if (topology !== undefined) {
    const network = await twin.autoNetwork(topology, by);
    if (network === null)
      return refusal(409, "AutoAllocationFailure", "Deployment error: No default router:external network.");
    return { status: 200, body: { auto_allocated_topology: { id: network.id, tenant_id: topology } } };
  }
  switch (`${request.method} ${collection}${id === undefined ? "" : "/id"}`) {
    case "GET networks": {
      const ids = query.has("id") ? { ids: query.getAll("id") } : {};
      const shared = query.has("shared") ? { isShared: query.get("shared") === "True" } : {};
      const owner = query.has("tenant_id") ? { projectId: query.get("tenant_id")! } : {};
      const external = query.has("router:external") ? { isExternal: query.get("router:external") === "True" } : {};
      const found = await twin.networks({ ...ids, ...shared, ...owner, ...external }, by);
      return { status: 200, body: { networks: found.map(networkDocument) } };
    }
    case "GET ports": {
      const filter = {
        ...(query.has("id") && { id: query.get("id")! }),
        ...(query.has("device_id") && { deviceIds: query.getAll("device_id") }),
        ...(query.has("network_id") && { networkId: query.get("network_id")! }),
        ...(query.has("fixed_ips") && { address: query.get("fixed_ips")!.replace("ip_address=", "") }),
      };
      const found = await twin.ports(filter, by);
      return { status: 200, body: { ports: found.map((port) => portDocument(port, by.callerToken === null)) } };
    }
    case "POST ports":
      return created(await twin.createPorts(body.ports.map(newPortOf), by));
    case "PUT ports/id":
      if (twin.lacksActiveBinding(id!)) return refusal(404, "PortNotFound", `Port ${id} could not be found.`);
      return updated(twin, id!, body.port, call);
    case "DELETE ports/id":
      if ((await twin.ports({ id: id! }, by)).length === 0 || twin.lacksActiveBinding(id!))
        return refusal(404, "PortNotFound", `Port ${id} could not be found.`);
      if ((await twin.deletePort(id!, revisionOf(call.ifMatch))) === "changed")
        return refusal(412, "RevisionNumberConstraintFailed", "Constrained to another revision.");
      return { status: 204 };
    default:
      return refusal(404, "HTTPNotFound", "The resource could not be found.");
  }
}

function created(outcome: CreatePortsOutcome): FakeAnswer {
  switch (outcome.kind) {
    case "created":
      return { status: 201, body: { ports: outcome.ports.map((port) => portDocument(port, true)).toReversed() } };
    case "over-quota":
      return refusal(409, "OverQuota", "Quota exceeded for resources: ['port'].");
    case "no-address":
      return refusal(409, "IpAddressGenerationFailure", "No more IP addresses available on network.");
    case "address-taken":
      return refusal(409, "IpAddressAlreadyAllocated", "IP address already allocated in subnet.");
    case "forbidden":
      return refusal(403, "PolicyNotAuthorized", outcome.why);
    case "refused":
      return refusal(400, "InvalidIpForNetwork", outcome.why);
    default:
      return outcome satisfies never;
  }
}

async function updated(
  twin: MemoryNetworking,
  id: string,
  port: Body,
  { ifMatch, by }: { readonly ifMatch: unknown; readonly by: AskedBy },
): Promise<FakeAnswer> {
  const revision = revisionOf(ifMatch) ?? Number.NaN;
  const device = port.device_id === "" ? null : { serverUuid: port.device_id, owner: port.device_owner };
  const outcome = await twin.updatePort(
    id,
    {
      ...("device_id" in port && { device }),
      ...(port["binding:host_id"] && { host: port["binding:host_id"] }),
      ...("binding:profile" in port && { profile: port["binding:profile"] }),
      ...("security_groups" in port && { securityGroups: port.security_groups }),
      ...("fixed_ips" in port && { fixedAddresses: port.fixed_ips.map(fixedOf) }),
    },
    revision,
    by,
  );
  if (outcome.kind === "updated") return { status: 200, body: { port: portDocument(outcome.port, true) } };
  if (outcome.kind === "gone") return refusal(404, "PortNotFound", `Port ${id} could not be found.`);
  if (outcome.kind === "forbidden") return refusal(403, "PolicyNotAuthorized", outcome.why);
  if (outcome.kind === "refused") return refusal(409, "IpAddressGenerationFailure", outcome.why);
  return refusal(412, "RevisionNumberConstraintFailed", "Constrained to another revision.");
}

/** Null if the call names no revision. */
function revisionOf(ifMatch: unknown): number | null {
  const revision = /^revision_number=(\d+)$/.exec(String(ifMatch))?.[1];
  return revision === undefined ? null : Number(revision);
}

const fixedOf = (fixed: Body) => ({ subnetId: fixed.subnet_id, address: fixed.ip_address ?? null });

function newPortOf(port: Body): NewNeutronPort {
  return {
    projectId: port.tenant_id,
    networkId: port.network_id,
    serverUuid: port.device_id,
    deviceOwner: port.device_owner,
    address: port.fixed_ips?.[0]?.ip_address ?? null,
    securityGroups: port.security_groups ?? null,
    host: port["binding:host_id"] ?? null,
  };
}

function networkDocument(network: NeutronNetwork) {
  const { id, name, projectId, isShared: shared, subnetIds: subnets } = network;
  const owner = { tenant_id: projectId, project_id: projectId };
  return {
    id,
    name,
    ...owner,
    shared,
    subnets,
    ...(network.physicalNetwork !== undefined && { "provider:physical_network": network.physicalNetwork }),
    "router:external": network.isExternal,
    qos_policy_id: network.hasQosPolicy ? "a0000000-0000-4000-8000-000000000001" : null,
    admin_state_up: true,
    status: "ACTIVE",
  };
}

function portDocument(port: NeutronPort, isAdmin: boolean) {
  const { id, networkId: network_id, projectId, status, macAddress: mac_address } = port;
  const owner = { tenant_id: projectId, project_id: projectId };
  return {
    ...{ id, network_id, ...owner, status, mac_address, name: "", admin_state_up: true },
    ...{ device_id: port.deviceId, security_groups: port.securityGroups, revision_number: port.revision },
    fixed_ips: port.fixedAddresses.map((one) => ({ subnet_id: one.subnetId, ip_address: one.address })),
    ...(isAdmin && {
      "binding:host_id": port.host,
      "binding:vif_type": port.vifType,
      "binding:vif_details": port.vifDetails,
      "binding:vnic_type": port.vnicType,
      "binding:profile": port.profile,
      resource_request: port.groups.length === 0 ? null : { request_groups: port.groups, same_subtree: [] },
    }),
  };
}
