import { hash } from "node:crypto";

/** Returns the MAC address that belongs to an id, so that it is the same on every machine. It starts with Neutron's prefix. */
export function macOf(id: string): string {
  const digits = hash("sha256", id).slice(0, 6);
  return `fa:16:3e:${digits.slice(0, 2)}:${digits.slice(2, 4)}:${digits.slice(4, 6)}`;
}
