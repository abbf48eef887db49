import { SettingsError } from "../../runtime/settings.ts";
import type { HostConfig, ProviderConfig } from "./host-config.ts";
import type { HostSource, LookAtHosts } from "./host-source.ts";
import type { MetalNodes } from "./metal-nodes.ts";

/**
 * The same hosts. Bare metal nodes have their states, and are reserved while they are closed. A host that has not changed since the last look is the same
 * object.
 */
export function hostsOfNodes(source: HostSource, nodes: MetalNodes): HostSource {
  let last: LookAtHosts | null = null;
  const shown = new WeakMap<HostConfig, { readonly facts: string; readonly host: HostConfig }>();
  const withFacts = (host: HostConfig): HostConfig => {
    const node = nodes.factsOf(host.name);
    if (node === null) return host;
    const facts = JSON.stringify(node);
    const known = shown.get(host);
    if (known?.facts === facts) return known.host;
    const now = { ...(node.closedBecause === "" ? host : reserved(host)), node };
    shown.set(host, { facts, host: now });
    return now;
  };
  const present = (seen: LookAtHosts): LookAtHosts => ({ ...seen, hosts: seen.hosts.map(withFacts) });
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

/** The same hosts, for a driver that knows no bare metal nodes. A look throws a SettingsError if one of them is to be a node. */
export function hostsWithoutNodes(source: HostSource): HostSource {
  return {
    isLive: source.isLive,
    layoutOf: (host) => source.layoutOf(host),
    look: () => {
      const seen = source.look();
      const node = seen.hosts.find((host) => host.bare_metal !== undefined);
      if (node === undefined) return seen;
      throw new SettingsError(
        `host ${node.name} has bare_metal in the hosts file, which only --driver fake knows: remove it there, or start an agent with --driver fake for this host`,
      );
    },
  };
}

/** Reserves everything that the host offers. Source: Nova's driver for Ironic, which reserves the node's only unit. */
export function reserved<Provider extends ProviderConfig>(provider: Provider): Provider {
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
