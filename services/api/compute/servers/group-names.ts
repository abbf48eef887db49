import { DeadlineError, withDeadline } from "../../../../runtime/deadline.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import { Fault } from "../../http/fault.ts";
import { DEFAULT_GROUP } from "../../network/security-groups/default-security-group.ts";
import type { SecurityGroupDesk } from "../../network/security-groups/security-group-desk.ts";

/** The names of the security groups of servers. */
export interface GroupNames {
  /** Empty for a server that has none, or while Neutron does not answer. */
  of(uuid: string): readonly string[];
}

/** Without a store of groups, every server is shown in its project's default group. */
const ALL_DEFAULT: GroupNames = { of: () => [DEFAULT_GROUP] };
const UNKNOWN: GroupNames = { of: () => [] };
/** How long servers wait for Neutron's groups before they are shown without them. Neutron is asked in stretches of servers, so that long lists take longer. */
const DEADLINE_MS = 2_000;
const MORE_MS_PER_SERVER = 10;

/**
 * Reads the names of the security groups of servers. A silent Neutron does not hide the servers, it only hides their groups.
 *
 * Cost: one statement, and another one if there are other groups than default ones; with Neutron two calls.
 */
export async function readGroupNames(
  { securityGroups }: { readonly securityGroups: SecurityGroupDesk | null },
  call: KnownCall,
  servers: readonly KnownServer[],
): Promise<GroupNames> {
  if (securityGroups === null) return ALL_DEFAULT;
  const asked = servers.map(({ server: { uuid, spec } }) => ({ uuid, projectId: spec.projectId }));
  try {
    const reading = securityGroups.ofServers(call, asked);
    const deadlineMs = DEADLINE_MS + asked.length * MORE_MS_PER_SERVER;
    const found = await (securityGroups.isOwn ? reading : withDeadline(reading, deadlineMs, "Neutron"));
    return { of: (uuid) => (found.get(uuid) ?? []).map(({ id, name }) => name || id) };
  } catch (error) {
    if (error instanceof DeadlineError || (error instanceof Fault && error.status === 503)) return UNKNOWN;
    throw error;
  }
}
