import type { AdminHost } from "../../../../core/stores/cell/host-admin-store.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import { unavailable } from "../../http/fault.ts";
import { type FoundHost, findHost } from "../aggregates/find-host.ts";

/** A change of a host's settings. Absent fields stay unchanged. */
export interface HostChange {
  readonly disabled?: boolean;
  /** Why the host is disabled. Only together with `disabled`. */
  readonly reason?: string | null;
  readonly forcedDown?: boolean;
}

/** Writes the change in the host's cell, and returns the changed host. Throws 503 when the cell does not answer. */
export async function changeHost(
  cells: Cells,
  { cell, host }: FoundHost,
  { disabled, reason = null, forcedDown }: HostChange,
): Promise<AdminHost> {
  const answer = await cell.admin(async (admin) => {
    if (disabled !== undefined) await admin.setDisabled(host.name, disabled, reason);
    if (forcedDown !== undefined) await admin.setForcedDown(host.name, forcedDown);
  });
  if (answer.kind === "unreachable") throw unavailable(`The cell ${cell.name} does not answer.`);
  return (await findHost(cells, host.name)).host;
}
