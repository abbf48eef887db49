import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";

/** A field of a spec that most servers do not have. The token of a server says only that it has the field, not its value. */
export type RareField =
  | "hostname"
  /** Other than the server's name, which early microversions make the description. */
  | "description"
  | "access_ip_v4"
  | "access_ip_v6"
  | "config_drive"
  | "manual_disk"
  | "kernel_id"
  | "ramdisk_id"
  /** The server has an IPv6 address. */
  | "ip6";

/** A word by which an index finds the servers with a rare field, a launch index, or a fixed address. */
export type SpecToken = RareField | `launch_index=${string}` | `ip=${string}`;

/** A longer text is no address, and might be longer than an entry of an index can be. */
const ADDRESS_BYTES_MAX = 64;
const isShort = (address: string): boolean => new TextEncoder().encode(address).length <= ADDRESS_BYTES_MAX;

/** Returns the tokens of a spec, none for most servers. The SQL function `spec_tokens` returns the same. */
export function specTokens(spec: ServerSpec): readonly SpecToken[] {
  const addresses = spec.ports.flatMap((port) => port.addresses).filter(isShort);
  const has: readonly (readonly [SpecToken, boolean])[] = [
    ["hostname", spec.hostname !== ""],
    ["description", spec.description !== undefined && spec.description !== spec.name],
    ["access_ip_v4", spec.accessIpV4 !== ""],
    ["access_ip_v6", spec.accessIpV6 !== ""],
    ["config_drive", spec.configDrive],
    ["manual_disk", spec.manualDisk],
    ["kernel_id", Object.hasOwn(spec.imageProperties, "kernel_id")],
    ["ramdisk_id", Object.hasOwn(spec.imageProperties, "ramdisk_id")],
    [`launch_index=${spec.launchIndex}`, spec.launchIndex > 0],
    ["ip6", addresses.some((address) => address.includes(":"))],
    ...addresses.map((address) => [`ip=${address}`, true] as const),
  ];
  return has.flatMap(([token, isThere]) => (isThere ? [token] : []));
}
