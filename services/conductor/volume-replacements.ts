import type { BlockStorage } from "../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../core/stores/block-storage-error.ts";
import { OWN_NAME } from "../../core/stores/networking.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import { failed, type Need, PatientCalls, UNWANTED, type Undone } from "./patient-calls.ts";
import type { ConductorStore } from "./ports.ts";

/** `complete`: the guest uses the other volume. `abandon`: it uses its own, and no host has the other one. */
export type ReplacementEnd = "complete" | "abandon";
export type EndedReplacement = { readonly kind: "ended" } | Undone;

const ENDED = { kind: "ended" } as const;
/** Cinder's words for a migration that has ended. */
const SUCCEEDED = "success";
const FAILED = "error";
/** The statuses of a volume that Cinder was told to delete. */
const DELETING = ["deleting", "error_deleting"];
/** Cinder's word while the data is copied. */
const MIGRATING = "migrating";
/** Cinder's word while it carries out a completion. */
const COMPLETING = "completing";
/** What is known of a completion for so long is forgotten. It is found out again then, which only takes longer. */
const FORGOTTEN_AFTER_MS = 600_000;

/**
 * Tells Cinder how the replacement of a volume has ended, with which Cinder migrates an attached volume to another back end. If it is completed, Cinder gives the
 * other volume the id of the first one, and deletes what the first one has stored; otherwise it deletes the other one. So this is called only after the
 * cell's database knows which of the two the guest uses.
 *
 * Both ends are repeatable: Cinder shows whether the migration is still under way, and is told nothing if it is over. The attachments of the volume that the guest
 * does not use end first, as in Nova, because Cinder deletes no volume that is attached. They are listed before the volumes are read: if the migration is under way
 * after that, it was so before, and none of them is of the volume that the guest uses.
 *
 * Two completions at a time may delete the guest's data, since Cinder exchanges the two volumes' records in each. It goes on with one whose answer was lost, and
 * may not have begun it. So the next one waits until Cinder has certainly begun: after an unclear answer, and if another process may just have asked, because no
 * attachment is left and this process has ended none.
 */
export class VolumeReplacements {
  readonly #storage: BlockStorage | null;
  readonly #calls: PatientCalls;
  readonly #clock: Clock;
  readonly #pauseMs: number;
  /** Until when a completion may be waiting in Cinder, by the two volumes. */
  readonly #mayBeginUntilMs = new Map<string, number>();

  constructor(
    deps: {
      readonly storage: BlockStorage | null;
      readonly store: Pick<ConductorStore, "holdsTask">;
      readonly clock: Clock;
    },
    settings: { readonly volumeConnectTimeoutMs: number; readonly volumeEndPauseMs: number },
  ) {
    this.#storage = deps.storage;
    this.#clock = deps.clock;
    this.#pauseMs = settings.volumeEndPauseMs;
    this.#calls = new PatientCalls(deps, { deadlineMs: settings.volumeConnectTimeoutMs });
  }

  /** Returns null at once for a volume that is not in Cinder. The promise never rejects because of Cinder. */
  end(serverUuid: string, volume: ServerVolume, end: ReplacementEnd, need: Need): Promise<EndedReplacement> | null {
    const storage = this.#storage;
    if (!volume.inCinder) return null;
    if (storage === null) return Promise.resolve(failed(NO_CINDER, true));
    return this.#told(storage, { serverUuid, volume, end, need });
  }

  /**
   * Asks Cinder whether it still migrates the volume, before the guest changes over to the other one: it may have given the migration up, and delete the other
   * volume, while the host copied. Returns null at once for a volume that is not in Cinder.
   */
  confirm(volume: ServerVolume, need: Need): Promise<EndedReplacement> | null {
    const storage = this.#storage;
    if (!volume.inCinder) return null;
    if (storage === null) return Promise.resolve(failed(NO_CINDER, true));
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

  async #told(storage: BlockStorage, replacement: Replacement): Promise<EndedReplacement> {
    const { volume, need } = replacement;
    const outcome = await this.#calls.call(`Cinder could not be told of volume ${volume.volumeId}`, need, () =>
      this.#endIn(storage, replacement),
    );
    if (outcome.kind !== "failed") this.#mayBeginUntilMs.delete(keyOf(volume));
    return outcome;
  }

  async #endIn(storage: BlockStorage, replacement: Replacement): Promise<EndedReplacement> {
    const { serverUuid, volume, end, need } = replacement;
    const { volumeId, replacedBy } = volume;
    const unused = end === "complete" ? volumeId : replacedBy;
    const attachments = await storage.attachments({ volumeId: unused, serverUuid });
    const other = await storage.volume(replacedBy, OWN_NAME);
    const own = await storage.volume(volumeId, OWN_NAME);
    const isUnderWay = own !== null && own.migrationStatus !== "" && other?.migrationStatus === `target:${volumeId}`;
    // Cinder deletes the other volume some time after it was told so. It says that a migration has failed also when it was not told, and keeps the other volume then.
    const isDropped = own?.migrationStatus === FAILED && DELETING.includes(other?.status ?? "");
    if (!isUnderWay || (end === "abandon" && isDropped)) {
      if (end === "abandon" || own?.migrationStatus === SUCCEEDED) return ENDED;
      return failed(
        `Cinder no longer migrates volume ${volumeId} to ${replacedBy}, whose data the guest uses (migration status: ${own?.migrationStatus || "none"})`,
        true,
      );
    }
    if (own.migrationStatus === COMPLETING) throw stillCompletes(volume);
    if (end === "complete") this.#pauseAfterOthers(volume, attachments.length);
    for (const { id } of attachments) {
      if (!(await this.#calls.mayWrite(need))) return UNWANTED;
      await storage.deleteAttachment(id);
    }
    if (!(await this.#calls.mayWrite(need))) return UNWANTED;
    try {
      const outcome = await storage.endMigration({ volumeId, targetId: replacedBy, hasFailed: end === "abandon" });
      if (outcome.kind === "ended") return ENDED;
      return failed(`Cinder does not end the migration of volume ${volumeId} to ${replacedBy}: ${outcome.why}`, true);
    } catch (error) {
      this.#note(volume, this.#clock.monotonic() + this.#pauseMs);
      throw error;
    }
  }

  /** Throws while a completion that was asked for before may not have begun. */
  #pauseAfterOthers(volume: ServerVolume, attachmentsLeft: number): void {
    const nowMs = this.#clock.monotonic();
    const known = this.#mayBeginUntilMs.get(keyOf(volume));
    const untilMs = known ?? (attachmentsLeft === 0 ? nowMs + this.#pauseMs : nowMs);
    if (known === undefined) this.#note(volume, untilMs);
    if (nowMs < untilMs)
      throw new BlockStorageError(
        "unreachable",
        `Cinder may still begin a completion that it was asked for before, and is asked again in ${Math.ceil((untilMs - nowMs) / 1_000)} s`,
      );
  }

  #note(volume: ServerVolume, untilMs: number): void {
    const nowMs = this.#clock.monotonic();
    for (const [key, lastMs] of this.#mayBeginUntilMs)
      if (nowMs - lastMs > FORGOTTEN_AFTER_MS) this.#mayBeginUntilMs.delete(key);
    this.#mayBeginUntilMs.set(keyOf(volume), untilMs);
  }
}

interface Replacement {
  readonly serverUuid: string;
  readonly volume: ServerVolume;
  readonly end: ReplacementEnd;
  readonly need: Need;
}

const keyOf = ({ volumeId, replacedBy }: ServerVolume): string => `${volumeId} ${replacedBy}`;

const stillCompletes = ({ volumeId, replacedBy }: ServerVolume) =>
  new BlockStorageError(
    "unreachable",
    `Cinder still completes the migration of volume ${volumeId} to ${replacedBy}; if that does not end, look into the log of cinder-volume`,
  );

const NO_CINDER =
  "the volume is in Cinder, and the conductors of its cell cannot call Cinder: set BERTH_VOLUMES=cinder for them";
