import { isIPv6 } from "node:net";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { macOf } from "../../../../runtime/mac-of.ts";

/** A server's addresses by the name of their network. */
type Addresses<Address> = Record<string, Address[]>;

interface BriefAddress {
  readonly version: number;
  readonly addr: string;
}

type AddressKind = "fixed" | "floating";

/**
 * Returns the addresses of a server's ports as `/servers/{id}/ips` shows them: for each network the fixed ones, then the floating ones. Ports on other
 * networks than Berth's own or Neutron's have none.
 */
export function addressesOf({ ports }: ServerSpec): Addresses<BriefAddress> {
  return byNetwork(ports, (_port, addr) => ({ version: versionOf(addr), addr }));
}

/** Returns the addresses as the server itself shows them. */
export function detailedAddressesOf({
  ports,
}: ServerSpec): Addresses<BriefAddress & Readonly<Record<string, unknown>>> {
  return byNetwork(ports, ({ portId, macAddress = macOf(portId) }, addr, kind) => ({
    ...{ version: versionOf(addr), addr, "OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": macAddress },
  }));
}

const versionOf = (address: string): number => (isIPv6(address) ? 6 : 4);

function byNetwork<Address>(
  ports: ServerSpec["ports"],
  view: (port: ServerSpec["ports"][number], address: string, kind: AddressKind) => Address,
): Addresses<Address> {
  const named = (kind: AddressKind) =>
    ports.flatMap((port) => {
      const addresses = kind === "fixed" ? port.addresses : port.floatingAddresses.map(({ address }) => address);
      return addresses.map((address) => ({ name: port.networkName, shown: view(port, address, kind) }));
    });
  const grouped = Object.groupBy([...named("fixed"), ...named("floating")], ({ name }) => name);
  return Object.fromEntries(
    Object.entries(grouped).map(([name, items = []]) => [name, items.map(({ shown }) => shown)]),
  );
}
