import type { ImageService } from "../../../../core/stores/api/image-service.ts";
import type { MoveStore } from "../../../../core/stores/api/move-store.ts";
import type { QuotaStore } from "../../../../core/stores/api/quota-store.ts";
import type { VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { Ticker } from "../../../../runtime/ticker.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import type { RequestsPort } from "../../ports.ts";
import { ResizeSettler } from "../quotas/resize-settler.ts";
import { VolumeSettler } from "../server-volumes/volume-settler.ts";
import { SnapshotSettler } from "./snapshot-settler.ts";

/** How often resizes that may have ended are looked for, images whose making may have ended, and volumes whose attaching or detaching may have. */
const RESIZE_POLL_MS = 5_000;
const SNAPSHOT_POLL_MS = 1_000;
const VOLUME_POLL_MS = 1_000;

/**
 * Opens the loops that record in the API database which resizes, images and attachments of volumes have ended in their cells. A loop is left out when this process
 * lacks its stores.
 */
export function openSettlers(
  {
    quotas,
    moves,
    images,
    volumes,
    ...deps
  }: {
    readonly quotas: QuotaStore | null;
    readonly moves: MoveStore | undefined;
    readonly images: ImageService | null;
    readonly volumes: VolumeStore | null;
    readonly store: Pick<RequestsPort, "requests" | "accept" | "cancel" | "markDeleted">;
    readonly cells: Cells;
    readonly events: ApiEvents;
    readonly clock: Clock;
  },
  { settleMs }: { readonly settleMs: number },
): readonly Pick<Ticker, "start" | "stop">[] {
  const resizes =
    quotas === null || moves === undefined
      ? null
      : new ResizeSettler({ ...deps, quotas, moves }, { pollMs: RESIZE_POLL_MS, settleMs });
  const snapshots =
    images === null ? null : new SnapshotSettler({ ...deps, images }, { pollMs: SNAPSHOT_POLL_MS, settleMs });
  const attachments =
    volumes === null ? null : new VolumeSettler({ ...deps, volumes }, { pollMs: VOLUME_POLL_MS, settleMs });
  return [resizes, snapshots, attachments].filter((one) => one !== null);
}
