import type { ImageService } from "../../../../core/stores/api/image-service.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { Ticker } from "../../../../runtime/ticker.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import type { RequestsPort } from "../../ports.ts";
import type { ResizeSettler } from "../quotas/resize-settler.ts";
import type { SettledVolumes } from "../server-volumes/server-volumes.ts";
import { VolumeSettler } from "../server-volumes/volume-settler.ts";
import type { SoftDeleter } from "../soft-deletion/soft-deleter.ts";
import type { CinderAccess } from "./action-call.ts";
import { SnapshotSettler } from "./snapshot-settler.ts";
import { VolumeImageSettler } from "./volume-image-settler.ts";

/** How often images whose making may have ended are looked for, and volumes whose attaching or detaching may have. */
const SNAPSHOT_POLL_MS = 1_000;
const VOLUME_POLL_MS = 1_000;
/** How often soft deletions are looked at, how long one is left alone after a step, and how many are looked at in one round. */
const SOFT_DELETION_POLL_MS = 1_000;
const SOFT_DELETION_UNTOUCHED_MS = 2_000;
const SOFT_DELETIONS_MAX = 100;

/**
 * Opens the loops that record in the API database which resizes, images and attachments of volumes have ended in their cells, and the one that continues
 * soft deletions. A loop is left out when this process lacks its stores.
 */
export function openSettlers(
  {
    resizes,
    images,
    volumes,
    softDeleter,
    cinder,
    ...deps
  }: {
    readonly resizes: ResizeSettler | null;
    readonly images: ImageService | null;
    readonly volumes: SettledVolumes | null;
    readonly softDeleter: SoftDeleter | null;
    readonly cinder: CinderAccess | null;
    readonly store: Pick<RequestsPort, "requests" | "accept" | "cancel" | "markDeleted" | "changeServer">;
    readonly cells: Cells;
    readonly events: ApiEvents;
    readonly clock: Clock;
  },
  { settleMs }: { readonly settleMs: number },
): readonly Pick<Ticker, "start" | "stop">[] {
  const volumeImages =
    images === null || cinder === null ? null : new VolumeImageSettler({ ...deps, images, storage: cinder.storage });
  const snapshots =
    images === null
      ? null
      : new SnapshotSettler({ ...deps, images, volumeImages }, { pollMs: SNAPSHOT_POLL_MS, settleMs });
  const attachments =
    volumes === null ? null : new VolumeSettler({ ...deps, volumes }, { pollMs: VOLUME_POLL_MS, settleMs });
  const deletions = softDeleter === null ? null : softDeletionTicker(softDeleter, deps);
  return [resizes, snapshots, attachments, deletions].filter((one) => one !== null);
}

/** Returns the loop that continues soft deletions, and deletes for good what nobody has restored in time. */
function softDeletionTicker(
  softDeleter: SoftDeleter,
  { clock, events }: { readonly clock: Clock; readonly events: ApiEvents },
): Ticker {
  return new Ticker({
    clock,
    pauseMs: SOFT_DELETION_POLL_MS,
    work: () => softDeleter.settle({ untouchedMs: SOFT_DELETION_UNTOUCHED_MS, limit: SOFT_DELETIONS_MAX }),
    onError: (error) => events.softDeletionsNotSettled(error),
  });
}
