import { NetworkingError } from "../../../../core/stores/networking-error.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import type { RequestsPort } from "../../ports.ts";
import type { NeutronDeps } from "./neutron-deps.ts";
import { refreshPorts } from "./refresh-ports.ts";
import { withOpenNote } from "./with-open-note.ts";

/** The events after which the ports of a server may have other addresses. */
const CHANGES = ["network-changed", "network-vif-deleted"];

/**
 * Brings a server's record up to date after an event of Neutron. If that is not possible now, the server's note stays open, and the settler does it. Events of
 * other kinds, and of servers that no cell has, have no effect.
 */
export async function hearNetworkEvent(
  deps: {
    readonly neutron: NeutronDeps | null;
    readonly store: Pick<RequestsPort, "requests">;
    readonly cells: Cells;
  },
  { name, server_uuid, tag }: { readonly name: string; readonly server_uuid: string; readonly tag?: string },
): Promise<void> {
  const { neutron, cells } = deps;
  const serverUuid = canonicalUuid(server_uuid);
  if (neutron === null || serverUuid === null || !CHANGES.includes(name)) return;
  await withOpenNote(neutron.notes, { serverUuid, keptPorts: [] }, async () => {
    const [record] = await deps.store.requests([serverUuid]);
    const cell = cells.get(record?.cell ?? "");
    const answer = await cell?.server(serverUuid);
    if (record === undefined || cell === undefined || answer?.kind !== "answer" || answer.value === null) return false;
    const deleted = name === "network-vif-deleted" ? canonicalUuid(tag ?? "") : null;
    try {
      return await refreshPorts(neutron.networking, { record, cell, server: answer.value }, deleted);
    } catch (error) {
      if (error instanceof NetworkingError) return false;
      throw error;
    }
  });
}
