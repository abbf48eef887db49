import { createHash } from "node:crypto";

export const DEFAULT_GROUP = "default";

/** Returns the id of a project's default security group, which is derived so that it need not be stored. */
export const defaultGroupId = (projectId: string): string => uuidOf(`security group ${projectId} ${DEFAULT_GROUP}`);

/** Returns the group as the Networking API shows it: it lets everything out and its own members in, and nothing enforces that. */
export function defaultGroupView(projectId: string): Readonly<Record<string, unknown>> {
  return {
    ...{ id: defaultGroupId(projectId), name: DEFAULT_GROUP, description: "Default security group", stateful: true },
    ...{ project_id: projectId, tenant_id: projectId, tags: [], shared: false },
    security_group_rules: defaultRuleViews(projectId),
  };
}

export function defaultRuleViews(projectId: string): Readonly<Record<string, unknown>>[] {
  const groupId = defaultGroupId(projectId);
  return ["egress", "ingress"].flatMap((direction) =>
    ["IPv4", "IPv6"].map((ethertype) => ({
      ...{ id: uuidOf(`security group rule ${projectId} ${direction} ${ethertype}`), security_group_id: groupId },
      ...{ direction, ethertype, protocol: null, port_range_min: null, port_range_max: null, remote_ip_prefix: null },
      ...{ remote_group_id: direction === "ingress" ? groupId : null, remote_address_group_id: null },
      ...{ project_id: projectId, tenant_id: projectId, description: "", tags: [] },
    })),
  );
}

function uuidOf(name: string): string {
  const digest = createHash("sha1").update(name).digest("hex");
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}
