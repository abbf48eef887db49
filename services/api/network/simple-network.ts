import { isIPv4 } from "node:net";
import type { AddressPool } from "../../../core/stores/api/port-store.ts";
import { ipv4At, ipv4Offset } from "../../../core/tasks/ipv4.ts";

/** The one network of `--networks simple`, which all projects share. Nothing carries its packets. */
export const SIMPLE_NETWORK = {
  id: "5a1e0000-6e65-4000-8000-000000000001",
  name: "shared",
  subnetId: "5a1e0000-7375-4000-8000-000000000001",
  subnetName: "shared-subnet",
  base: "10.64.0.0",
  prefixLength: 10,
} as const;

const ADDRESSES = 2 ** (32 - SIMPLE_NETWORK.prefixLength);

export const GATEWAY = ipv4At(SIMPLE_NETWORK.base, 1);
export const LAST_ADDRESS = ipv4At(SIMPLE_NETWORK.base, ADDRESSES - 2);

/** All addresses but those of the network, the gateway and the broadcast. */
export const SIMPLE_POOL: AddressPool = {
  networkId: SIMPLE_NETWORK.id,
  first: ipv4At(SIMPLE_NETWORK.base, 2),
  size: ADDRESSES - 3,
};

/** Whether a port of the network can have this address. */
export function isPortAddress(address: string): boolean {
  if (!isIPv4(address)) return false;
  const offset = ipv4Offset(SIMPLE_POOL.first, address);
  return offset >= 0 && offset < SIMPLE_POOL.size;
}

const TIMES = { created_at: "2026-01-01T00:00:00Z", updated_at: "2026-01-01T00:00:00Z", revision_number: 1 };

/** The network as the Networking API shows it. It belongs to no project, so it is shown as the caller's. */
export const networkView = (projectId: string): Readonly<Record<string, unknown>> => ({
  ...{ id: SIMPLE_NETWORK.id, name: SIMPLE_NETWORK.name, description: "", status: "ACTIVE", admin_state_up: true },
  ...{ shared: true, "router:external": false, port_security_enabled: false, mtu: 1500, is_default: false },
  ...{ project_id: projectId, tenant_id: projectId, subnets: [SIMPLE_NETWORK.subnetId], availability_zones: [] },
  ...{ availability_zone_hints: [], ipv4_address_scope: null, ipv6_address_scope: null, qos_policy_id: null, tags: [] },
  ...TIMES,
});

export const subnetView = (projectId: string): Readonly<Record<string, unknown>> => ({
  ...{ id: SIMPLE_NETWORK.subnetId, name: SIMPLE_NETWORK.subnetName, description: "", network_id: SIMPLE_NETWORK.id },
  ...{ project_id: projectId, tenant_id: projectId, ip_version: 4, enable_dhcp: false, gateway_ip: GATEWAY },
  cidr: `${SIMPLE_NETWORK.base}/${SIMPLE_NETWORK.prefixLength}`,
  allocation_pools: [{ start: SIMPLE_POOL.first, end: LAST_ADDRESS }],
  ...{ dns_nameservers: [], host_routes: [], ipv6_address_mode: null, ipv6_ra_mode: null, service_types: [], tags: [] },
  ...{ subnetpool_id: null, segment_id: null },
  ...TIMES,
});
