import type { PortStore } from "../../../../core/stores/api/port-store.ts";
import type { OwnSecurityGroups } from "../../../../core/stores/security-groups.ts";
import { defaultGroupId, defaultGroupOf } from "./default-security-group.ts";
import type { GroupedPort, GroupedPorts } from "./grouped-ports.ts";

/** The ports of Berth's own network. */
export class OwnGroupedPorts implements GroupedPorts {
  readonly #ports: Pick<PortStore, "portsOfServers">;
  readonly #groups: Pick<OwnSecurityGroups, "ensureGroup" | "setPortGroups">;

  constructor(
    ports: Pick<PortStore, "portsOfServers">,
    groups: Pick<OwnSecurityGroups, "ensureGroup" | "setPortGroups">,
  ) {
    this.#ports = ports;
    this.#groups = groups;
  }

  async portsOf(serverUuids: readonly string[]): Promise<readonly GroupedPort[]> {
    const ports = await this.#ports.portsOfServers(serverUuids);
    return ports.map(({ id, projectId, address, securityGroups, binding }) => ({
      ...{ id, serverUuid: binding?.serverUuid ?? "", hasAddress: address !== null },
      groups: securityGroups ?? (address === null ? [] : [defaultGroupId(projectId)]),
      setGroups: async (groups) => {
        // The project of the port may never have asked for its groups, and its default group need not be stored to be shown.
        if (groups.includes(defaultGroupId(projectId))) await this.#groups.ensureGroup(defaultGroupOf(projectId));
        return { kind: await this.#groups.setPortGroups(id, securityGroups, groups) };
      },
    }));
  }
}
