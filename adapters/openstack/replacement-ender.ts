import type { BlockStorage, CinderAttachment } from "../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../core/stores/block-storage-error.ts";
import { OWN_NAME } from "../../core/stores/networking.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";

/**
 * `complete`: the guest uses the other volume. `abandon`: it uses its own, and no host has the other one. `leave` is the first part of `complete`, which ends the attachments of the volume that the
 * guest has left.
 */
export type ReplacementEnd = "leave" | "complete" | "abandon";

export interface EndingReplacement {
  readonly serverUuid: string;
  /** The server's volume, and the one that was to replace it. */
  readonly volume: Pick<ServerVolume, "volumeId" | "replacedBy">;
  readonly end: ReplacementEnd;
  /** For `complete`: it is written down that `leave` is done, by whatever process, so that Cinder may have been asked already. */
  readonly hasLeft?: boolean;
  /** Which taking of its task the caller carries out. Between two takings another process may have asked Cinder. */
  readonly taking?: number;
}

export type ReplacementEndOutcome =
  | { readonly kind: "ended" }
  /** Cinder does not agree: an operator has to look. */
  | { readonly kind: "refused"; readonly why: string }
  /** The caller may not write any longer. */
  | { readonly kind: "unwanted" };

const ENDED = { kind: "ended" } as const;
const UNWANTED = { kind: "unwanted" } as const;
/** Cinder's words for a migration that has ended. */
const SUCCEEDED = "success";
const FAILED = "error";
/** The statuses of a volume that Cinder was told to delete. */
export const DELETING: readonly string[] = ["deleting", "error_deleting"];
/** Cinder's word while it carries out a completion. */
const COMPLETING = "completing";
/** How long Cinder may take to begin a completion that it was asked for: longer than its usual `rpc_response_timeout` of 60 s. */
export const COMPLETION_PAUSE_MS = 75_000;
/** What is known of a completion for so long is forgotten. It is found out again then, which only takes longer. */
const FORGOTTEN_AFTER_MS = 600_000;

/** What is known of a completion: until when one may be waiting in Cinder, and whether this process has asked for one. */
interface KnownCompletion {
  readonly mayBeginUntilMs: number;
  readonly isAsked: boolean;
}

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
 * attachment is left and this process has ended none, or because `leave` was done before.
 */
export class ReplacementEnder {
  readonly #storage: BlockStorage;
  readonly #clock: Clock;
  readonly #pauseMs: number;
  /** By the two volumes and the taking. */
  readonly #completions = new Map<string, KnownCompletion>();

  /** `pauseMs`: how long a completion that was asked for may take to begin. */
  constructor(
    deps: { readonly storage: BlockStorage; readonly clock: Clock },
    { pauseMs }: { readonly pauseMs: number },
  ) {
    this.#storage = deps.storage;
    this.#clock = deps.clock;
    this.#pauseMs = pauseMs;
  }

  /** Rejects with a BlockStorageError if Cinder's answer is not known; then this is to be called again. `mayWrite` is asked before each write. */
  async end(replacement: EndingReplacement, mayWrite: () => Promise<boolean>): Promise<ReplacementEndOutcome> {
    const outcome = await this.#end(replacement, mayWrite);
    if (outcome.kind !== "refused" && replacement.end !== "leave") this.#completions.delete(keyOf(replacement));
    return outcome;
  }

  async #end(replacement: EndingReplacement, mayWrite: () => Promise<boolean>): Promise<ReplacementEndOutcome> {
    const { serverUuid, volume, end, hasLeft = false } = replacement;
    const storage = this.#storage;
    const { volumeId, replacedBy } = volume;
    const unused = end === "abandon" ? replacedBy : volumeId;
    const attachments = await storage.attachments({ volumeId: unused, serverUuid });
    const other = await storage.volume(replacedBy, OWN_NAME);
    const own = await storage.volume(volumeId, OWN_NAME);
    const isUnderWay = own !== null && own.migrationStatus !== "" && other?.migrationStatus === `target:${volumeId}`;
    // Cinder deletes the other volume some time after it was told so. It says that a migration has failed also when it was not told, and keeps the other volume then.
    const isDropped = own?.migrationStatus === FAILED && DELETING.includes(other?.status ?? "");
    // Somebody else has completed it. A migration that has succeeded long before has not dropped this other volume.
    const isGone = other === null || DELETING.includes(other.status);
    if (end === "abandon" && own?.migrationStatus === SUCCEEDED && isGone)
      return refused(
        `Cinder has completed the migration of volume ${volumeId} to ${replacedBy}, and deletes what the guest uses. Copy what is needed out of the guest while it runs, and reset the volume's migration status (cinder reset-state --reset-migration-status ${volumeId}): from its next boot on, the guest has the volume as Cinder has it now`,
      );
    // Cinder gives the volume the attachments of the other one when it completes the migration, and all others had ended before it was asked. So it has completed it, also if it has begun
    // to migrate the volume again since. An earlier version asked without writing anything down. Then the file shows it, which an attachment of the volume itself cannot name before the exchange.
    const isAsked = hasLeft || this.#completions.get(keyOf(replacement))?.isAsked === true;
    const isTaken = attachments.some((one) => isAsked || isOfOther(one, replacedBy));
    const isCompleted = own?.migrationStatus === SUCCEEDED || (own !== null && isGone && isTaken);
    if (!isUnderWay || (end === "abandon" && isDropped)) {
      if (end === "abandon" || isCompleted) return ENDED;
      return refused(
        `Cinder no longer migrates volume ${volumeId} to ${replacedBy}, whose data the guest uses (migration status: ${own?.migrationStatus || "none"})`,
      );
    }
    if (own.migrationStatus === COMPLETING) throw stillCompletes(volume);
    if (end !== "abandon") this.#pauseAfterOthers(replacement, attachments.length);
    for (const { id } of attachments) {
      if (!(await mayWrite())) return UNWANTED;
      await storage.deleteAttachment(id);
    }
    if (end === "leave") return ENDED;
    if (!(await mayWrite())) return UNWANTED;
    try {
      const outcome = await storage.endMigration({ volumeId, targetId: replacedBy, hasFailed: end === "abandon" });
      if (outcome.kind === "ended") return ENDED;
      return refused(`Cinder does not end the migration of volume ${volumeId} to ${replacedBy}: ${outcome.why}`);
    } catch (error) {
      const mayBeginUntilMs = this.#clock.monotonic() + this.#pauseMs;
      this.#note(replacement, { mayBeginUntilMs, isAsked: end === "complete" });
      throw error;
    }
  }

  /** Throws while a completion that was asked for before may not have begun. */
  #pauseAfterOthers(replacement: EndingReplacement, attachmentsLeft: number): void {
    const nowMs = this.#clock.monotonic();
    const known = this.#completions.get(keyOf(replacement));
    const mayBeAsked = replacement.hasLeft === true || attachmentsLeft === 0;
    const untilMs = known?.mayBeginUntilMs ?? (mayBeAsked ? nowMs + this.#pauseMs : nowMs);
    if (known === undefined) this.#note(replacement, { mayBeginUntilMs: untilMs, isAsked: false });
    if (nowMs < untilMs)
      throw new BlockStorageError(
        "unreachable",
        `Cinder may still begin a completion that it was asked for before, and is asked again in ${Math.ceil((untilMs - nowMs) / 1_000)} s`,
      );
  }

  #note(replacement: EndingReplacement, completion: KnownCompletion): void {
    const nowMs = this.#clock.monotonic();
    for (const [key, { mayBeginUntilMs }] of this.#completions)
      if (nowMs - mayBeginUntilMs > FORGOTTEN_AFTER_MS) this.#completions.delete(key);
    this.#completions.set(keyOf(replacement), completion);
  }
}

/** Whether the host reaches the file of the volume that was to replace the attachment's one. */
const isOfOther = ({ connection }: Pick<CinderAttachment, "connection">, replacedBy: string): boolean =>
  typeof connection?.name === "string" && connection.name.startsWith(`volume-${replacedBy}`);

const refused = (why: string): ReplacementEndOutcome => ({ kind: "refused", why });
const keyOf = ({ volume: { volumeId, replacedBy }, taking = 0 }: EndingReplacement): string =>
  `${volumeId} ${replacedBy} ${taking}`;

const stillCompletes = ({ volumeId, replacedBy }: EndingReplacement["volume"]) =>
  new BlockStorageError(
    "unreachable",
    `Cinder still completes the migration of volume ${volumeId} to ${replacedBy}; if that does not end, look into the log of cinder-volume`,
  );
