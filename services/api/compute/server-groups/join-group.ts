import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, Fault } from "../../http/fault.ts";
import { readUuidLike } from "../../placement/uuids.ts";
import type { ServerGroupsPort } from "../../ports.ts";
import { countMax, type ProjectLimits } from "../quotas/project-limits.ts";

/** The scheduler hint that names a server group. */
const GROUP_HINT = "group";

/**
 * Makes the servers of one call members of the group that their hints name, in its present state, and returns them with the membership in
 * their specs. Refuses a group that is unknown or of another project (400), and one that would have too many members (403).
 */
export async function joinGroup(
  store: ServerGroupsPort,
  call: KnownCall,
  specs: readonly ServerSpec[],
  limits: Pick<ProjectLimits, "ofUser">,
): Promise<readonly ServerSpec[]> {
  const asked = specs[0]?.hints.find((hint) => hint.name === GROUP_HINT)?.values[0];
  if (asked === undefined || asked === "") return specs;
  const uuid = readUuidLike(asked);
  const group = uuid === null ? null : await store.group(uuid);
  const unknown = badRequest(`Instance group ${asked.slice(0, 100)} could not be found.`);
  if (group === null || !(group.projectId === call.identity.projectId || call.identity.isAdmin)) throw unknown;
  const servers = specs.map((spec) => spec.uuid);
  const { server_group_members: membersMax } = await limits.ofUser(call.identity);
  const joined = await store.addMembers(group.uuid, servers, countMax(membersMax));
  if (joined === "unknown") throw unknown;
  if (joined === "too-many") {
    throw new Fault(403, "Quota exceeded, too many servers in group");
  }
  const membership = { uuid: group.uuid, policy: group.policy, maxServerPerHost: group.maxServerPerHost ?? 0 };
  return specs.map((spec) => ({ ...spec, group: membership }));
}
