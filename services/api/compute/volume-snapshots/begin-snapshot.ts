import { volumeInDoubt } from "../../../../core/tasks/server-volumes.ts";
import type { Caller } from "../../../../proto/gen/berth/cell.ts";
import type { VolumeSnapshot } from "../../../../proto/gen/berth/shared.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest, Fault, unavailable } from "../../http/fault.ts";
import { beginInCell } from "../server-actions/begin-in-cell.ts";
import type { ServerVolumes } from "../server-volumes/server-volumes.ts";
import { stillWith } from "../server-volumes/still-with.ts";
import type { ServerDeps } from "../servers/server-routes.ts";

export type SnapshotDeps = Pick<ServerDeps, "store" | "cells" | "events"> & {
  /** Null when servers have no volumes. */
  readonly volumes: Pick<ServerVolumes, "volumes" | "beginMerge"> | null;
};

/**
 * Begins the part of a server's host in a snapshot of a volume in Cinder. Nova answers 400 to whatever cannot be done now, since its drivers take that for a
 * failure as well, so a conflict is refused with 400, too. A cell that does not answer is 503.
 */
export async function beginSnapshot(
  deps: SnapshotDeps,
  context: { readonly carrier: Readonly<Record<string, string>>; readonly askedBy: Caller },
  asked: {
    readonly kind: "snapshot-volume" | "merge-volume";
    readonly volumeId: string;
    readonly snapshot: VolumeSnapshot;
  },
): Promise<void> {
  const { kind, snapshot } = asked;
  const missing = () => badRequest(`No volume Block Device Mapping with id ${asked.volumeId.slice(0, 100)}.`);
  const rows = (await deps.volumes?.volumes([storedSpelling(asked.volumeId)])) ?? [];
  const attached = rows.filter(({ inCinder, attachment }) => inCinder && attachment !== null);
  const [row, other] = attached;
  if (row?.attachment == null) throw missing();
  if (other !== undefined)
    throw badRequest(
      `Block Device Mapping for volume ${row.id} is a multi-attach volume and is not valid for this operation.`,
    );
  const { serverUuid } = row.attachment;
  const [record] = await deps.store.requests([serverUuid]);
  const cell = record?.cell == null ? undefined : deps.cells.get(record.cell);
  if (record === undefined || cell === undefined) throw missing();
  const answer = await cell.server(serverUuid);
  if (answer.kind !== "answer") throw unavailable(`Cell ${cell.name}, where the server lives, does not answer.`);
  const server = answer.value;
  const known = server?.spec.volumes.find(({ volumeId }) => volumeId === row.id);
  if (server === null || known === undefined) throw missing();
  if (volumeInDoubt({ volumes: [known] }) !== undefined)
    throw badRequest(
      `It is unknown which file the server uses for volume ${row.id}: settle it first (berth volume settle).`,
    );
  const volume = kind === "snapshot-volume" ? { ...known, file: snapshot.newFile } : known;
  const target = { action: "volume_snapshot", record, cell, server };
  try {
    const prepare = async () => {
      if (kind === "merge-volume") await deps.volumes?.beginMerge(snapshot.snapshotId);
    };
    await beginInCell(deps, target, { kind, ...context, volume, snapshot, prepare, after: stillWith(volume, missing) });
  } catch (error) {
    if (error instanceof Fault && (error.status === 409 || error.status === 404)) throw badRequest(error.message);
    throw error;
  }
}
