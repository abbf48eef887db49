import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { VolumeAttachment, VolumeRecord, VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import { bareSpec } from "../../../../core/tasks/server-spec.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { RequestsPort } from "../../ports.ts";
import { type BuildingLook, hasNeverRun, judgeBuilding } from "./judge-building.ts";

export type UnsettledVolume = VolumeRecord & { readonly attachment: VolumeAttachment };

export interface BuildingDeps {
  readonly volumes: Pick<VolumeStore, "confirmAttached" | "release" | "endAttachment">;
  readonly store: Pick<RequestsPort, "requests" | "accept" | "cancel" | "markDeleted">;
  readonly cells: Cells;
}

/** The request that closes the UUID of a server that was never accepted. */
const CLOSING_REQUEST = "req-00000000-0000-0000-0000-000000000000";

/** Whether the volume waits for a server's build, or was in no cell when its server ended. */
export function isBuilding({ attachment: { taskId, serverUuid, cell } }: UnsettledVolume): boolean {
  return taskId === serverUuid || cell === "";
}

/** Brings volumes that were reserved for new servers up to date with the requests of these servers and their cells. Every step may be repeated. */
export async function settleBuilding(
  deps: BuildingDeps,
  volumes: readonly UnsettledVolume[],
  { nowMs, settleMs }: { readonly nowMs: number; readonly settleMs: number },
): Promise<void> {
  if (volumes.length === 0) return;
  const records = await deps.store.requests([...new Set(volumes.map(({ attachment }) => attachment.serverUuid))]);
  const byUuid = new Map(records.map((record) => [record.serverUuid, record]));
  const looks = await looksOf(deps.cells, records);
  for (const { id, attachment } of volumes) {
    const { serverUuid, taskId } = attachment;
    const record = byUuid.get(serverUuid) ?? null;
    if (taskId === null) {
      const look = looks.get(serverUuid) ?? null;
      const neverRan = record?.cell === null || hasNeverRun(look?.server ?? null);
      if (isGone(record, look)) await deps.volumes.endAttachment(id, attachment.attachmentId, neverRan);
      continue;
    }
    const verdict = judgeBuilding(id, record, looks.get(serverUuid) ?? null, attachment.phaseAgeMs > settleMs);
    switch (verdict) {
      case "wait":
        break;
      case "attached":
        await deps.volumes.confirmAttached(id, taskId, nowMs, record?.cell ?? "");
        break;
      case "release":
        await deps.volumes.release(id, taskId);
        break;
      case "close":
        await closeServer(deps.store, serverUuid);
        break;
      default:
        verdict satisfies never;
    }
  }
}

/** Whether no host can have a guest of a deleted server. One that was deleted before it was assigned to a cell has none anywhere. */
function isGone(record: RequestRecord | null, look: BuildingLook | null): boolean {
  if (record?.state !== "deleted") return false;
  if (record.cell === null) return true;
  return look !== null && (look.server === null || look.server.status === "DELETED") && !look.guestLeft;
}

async function looksOf(cells: Cells, records: readonly RequestRecord[]): Promise<ReadonlyMap<string, BuildingLook>> {
  const looks = new Map<string, BuildingLook>();
  const byCell = Map.groupBy(records, ({ cell }) => cell ?? "");
  await Promise.all(
    Array.from(byCell, async ([name, ofCell]) => {
      const uuids = ofCell.map(({ serverUuid }) => serverUuid);
      const answer = await cells
        .get(name)
        ?.operations(async (store) => ({ servers: await store.servers(uuids), left: await store.guestsLeft(uuids) }));
      if (answer?.kind !== "answer") return;
      const servers = new Map(answer.value.servers.map((server) => [server.uuid, server]));
      for (const [at, uuid] of uuids.entries())
        looks.set(uuid, { server: servers.get(uuid) ?? null, guestLeft: answer.value.left[at] ?? true });
    }),
  );
  return looks;
}

/**
 * Closes the UUID of a server that its api has not accepted in its time: a request with this UUID, which asks for nothing, is accepted and deleted. From
 * then on the server itself cannot be accepted, however late its api is, and its volumes end as those of any deleted server. If the server was
 * accepted meanwhile, nothing changes.
 */
export async function closeServer(store: BuildingDeps["store"], serverUuid: string): Promise<void> {
  await store.accept([bareSpec(serverUuid)]);
  const [record] = await store.requests([serverUuid]);
  if (record === undefined || record.spec.flavor !== undefined) return;
  await store.cancel(serverUuid, CLOSING_REQUEST);
  await store.markDeleted([{ cell: null, serverUuid }]);
}
