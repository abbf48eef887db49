import { isIPv6 } from "node:net";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { macOf } from "../../../../runtime/mac-of.ts";

/** A server's addresses by the name of their network. */
type Addresses<Address> = Record<string, Address[]>;

interface BriefAddress {
  readonly version: number;
  readonly addr: string;
}

/** Returns the addresses of a server's ports as `/servers/{id}/ips` shows them. Ports on other networks than Berth's own have none. */
export function addressesOf({ ports }: ServerSpec): Addresses<BriefAddress> {
  return byNetwork(ports, (_port, addr) => ({ version: versionOf(addr), addr }));
}

/** Returns the addresses as the server itself shows them. */
export function detailedAddressesOf({
  ports,
}: ServerSpec): Addresses<BriefAddress & Readonly<Record<string, unknown>>> {
  return byNetwork(ports, ({ portId, macAddress = macOf(portId) }, addr) => ({
    ...{ version: versionOf(addr), addr, "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": macAddress },
  }));
}

const versionOf = (address: string): number => (isIPv6(address) ? 6 : 4);

function byNetwork<Address>(
  ports: ServerSpec["ports"],
  view: (port: ServerSpec["ports"][number], address: string) => Address,
): Addresses<Address> {
  const named = ports.flatMap((port) =>
    port.addresses.map((address) => ({ name: port.networkName, shown: view(port, address) })),
  );
  const grouped = Object.groupBy(named, ({ name }) => name);
  return Object.fromEntries(
    Object.entries(grouped).map(([name, items = []]) => [name, items.map(({ shown }) => shown)]),
  );
}
