import type { FixedAddress, NeutronNetwork, NeutronPort } from "../../core/stores/networking.ts";
import { NetworkingError } from "../../core/stores/networking-error.ts";
import type { HostBinding } from "../../core/stores/port-bindings.ts";
import type { PortGroup } from "../../core/tasks/port-record.ts";
import { type DocumentFields, documentFields, documentId, textField } from "./read-document.ts";

/** Returns the items of a list that Neutron has answered. Throws a `NetworkingError` if the answer is none. */
export function listedItems(body: unknown, collection: string): readonly unknown[] {
  const items = (body as DocumentFields | null)?.[collection];
  if (!Array.isArray(items)) throw new NetworkingError("bad-answer", `Neutron's answer has no list of ${collection}`);
  return items;
}

/** Reads a network as Neutron shows it. Throws a `NetworkingError` if it has no id. */
export function networkOf(document: unknown): NeutronNetwork {
  const network = documentFields(document);
  return {
    id: documentId(network, "network"),
    name: textField(network.name),
    projectId: textField(network.project_id ?? network.tenant_id),
    isShared: network.shared === true,
    isExternal: network["router:external"] === true,
    hasQosPolicy: textField(network.qos_policy_id) !== "",
    subnetIds: listOf(network.subnets).filter((subnet) => typeof subnet === "string"),
    ...physicalNetworkOf(network),
  };
}

/** A network of several segments has the physical network of the first segment that has one, as in Nova. Source: `_get_physnet_tunneled_info` in nova/network/neutron.py. */
function physicalNetworkOf(network: DocumentFields): { readonly physicalNetwork?: string } {
  const segments = [network, ...listOf(network.segments).map(documentFields)];
  const name = segments.map((segment) => textField(segment["provider:physical_network"])).find((one) => one !== "");
  return name === undefined ? {} : { physicalNetwork: name };
}

/** Reads a port as Neutron shows it. Throws a `NetworkingError` if it has no id. */
export function portOf(document: unknown): NeutronPort {
  const port = documentFields(document);
  const fixed = listOf(port.fixed_ips).map(documentFields);
  return {
    id: documentId(port, "port"),
    projectId: textField(port.project_id ?? port.tenant_id),
    networkId: textField(port.network_id),
    macAddress: textField(port.mac_address),
    fixedAddresses: fixed.map(
      (one): FixedAddress => ({ address: textField(one.ip_address), subnetId: textField(one.subnet_id) }),
    ),
    ipAllocation: textField(port.ip_allocation) || "immediate",
    status: textField(port.status),
    deviceId: textField(port.device_id),
    securityGroups: listOf(port.security_groups).filter((group) => typeof group === "string"),
    host: textField(port["binding:host_id"]),
    vifType: textField(port["binding:vif_type"]),
    vnicType: textField(port["binding:vnic_type"]) || NORMAL_VNIC,
    vifDetails: documentFields(port["binding:vif_details"]),
    profile: documentFields(port["binding:profile"]),
    revision: typeof port.revision_number === "number" ? port.revision_number : 0,
    groups: groupsOf(port.resource_request),
  };
}

/** Reads the binding of a port to one host; its host is empty if the port is bound nowhere. Throws a `NetworkingError` if the answer does not tell the host. */
export function bindingOf(document: unknown): HostBinding {
  const binding = documentFields(document);
  const host = textField(binding.host);
  if (typeof binding.host !== "string")
    throw new NetworkingError("bad-answer", "Neutron's answer has a binding without a host");
  return {
    host,
    isActive: binding.status === "ACTIVE",
    vifType: textField(binding.vif_type),
    vifDetails: documentFields(binding.vif_details),
    vnicType: textField(binding.vnic_type) || NORMAL_VNIC,
    profile: documentFields(binding.profile),
  };
}

/** Neutron's default. */
export const NORMAL_VNIC = "normal";

/**
 * Reads the two forms of a port's resource request: the one with groups, and the older one that is a single group without an id.
 *
 * Source: Neutron's extensions `port-resource-request` and `port-resource-request-groups`
 */
function groupsOf(request: unknown): readonly PortGroup[] {
  const { request_groups, required, resources } = documentFields(request);
  const groups = Array.isArray(request_groups)
    ? request_groups.map(documentFields)
    : resources
      ? [{ required, resources }]
      : [];
  return groups.map((group) => ({
    id: textField(group.id),
    resources: Object.fromEntries(
      Object.entries(documentFields(group.resources)).filter(
        (entry): entry is [string, number] => typeof entry[1] === "number",
      ),
    ),
    required: listOf(group.required).filter((trait) => typeof trait === "string"),
  }));
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
