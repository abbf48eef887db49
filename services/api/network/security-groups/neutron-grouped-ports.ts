import { DEVICE_IDS_MAX, type Networking } from "../../../../core/stores/networking.ts";
import { askedBy, askNeighbour } from "../../http/ask-neighbour.ts";
import type { KnownCall } from "../../http/call.ts";
import type { NeutronDeps } from "../neutron-deps.ts";
import type { GroupedPort, GroupedPorts, SetGroupsOutcome } from "./grouped-ports.ts";

/** The ports in Neutron. Like Nova, it asks in the caller's name. */
export class NeutronGroupedPorts implements GroupedPorts {
  readonly #deps: Pick<NeutronDeps, "networking" | "sendsTokens">;

  constructor(deps: Pick<NeutronDeps, "networking" | "sendsTokens">) {
    this.#deps = deps;
  }

  async portsOf(serverUuids: readonly string[], call: KnownCall): Promise<readonly GroupedPort[]> {
    const { networking } = this.#deps;
    const found: GroupedPort[] = [];
    for (let at = 0; at < serverUuids.length; at += DEVICE_IDS_MAX) {
      const deviceIds = serverUuids.slice(at, at + DEVICE_IDS_MAX);
      const ports = await askNeighbour(() => networking.ports({ deviceIds }, askedBy(this.#deps, call)));
      for (const port of ports)
        found.push({
          ...{ id: port.id, serverUuid: port.deviceId, groups: port.securityGroups },
          hasAddress: port.fixedAddresses.length > 0 || port.ipAllocation === "deferred",
          setGroups: (groups) => setInNeutron(networking, port, groups),
        });
    }
    return found;
  }
}

async function setInNeutron(
  networking: Networking,
  { id, revision }: { readonly id: string; readonly revision: number },
  securityGroups: readonly string[],
): Promise<SetGroupsOutcome> {
  // The revision also tells whether a client has given the port to another server since.
  const outcome = await askNeighbour(() => networking.updatePort(id, { securityGroups }, revision));
  switch (outcome.kind) {
    case "updated":
      return { kind: "set" };
    case "refused":
    case "forbidden":
      return { kind: "refused", why: outcome.why };
    case "changed":
    case "gone":
      return { kind: "changed" };
    default:
      return outcome satisfies never;
  }
}
