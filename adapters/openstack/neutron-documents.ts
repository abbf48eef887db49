import type { FixedAddress, NeutronNetwork, NeutronPort } from "../../core/stores/networking.ts";
import { NetworkingError } from "../../core/stores/networking-error.ts";
import type { PortGroup } from "../../core/tasks/port-record.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Returns the items of a list that Neutron has answered. Throws a `NetworkingError` if the answer is none. */
export function listedItems(body: unknown, collection: string): readonly unknown[] {
  const items = (body as Fields | null)?.[collection];
  if (!Array.isArray(items)) throw new NetworkingError("bad-answer", `Neutron's answer has no list of ${collection}`);
  return items;
}

/** Reads a network as Neutron shows it. Throws a `NetworkingError` if it has no id. */
export function networkOf(document: unknown): NeutronNetwork {
  const network = fieldsOf(document);
  return {
    id: idOf(network, "network"),
    name: textOf(network.name),
    projectId: textOf(network.project_id ?? network.tenant_id),
    isShared: network.shared === true,
    isExternal: network["router:external"] === true,
    subnetIds: listOf(network.subnets).filter((subnet) => typeof subnet === "string"),
  };
}

/** Reads a port as Neutron shows it. Throws a `NetworkingError` if it has no id. */
export function portOf(document: unknown): NeutronPort {
  const port = fieldsOf(document);
  const fixed = listOf(port.fixed_ips).map(fieldsOf);
  return {
    id: idOf(port, "port"),
    projectId: textOf(port.project_id ?? port.tenant_id),
    networkId: textOf(port.network_id),
    macAddress: textOf(port.mac_address),
    fixedAddresses: fixed.map(
      (one): FixedAddress => ({ address: textOf(one.ip_address), subnetId: textOf(one.subnet_id) }),
    ),
    ipAllocation: textOf(port.ip_allocation) || "immediate",
    status: textOf(port.status),
    deviceId: textOf(port.device_id),
    securityGroups: listOf(port.security_groups).filter((group) => typeof group === "string"),
    host: textOf(port["binding:host_id"]),
    vifType: textOf(port["binding:vif_type"]),
    revision: typeof port.revision_number === "number" ? port.revision_number : 0,
    groups: groupsOf(port.resource_request),
  };
}

/**
 * Reads the two forms of a port's resource request: the one with groups, and the older one that is a single group without an id.
 *
 * Source: Neutron's extensions `port-resource-request` and `port-resource-request-groups`
 */
function groupsOf(request: unknown): readonly PortGroup[] {
  const { request_groups, required, resources } = fieldsOf(request);
  const groups = Array.isArray(request_groups)
    ? request_groups.map(fieldsOf)
    : resources
      ? [{ required, resources }]
      : [];
  return groups.map((group: Fields) => ({
    id: textOf(group.id),
    resources: Object.fromEntries(
      Object.entries(fieldsOf(group.resources)).filter(
        (entry): entry is [string, number] => typeof entry[1] === "number",
      ),
    ),
    required: listOf(group.required).filter((trait) => typeof trait === "string"),
  }));
}

function idOf({ id }: Fields, what: string): string {
  if (typeof id !== "string") throw new NetworkingError("bad-answer", `Neutron's answer has a ${what} without an id`);
  return id;
}

const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
