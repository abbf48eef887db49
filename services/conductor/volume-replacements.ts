import { DELETING, type ReplacementEnd, ReplacementEnder } from "../../adapters/openstack/replacement-ender.ts";
import type { BlockStorage } from "../../core/stores/block-storage.ts";
import { OWN_NAME } from "../../core/stores/networking.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import { failed, type Need, noCinder, PatientCalls, UNWANTED, type Undone } from "./patient-calls.ts";
import type { ConductorStore } from "./ports.ts";

export type EndedReplacement = { readonly kind: "ended" } | Undone;

const ENDED = { kind: "ended" } as const;
/** Cinder's word while the data is copied. */
const MIGRATING = "migrating";

/**
 * Tells Cinder how the replacement of a volume has ended (`ReplacementEnder`), and asks it again while it does not answer. This is called only after the cell's database knows
 * which of the two volumes the guest uses.
 */
export class VolumeReplacements {
  readonly #storage: BlockStorage | null;
  readonly #calls: PatientCalls;
  readonly #ender: ReplacementEnder | null;

  constructor(
    deps: {
      readonly storage: BlockStorage | null;
      readonly store: Pick<ConductorStore, "holdsTask">;
      readonly clock: Clock;
    },
    settings: { readonly volumeConnectTimeoutMs: number; readonly volumeEndPauseMs: number },
  ) {
    const { storage, clock } = deps;
    this.#storage = storage;
    this.#ender = storage && new ReplacementEnder({ storage, clock }, { pauseMs: settings.volumeEndPauseMs });
    this.#calls = new PatientCalls(deps, { deadlineMs: settings.volumeConnectTimeoutMs });
  }

  /** Returns null at once for a volume that is not in Cinder. `leave` must be done and written down before `complete`. The promise never rejects because of Cinder. */
  end(serverUuid: string, volume: ServerVolume, end: ReplacementEnd, need: Need): Promise<EndedReplacement> | null {
    const ender = this.#ender;
    if (!volume.inCinder) return null;
    if (ender === null) return Promise.resolve(failed(noCinder("the volume is in Cinder"), true));
    const what = `Cinder could not be told of volume ${volume.volumeId}`;
    return this.#calls.call<typeof ENDED>(what, need, async () => {
      const taking = typeof need.tenure === "function" ? 0 : need.tenure.epoch;
      const replacement = { serverUuid, volume, end, hasLeft: end === "complete", taking };
      const outcome = await ender.end(replacement, () => this.#calls.mayWrite(need));
      if (outcome.kind === "unwanted") return UNWANTED;
      return outcome.kind === "refused" ? failed(outcome.why, true) : ENDED;
    });
  }

  /**
   * Asks Cinder whether it still migrates the volume, before the guest changes over to the other one: it may have given the migration up, and delete the other
   * volume, while the host copied. Returns null at once for a volume that is not in Cinder.
   */
  confirm(volume: ServerVolume, need: Need): Promise<EndedReplacement> | null {
    const storage = this.#storage;
    if (!volume.inCinder) return null;
    if (storage === null) return Promise.resolve(failed(noCinder("the volume is in Cinder"), true));
    const { volumeId, replacedBy } = volume;
    return this.#calls.call<typeof ENDED>(`Cinder could not be asked about volume ${volumeId}`, need, async () => {
      const other = await storage.volume(replacedBy, OWN_NAME);
      const own = await storage.volume(volumeId, OWN_NAME);
      const isTarget = other?.migrationStatus === `target:${volumeId}` && !DELETING.includes(other.status);
      if (own?.migrationStatus === MIGRATING && isTarget) return ENDED;
      const seen = `${own?.migrationStatus || "none"} and ${other?.migrationStatus || "none"}; the other one is ${other?.status ?? "gone"}`;
      return failed(
        `Cinder no longer migrates volume ${volumeId} to ${replacedBy} (migration statuses: ${seen})`,
        true,
      );
    });
  }
}
