import { isIP } from "node:net";

/** Whether an address or host name is a loopback address, so that no other machine can connect. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase();
  if (name === "localhost" || name === "::1") return true;
  const v4 = name.startsWith("::ffff:") ? name.slice("::ffff:".length) : name;
  return isIP(v4) === 4 && v4.startsWith("127.");
}
