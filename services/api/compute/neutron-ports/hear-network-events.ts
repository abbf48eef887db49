import { NetworkingError } from "../../../../core/stores/networking-error.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";
import type { RequestsPort } from "../../ports.ts";
import { refreshPorts } from "./refresh-ports.ts";

/** The events after which the ports of a server may have other addresses. */
const CHANGES = ["network-changed", "network-vif-deleted"];
/** Maximum number of servers of one call that are brought up to date at a time. */
const SERVERS_AT_A_TIME = 8;

interface HeardEvent {
  readonly name: string;
  readonly server_uuid: string;
  readonly tag?: string;
}

interface EventDeps {
  readonly neutron: NeutronDeps | null;
  readonly store: Pick<RequestsPort, "requests">;
  readonly cells: Cells;
}

type Known = Parameters<typeof refreshPorts>[1];

/**
 * Brings the records of servers up to date after events of Neutron; all events of one server count as one. Where that is not possible now, the server's
 * note stays open, and the settler does it. After a call that Neutron does not answer, that is so for all servers that are left. Events of other
 * kinds, and of servers that no cell has, have no effect.
 */
export async function hearNetworkEvents(deps: EventDeps, events: readonly HeardEvent[]): Promise<void> {
  const { neutron } = deps;
  const deletedOf = deletedPorts(events);
  if (neutron === null || deletedOf.size === 0) return;
  const opened = await neutron.notes.openNotes(
    [...deletedOf.keys()].map((serverUuid) => ({ serverUuid, keptPorts: [] })),
  );
  const left = (await findServers(deps, [...deletedOf.keys()])).values();
  const agreeing = new Set<string>();
  let isSilent = false;
  const refreshOne = async (known: Known): Promise<void> => {
    const { uuid } = known.server;
    try {
      if (await refreshPorts(neutron.networking, known, deletedOf.get(uuid) ?? [])) agreeing.add(uuid);
    } catch (error) {
      if (!(error instanceof NetworkingError)) throw error;
      isSilent ||= error.code === "unreachable";
    }
  };
  const refreshSome = async (): Promise<void> => {
    for (const known of left) if (!isSilent) await refreshOne(known);
  };
  await Promise.all(Array.from({ length: SERVERS_AT_A_TIME }, refreshSome));
  const agreed = opened.filter(({ serverUuid, wasOpen }) => !wasOpen && agreeing.has(serverUuid));
  // The changes have been made. If this fails, the settler makes the same comparison.
  await neutron.notes.settleNotes(agreed).catch(() => undefined);
}

/** The ports that are gone, by the server that the events are about. */
function deletedPorts(events: readonly HeardEvent[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const { name, server_uuid, tag = "" } of events) {
    const serverUuid = canonicalUuid(server_uuid);
    if (serverUuid === null || !CHANGES.includes(name)) continue;
    const deleted = name === "network-vif-deleted" ? canonicalUuid(tag) : null;
    found.set(serverUuid, [...(found.get(serverUuid) ?? []), ...(deleted === null ? [] : [deleted])]);
  }
  return found;
}

/** Reads the servers in their cells. Those whose cell does not answer are left out. */
async function findServers({ store, cells }: EventDeps, uuids: readonly string[]): Promise<readonly Known[]> {
  const found: Known[] = [];
  for (const [name, records] of Map.groupBy(await store.requests(uuids), ({ cell }) => cell ?? "")) {
    const cell = cells.get(name);
    const answer = await cell?.servers(records.map(({ serverUuid }) => serverUuid));
    if (cell === undefined || answer?.kind !== "answer") continue;
    for (const server of answer.value) {
      const record = records.find(({ serverUuid }) => serverUuid === server.uuid);
      if (record !== undefined) found.push({ record, cell, server });
    }
  }
  return found;
}
