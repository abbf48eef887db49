/**
 * Returns a port's MAC address, derived from its id because Berth connects no networks and stores no addresses. It starts with Neutron's
 * prefix.
 */
export function macOf(portId: string): string {
  const digits = portId.replaceAll("-", "").slice(-6);
  return ["fa:16:3e", digits.slice(0, 2), digits.slice(2, 4), digits.slice(4, 6)].join(":");
}
