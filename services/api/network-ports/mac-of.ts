/** A port's address, made of its id: Berth wires nothing, and hands none out. Begins as Neutron's do. */
export function macOf(portId: string): string {
  const digits = portId.replaceAll("-", "").slice(-6);
  return ["fa:16:3e", digits.slice(0, 2), digits.slice(2, 4), digits.slice(4, 6)].join(":");
}
