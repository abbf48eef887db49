import type { PciDevice } from "./discover-pci.ts";
import type { Warn } from "./host-files.ts";
import type { InspectedHost } from "./inspect-host.ts";
import { type PhysicalNetwork, physicalNetworkTrait } from "./physical-network-trait.ts";
import type { TreeInventory, TreeProvider } from "./tree-provider.ts";

/** The bandwidth of a network interface, as an operator states it. Source: `resource_provider_bandwidths` of Neutron's agents. */
export interface InterfaceBandwidth {
  readonly interfaceName: string;
  /** Null when the operator states no number. Then it is the speed of the interface. */
  readonly stated: {
    /** In kilobits a second. 0 for a direction that is not offered. */
    readonly egressKbps: number;
    readonly ingressKbps: number;
  } | null;
}

/** The name of the provider below the root that has the interfaces below it, like the provider of a Neutron agent. */
export const NETWORK_PROVIDER = "network";
const KILOBITS = 1_000;

/**
 * Makes the providers of bandwidth, in the shape that Neutron's agents give them: one for the agent, without resources, and below it one for each interface, with the traits of its
 * physical network and of the kinds of ports that it serves. Null when there is nothing to offer. Names and UUIDs are Berth's own, so that Neutron's agents
 * can take over later. `directCards` are the addresses of the cards whose virtual functions are offered.
 *
 * Source: neutron/agent/common/placement_report.py.
 */
export function networkProvider(
  { pci }: InspectedHost,
  options: {
    readonly bandwidths: readonly InterfaceBandwidth[];
    readonly physicalNetworks: readonly PhysicalNetwork[];
  },
  { directCards, warn }: { readonly directCards: ReadonlySet<string>; readonly warn: Warn },
): TreeProvider | null {
  const children = options.bandwidths.flatMap((bandwidth): readonly TreeProvider[] => {
    const { interfaceName: name } = bandwidth;
    const card = pci?.find(({ nics }) => nics.some((nic) => nic.name === name));
    const network = networkOf(name, card, options.physicalNetworks);
    if (network === null) {
      warn(`the bandwidth of ${name} is not reported: physical-networks does not say to which network it is connected`);
      return [];
    }
    const inventories = inventoriesOf(bandwidth, card, warn);
    if (Object.keys(inventories).length === 0) return [];
    return [{ name, inventories, traits: [physicalNetworkTrait(network), ...vnicTraits(card, directCards)] }];
  });
  if (children.length === 0) return null;
  const kinds = children.flatMap(({ traits: [, ...vnicTypes] }) => vnicTypes);
  return { name: NETWORK_PROVIDER, inventories: {}, traits: [...new Set(kinds)], children };
}

function networkOf(
  interfaceName: string,
  device: PciDevice | undefined,
  networks: readonly PhysicalNetwork[],
): string | null {
  const names = [interfaceName, ...(device === undefined ? [] : [device.address.toLowerCase()])];
  return networks.find(({ card }) => names.includes(card))?.name ?? null;
}

function inventoriesOf(
  { interfaceName, stated }: InterfaceBandwidth,
  card: PciDevice | undefined,
  warn: Warn,
): Record<string, TreeInventory> {
  const speed = card?.nics.find(({ name }) => name === interfaceName)?.speedMbps ?? null;
  if (stated === null && speed === null) {
    warn(
      `the bandwidth of ${interfaceName} is not reported, because its speed is unknown: plug it in, or state the bandwidth, as in ${interfaceName}:10000000:10000000`,
    );
    return {};
  }
  const kbps = (speed ?? 0) * KILOBITS;
  const { egressKbps, ingressKbps } = stated ?? { egressKbps: kbps, ingressKbps: kbps };
  return {
    ...(egressKbps > 0 && { NET_BW_EGR_KILOBIT_PER_SEC: { total: egressKbps } }),
    ...(ingressKbps > 0 && { NET_BW_IGR_KILOBIT_PER_SEC: { total: ingressKbps } }),
  };
}

/** The kinds of ports that the interface serves: those on its bridge, and those that are virtual functions of its card. */
function vnicTraits(card: PciDevice | undefined, directCards: ReadonlySet<string>): readonly string[] {
  return [
    "CUSTOM_VNIC_TYPE_NORMAL",
    ...(card !== undefined && directCards.has(card.address) ? ["CUSTOM_VNIC_TYPE_DIRECT"] : []),
  ];
}
