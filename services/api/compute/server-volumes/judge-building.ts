import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { Server } from "../../../../core/tasks/server.ts";

/** What a cell says about a server that was built with volumes. The guests are read last. */
export interface BuildingLook {
  /** Null when the cell has no such server. */
  readonly server: Pick<Server, "status" | "host" | "launchedAtMs" | "spec"> | null;
  /** A guest of the server may be on a host that it has left. */
  readonly guestLeft: boolean;
}

/** `close`: close the server's UUID, so that no server is accepted under it any longer. The others are as for attachments. */
export type BuildingVerdict = "wait" | "close" | "attached" | "release";

/** Whether a server is known to have had no guest that ran: a guest starts only after the commit that writes when its server was launched. */
export const hasNeverRun = (server: Pick<Server, "launchedAtMs"> | null): boolean =>
  server !== null && server.launchedAtMs === null;

/**
 * Judges a volume that was reserved for a new server. The server has it as soon as it was launched with it. It is released when the request
 * failed before any cell took it, or when its cell says that the server ended in ERROR on no host, from where nothing can be built again. A request fails also after a cell has taken it: when
 * servers of one call are refused together, which deletes each in its cell first, and when a restored database has forgotten the server, whose guest may run with the volume. So that cell is asked, too.
 * Silence releases nothing. `look` is null if no cell was asked. `isOld`: the call that reserved the volume must have ended by now.
 */
export function judgeBuilding(
  volumeId: string,
  record: Pick<RequestRecord, "state" | "cell"> | null,
  look: BuildingLook | null,
  isOld: boolean,
): BuildingVerdict {
  if (record === null) return isOld ? "close" : "wait";
  const server = look?.server ?? null;
  const isNowhere = server === null || server.status === "DELETED";
  if (record.state === "failed" && isNowhere)
    return record.cell === null || look?.guestLeft === false ? "release" : "wait";
  // The API database hears of a deletion soon, and then no host may have a guest before the volume is free.
  if (isNowhere) return "wait";
  const { status, host, launchedAtMs, spec } = server;
  if (launchedAtMs !== null) return spec.volumes.some((volume) => volume.volumeId === volumeId) ? "attached" : "wait";
  return status === "ERROR" && host === null && look?.guestLeft === false ? "release" : "wait";
}
