import type { BlockStorage } from "../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../core/stores/block-storage-error.ts";
import { OWN_NAME } from "../../core/stores/networking.ts";
import type { ServerVolume, VolumeSnapshot } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import { failed, type Need, noCinder, PatientCalls, UNWANTED } from "./patient-calls.ts";
import type { ConductorStore } from "./ports.ts";
import type { EndedReplacement } from "./volume-replacements.ts";

/** What Cinder does with a snapshot while it waits for the guest's host: its own words. */
export type SnapshotWork = "creating" | "deleting";

const ENDED = { kind: "ended" } as const;
const REFUSALS = { creating: "error", deleting: "error_deleting" } as const;
/** Cinder's word for a snapshot that it has made. */
const MADE = "available";

interface SnapshotOf {
  readonly serverUuid: string;
  readonly volume: ServerVolume;
  readonly snapshot: VolumeSnapshot;
  readonly work: SnapshotWork;
}

/**
 * Speaks with Cinder about snapshots of volumes that guests use. Cinder waits until it hears that the guest's host has done its part, for a limited time. So whether it still waits
 * is asked before the host gets an order, and a new snapshot counts only when Cinder shows that it was made: until then Cinder names the former file to a host that asks.
 */
export class VolumeSnapshots {
  readonly #storage: BlockStorage | null;
  readonly #calls: PatientCalls;

  constructor(
    deps: {
      readonly storage: BlockStorage | null;
      readonly store: Pick<ConductorStore, "holdsTask">;
      readonly clock: Clock;
    },
    settings: { readonly volumeConnectTimeoutMs: number },
  ) {
    this.#storage = deps.storage;
    this.#calls = new PatientCalls(deps, { deadlineMs: settings.volumeConnectTimeoutMs });
  }

  /** Asks Cinder whether it still waits for the guest's host. */
  confirm({ volume, snapshot: { snapshotId }, work }: SnapshotOf, need: Need): Promise<EndedReplacement> {
    return this.#call(`Cinder could not be asked about snapshot ${snapshotId}`, need, async (storage) => {
      const found = await storage.snapshot(snapshotId, OWN_NAME);
      if (found?.status === work && found.volumeId === volume.volumeId) return ENDED;
      return failed(
        `Cinder does not wait for snapshot ${snapshotId} of volume ${volume.volumeId}: its status is ${found?.status ?? "none, since it is gone"}`,
        true,
      );
    });
  }

  /**
   * Tells Cinder that the host has done its part. Resolves when Cinder has made the new snapshot, or knows that it may delete the files of another one. `failed` without `isUnknown`: Cinder
   * has given the snapshot up. A snapshot that was made may have another status when it is looked at, since users delete it at once, or Cinder fails after it has changed over. So what counts
   * then is the file that Cinder names to the server's hosts.
   */
  announce(of: SnapshotOf, need: Need): Promise<EndedReplacement> {
    const { work, snapshot } = of;
    const { snapshotId } = snapshot;
    return this.#call(`Cinder has not gone on with snapshot ${snapshotId}`, need, async (storage) => {
      const status = (await storage.snapshot(snapshotId, OWN_NAME))?.status ?? null;
      if (status === (work === "creating" ? MADE : null)) return ENDED;
      if (status !== work && work === "creating" && (await isNamed(storage, of))) return ENDED;
      if (status !== work)
        return failed(
          `Cinder has given snapshot ${snapshotId} up: its status is ${status ?? "none, since it is gone"}`,
          true,
        );
      if (!(await this.#calls.mayWrite(need))) return UNWANTED;
      const told = await storage.reportSnapshot({ snapshotId, status: work, isDone: true });
      if (told.kind === "taken" && work === "deleting") return ENDED;
      const why = told.kind === "taken" ? "it is still creating" : told.why;
      throw new BlockStorageError("unreachable", why);
    });
  }

  /** Tells Cinder that the host has not done its part. Resolves also if Cinder has given the snapshot up already. */
  deny({ snapshot: { snapshotId }, work }: SnapshotOf, need: Need): Promise<EndedReplacement> {
    return this.#call(`Cinder could not be told of snapshot ${snapshotId}`, need, async (storage) => {
      if (!(await this.#calls.mayWrite(need))) return UNWANTED;
      await storage.reportSnapshot({ snapshotId, status: REFUSALS[work], isDone: false });
      return ENDED;
    });
  }

  /** A question that has no answer within the deadline leaves open what Cinder does. */
  async #call(
    what: string,
    need: Need,
    work: (storage: BlockStorage) => Promise<EndedReplacement>,
  ): Promise<EndedReplacement> {
    const storage = this.#storage;
    if (storage === null) return failed(noCinder("the volume is in Cinder"), true);
    let said: EndedReplacement | null = null;
    const outcome = await this.#calls.call<typeof ENDED>(what, need, async () => {
      said = await work(storage);
      return said;
    });
    return outcome.kind === "failed" && outcome !== said ? { ...outcome, isUnknown: true } : outcome;
  }
}

/** Whether Cinder names the new file of a snapshot to a host of the server. Throws while Cinder does not say which one it names. */
async function isNamed(
  storage: BlockStorage,
  { serverUuid, volume: { volumeId }, snapshot: { newFile } }: SnapshotOf,
): Promise<boolean> {
  for (const { id } of await storage.attachments({ volumeId, serverUuid }))
    if ((await storage.attachment(id))?.connection?.name === newFile) return true;
  return false;
}
