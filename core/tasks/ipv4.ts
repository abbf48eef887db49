/** Returns the address that many addresses after `base`, for example 10.0.1.4 for 10.0.0.0 and 260. */
export function ipv4At(base: string, offset: number): string {
  const value = numberOf(base) + offset;
  return [24, 16, 8, 0].map((bits) => Math.floor(value / 2 ** bits) % 256).join(".");
}

/** Returns how many addresses after `base` an address is; negative before it. Both are IPv4 addresses. */
export function ipv4Offset(base: string, address: string): number {
  return numberOf(address) - numberOf(base);
}

const numberOf = (address: string): number => address.split(".").reduce((value, part) => value * 256 + Number(part), 0);
