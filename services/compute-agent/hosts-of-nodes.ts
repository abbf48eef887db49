import type { HostConfig, ProviderConfig } from "./host-config.ts";
import type { HostSource, LookAtHosts } from "./host-source.ts";
import type { MetalNodes } from "./metal-nodes.ts";

/** The same hosts, of which the bare metal nodes are reserved while they are closed. A host that has not changed is the same object at each look. */
export function hostsOfNodes(source: HostSource, nodes: MetalNodes): HostSource {
  let last: LookAtHosts | null = null;
  const reservedHosts = new WeakMap<HostConfig, HostConfig>();
  const reservedOf = (host: HostConfig) => {
    const known = reservedHosts.get(host) ?? reserved(host);
    reservedHosts.set(host, known);
    return known;
  };
  const present = (seen: LookAtHosts): LookAtHosts => ({
    ...seen,
    hosts: seen.hosts.map((host) => (nodes.closedBecause(host.name) === null ? host : reservedOf(host))),
  });
  const look = () => {
    const seen = source.look();
    nodes.describe(seen.hosts);
    last = seen;
    return present(seen);
  };
  return {
    isLive: source.isLive,
    layoutOf: (host) => source.layoutOf(host),
    look,
    present: () => (last === null ? look() : present(last)),
    watch: (onChanged) => nodes.watch(onChanged),
  };
}

/** Reserves everything that the host offers. Source: Nova's driver for Ironic, which reserves the node's only unit. */
function reserved<Provider extends ProviderConfig>(provider: Provider): Provider {
  const inventories = Object.entries(provider.inventories ?? {}).map(([resourceClass, inventory]) => [
    resourceClass,
    { ...inventory, reserved: inventory.total },
  ]);
  return {
    ...{ ...provider, inventories: Object.fromEntries(inventories) },
    // A host that is no longer described as a node may have children already before it is cleaned.
    ...(provider.children && { children: provider.children.map(reserved) }),
  };
}
