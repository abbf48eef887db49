import type { PortStore } from "../../../../core/stores/api/port-store.ts";
import type { OwnSecurityGroups } from "../../../../core/stores/security-groups.ts";
import { defaultGroupId } from "./default-security-group.ts";
import type { GroupedPort, GroupedPorts } from "./grouped-ports.ts";

/** The ports of Berth's own network. */
export class OwnGroupedPorts implements GroupedPorts {
  readonly #ports: Pick<PortStore, "portsOfServers">;
  readonly #groups: Pick<OwnSecurityGroups, "setPortGroups">;

  constructor(ports: Pick<PortStore, "portsOfServers">, groups: Pick<OwnSecurityGroups, "setPortGroups">) {
    this.#ports = ports;
    this.#groups = groups;
  }

  async portsOf(serverUuids: readonly string[]): Promise<readonly GroupedPort[]> {
    const ports = await this.#ports.portsOfServers(serverUuids);
    return ports.map(({ id, projectId, address, securityGroups, binding }) => ({
      ...{ id, serverUuid: binding?.serverUuid ?? "", hasAddress: address !== null },
      groups: securityGroups ?? (address === null ? [] : [defaultGroupId(projectId)]),
      setGroups: async (groups) => {
        const outcome = await this.#groups.setPortGroups(id, securityGroups, groups);
        return { kind: outcome === "set" ? "set" : "changed" };
      },
    }));
  }
}
