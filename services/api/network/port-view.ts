import type { PortRecord } from "../../../core/tasks/port-record.ts";
import { macOf } from "../../../runtime/mac-of.ts";
import { defaultGroupId } from "./security-groups/default-security-group.ts";
import { SIMPLE_NETWORK } from "./simple-network.ts";

/** Returns a port as the Networking API shows it. A port on Berth's own network has an address and its project's security group. */
export function portView(port: PortRecord): Readonly<Record<string, unknown>> {
  const at = `${new Date(port.createdAtMs).toISOString().slice(0, 19)}Z`;
  const ids = port.groups.map(({ id }) => id);
  const { address } = port;
  return {
    id: port.id,
    name: port.name,
    description: "",
    network_id: port.networkId,
    project_id: port.projectId,
    tenant_id: port.projectId,
    status: port.binding === null ? "DOWN" : "ACTIVE",
    admin_state_up: true,
    // If ports are kept when their servers end, this is the server that has the port or had it last.
    device_id: port.binding?.serverUuid ?? "",
    device_owner: port.binding === null ? "" : "compute:nova",
    mac_address: macOf(port.id),
    fixed_ips: address === null ? [] : [{ subnet_id: SIMPLE_NETWORK.subnetId, ip_address: address }],
    security_groups: port.securityGroups ?? (address === null ? [] : [defaultGroupId(port.projectId)]),
    allowed_address_pairs: [],
    "binding:vnic_type": "normal",
    port_security_enabled: false,
    tags: [],
    resource_request:
      port.groups.length === 0 ? null : { request_groups: port.groups, same_subtree: ids.length > 1 ? ids : [] },
    created_at: at,
    updated_at: at,
  };
}
