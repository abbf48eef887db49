import { hash } from "node:crypto";
import type { SecurityGroup } from "../../../../core/stores/security-groups.ts";

export const DEFAULT_GROUP = "default";

/** Returns the id of a project's default security group on Berth's own network, which is derived, so that ports need not name it. */
export const defaultGroupId = (projectId: string): string => uuidOf(`security group ${projectId} ${DEFAULT_GROUP}`);

/** Returns the group as each project has it at first: it lets everything out and its own members in. */
export function defaultGroupOf(projectId: string): SecurityGroup {
  const id = defaultGroupId(projectId);
  const rules = (["egress", "ingress"] as const).flatMap((direction) =>
    (["IPv4", "IPv6"] as const).map((etherType) => ({
      ...{ id: uuidOf(`security group rule ${projectId} ${direction} ${etherType}`), groupId: id, projectId },
      ...{ direction, etherType, protocol: null, portMin: null, portMax: null, remotePrefix: null, description: "" },
      remoteGroupId: direction === "ingress" ? id : null,
    })),
  );
  return { id, projectId, name: DEFAULT_GROUP, description: "Default security group", rules };
}

function uuidOf(name: string): string {
  const digest = hash("sha1", name, "hex");
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}
