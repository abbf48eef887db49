/** A card of a physical network, as Neutron's administrators name it. */
export interface PhysicalNetwork {
  readonly name: string;
  /** The name of the card's network interface, or its address in lower case. */
  readonly card: string;
}

/** Returns the trait of the providers that are connected to a physical network, as Neutron names it. Source: `normalize_name` of os-traits, and neutron-lib's placement utils. */
export function physicalNetworkTrait(network: string): string {
  return `CUSTOM_PHYSNET_${network.toUpperCase().replace(/[^A-Z0-9]+/g, "_")}`;
}
