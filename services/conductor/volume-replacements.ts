import type { BlockStorage } from "../../core/stores/block-storage.ts";
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

/**
 * Tells Cinder how the replacement of a volume has ended, with which Cinder migrates an attached volume to another back end. If it is completed, Cinder gives the
 * other volume the id of the first one, and deletes what the first one has stored; otherwise it deletes the other one. So this is called only after the
 * cell's database knows which of the two the guest uses.
 *
 * Both ends are repeatable: Cinder shows whether the migration is still under way, and is told nothing if it is over. The attachments of the volume that the guest
 * does not use end first, as in Nova, because Cinder deletes no volume that is attached.
 */
export class VolumeReplacements {
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

  /** Returns null at once for a volume that is not in Cinder. The promise never rejects because of Cinder. */
  end(serverUuid: string, volume: ServerVolume, end: ReplacementEnd, need: Need): Promise<EndedReplacement> | null {
    const storage = this.#storage;
    if (!volume.inCinder) return null;
    if (storage === null) return Promise.resolve(failed(NO_CINDER, true));
    const mayWrite = () => this.#calls.mayWrite(need);
    return this.#calls.call(`Cinder could not be told of volume ${volume.volumeId}`, need, () =>
      endIn(storage, { serverUuid, volume, end, mayWrite }),
    );
  }
}

async function endIn(
  storage: BlockStorage,
  {
    serverUuid,
    volume: { volumeId, replacedBy },
    end,
    mayWrite,
  }: {
    readonly serverUuid: string;
    readonly volume: ServerVolume;
    readonly end: ReplacementEnd;
    readonly mayWrite: () => Promise<boolean>;
  },
): Promise<EndedReplacement> {
  const other = await storage.volume(replacedBy, OWN_NAME);
  const own = await storage.volume(volumeId, OWN_NAME);
  const isUnderWay = own !== null && own.migrationStatus !== "" && other?.migrationStatus === `target:${volumeId}`;
  // Cinder deletes the other volume some time after it was told so.
  if (end === "abandon" && own?.migrationStatus === FAILED) return ENDED;
  if (!isUnderWay) {
    if (end === "abandon" || own?.migrationStatus === SUCCEEDED) return ENDED;
    return failed(
      `Cinder no longer migrates volume ${volumeId} to ${replacedBy}, whose data the guest uses (migration status: ${own?.migrationStatus || "none"})`,
      true,
    );
  }
  const unused = end === "complete" ? volumeId : replacedBy;
  for (const { id } of await storage.attachments({ volumeId: unused, serverUuid })) {
    if (!(await mayWrite())) return UNWANTED;
    await storage.deleteAttachment(id);
  }
  if (!(await mayWrite())) return UNWANTED;
  const outcome = await storage.endMigration({ volumeId, targetId: replacedBy, hasFailed: end === "abandon" });
  if (outcome.kind === "ended") return ENDED;
  return failed(`Cinder does not end the migration of volume ${volumeId} to ${replacedBy}: ${outcome.why}`, true);
}

const NO_CINDER =
  "the volume is in Cinder, and the conductors of its cell cannot call Cinder: set BERTH_VOLUMES=cinder for them";
