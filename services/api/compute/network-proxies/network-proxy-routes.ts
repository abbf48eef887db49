import { Type } from "typebox";
import { askedBy, askNeighbour } from "../../http/ask-neighbour.ts";
import { callOf, type KnownCall } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { notFound } from "../../http/fault.ts";
import { AnyQuery } from "../../http/schema.ts";
import type { NetworkRule } from "../../network/network-rule.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";
import { SIMPLE_NETWORK } from "../../network/simple-network.ts";

interface Deps {
  readonly networks: NetworkRule;
  /** Null without Neutron. */
  readonly neutron: NeutronDeps | null;
}

interface NamedNetwork {
  readonly id: string;
  readonly name: string;
}

/** The microversions that have the proxies. */
const of = (rule: string) => ({ until: 35, rule });
const IdParams = Type.Object({ id: Type.String() });

/** Fields of nova-network, which are empty. Source: `network_dict` in nova/api/openstack/compute/networks.py */
const OF_ALL = ["cidr", "netmask", "gateway", "broadcast", "dns1", "dns2", "cidr_v6", "gateway_v6", "netmask_v6"];
const OF_ADMINS = [
  ...["created_at", "updated_at", "deleted_at", "deleted", "injected", "bridge", "vlan", "vpn_public_address"],
  ...["vpn_public_port", "vpn_private_address", "dhcp_start", "project_id", "host", "bridge_interface", "multi_host"],
  ...["priority", "rxtx_base", "mtu", "dhcp_server", "enable_dhcp", "share_address"],
];

/**
 * Registers `/os-networks` and `/os-tenant-networks`, the proxies of the Networking API, which end after 2.35 as upstream. They show the networks that the
 * caller's servers can be connected to.
 */
export function registerNetworkProxies(http: Http, deps: Deps): void {
  const empty = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, null]));
  registerProxy(http, deps, "/os-networks", {
    rules: { list: "os-networks:list", show: "os-networks:show" },
    view: ({ id, name }, { identity }) => ({
      ...{ id, label: name, ...empty(OF_ALL) },
      ...(identity.isAdmin && empty(OF_ADMINS)),
    }),
  });
  registerProxy(http, deps, "/os-tenant-networks", {
    rules: { list: "os-tenant-networks:list", show: "os-tenant-networks:show" },
    // Nova shows the word, and no cidr.
    view: ({ id, name }) => ({ id, label: name, cidr: "None" }),
  });
}

function registerProxy(
  http: Http,
  deps: Deps,
  path: string,
  {
    rules,
    view,
  }: {
    readonly rules: { readonly list: string; readonly show: string };
    readonly view: (network: NamedNetwork, call: KnownCall) => object;
  },
): void {
  http.get(path, { config: of(rules.list), schema: { querystring: AnyQuery } }, async (request) => {
    const call = callOf(request);
    return { networks: (await networksFor(deps, call, null)).map((network) => view(network, call)) };
  });
  const show = { config: of(rules.show), schema: { params: IdParams, querystring: AnyQuery } };
  http.get(`${path}/:id`, show, async (request) => {
    const call = callOf(request);
    const [network] = await networksFor(deps, call, request.params.id);
    if (network === undefined) throw notFound("Network not found");
    return { network: view(network, call) };
  });
}

/** The networks that the caller may see, or the one with the id. */
async function networksFor(
  { networks, neutron }: Deps,
  call: KnownCall,
  id: string | null,
): Promise<readonly NamedNetwork[]> {
  if (neutron !== null) {
    const filter = id === null ? {} : { ids: [id] };
    const found = await askNeighbour(() => neutron.networking.networks(filter, askedBy(neutron, call)));
    const { projectId, isAdmin } = call.identity;
    return found.filter((one) => neutron.sendsTokens || isAdmin || one.isShared || one.projectId === projectId);
  }
  const own = networks === "simple" ? [SIMPLE_NETWORK] : [];
  return own.filter((network) => id === null || network.id === id);
}
