import type { BlockStorage, CinderVolume } from "../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../core/stores/block-storage-error.ts";
import type { PluggedPort } from "../../core/stores/cell/plug-store.ts";
import { OWN_NAME } from "../../core/stores/networking.ts";
import { StoreError } from "../../core/stores/store-error.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import { Batcher } from "../../runtime/batcher.ts";
import type { Clock } from "../../runtime/clock.ts";
import { failed, type Need, noCinder, PatientCalls, UNWANTED, type Undone } from "./patient-calls.ts";
import type { ConductorStore } from "./ports.ts";
import type { EndedReplacement } from "./volume-replacements.ts";

/** `mayBeAsked`: another conductor, or this one, may have asked Cinder for this before. `attemptId`: the guest that is to get the volume. */
export type ReimageNeed = Need & { readonly mayBeAsked: boolean; readonly attemptId: string };

const ENDED = { kind: "ended" } as const;
/** Cinder's word while it fills a volume. */
const FILLING = "downloading";
/** Cinder's word for a volume that is kept for a server and that no host has. */
const KEPT = "reserved";
/** The pause before Cinder is looked at again. Each further pause is twice as long. */
const LOOK_MS = 1_000;
const LOOK_MS_MAX = 15_000;
/** How often the cell's database is asked for Cinder's events meanwhile. */
const EVENT_MS = 1_000;
/** Most reimages that one question to the database is about. */
const ATTEMPTS_MAX = 500;

/** What this conductor knows of one reimage. */
interface Course {
  readonly serverUuid: string;
  readonly volumeId: string;
  readonly imageId: string;
  readonly attemptId: string;
  readonly isWanted: () => boolean;
  readonly mayWrite: () => Promise<boolean>;
  /** Cinder may have been asked, and may have changed the volume. */
  mayBeAsked: boolean;
  /** An attachment over which a guest may have the volume may have ended. A guest must not run before the volume is connected again. */
  mayBeCutOff: boolean;
  /** When Cinder was first known to fill the volume, by the monotonic clock. */
  filledSinceMs: number | null;
  /** When Cinder's time to fill it is over, by the monotonic clock. */
  untilMs: number;
  /** When Cinder last answered. */
  heardAtMs: number;
  pauseMs: number;
  /** Cinder's event has come. */
  isReported: boolean;
}

/**
 * Lets Cinder fill the boot volume of a server with an image, while no guest of the server runs. Cinder does that only to a volume that no host has and that one attachment keeps,
 * so the attachments of the server are replaced by such a one first. The next order to the host connects it again.
 *
 * Cinder shows how far it is: the volume is `downloading`, and then `reserved` again, or `error`, and it shows the id of the image that the volume was last filled from. It also sends
 * the event `volume-reimaged` when the volume is filled, and none if that has failed. An api writes the event into the cell's database, which is asked once a second about all reimages that wait, and then Cinder is looked at
 * at once; without it, Cinder is looked at after growing pauses. Only what Cinder shows counts. So it makes no difference whether the event comes early, twice or never, or whether another conductor
 * goes on with the wait.
 *
 * A volume that is being filled is never filled a second time: if this operation has not asked for that, somebody else has, and it fails. If it is not known whether Cinder was asked, because
 * its answer was lost or another conductor has died, and the volume is not being filled, Cinder is asked (again). It only fills the volume with the same image once more.
 *
 * Source: `_rebuild_volume_backed_instance` of Nova's compute manager, `reimage` of Cinder's volume manager.
 */
export class VolumeReimages {
  readonly #storage: BlockStorage | null;
  /** What Cinder has reported, by the guest that is to get the volume. */
  readonly #reports: Batcher<string, readonly PluggedPort[]>;
  readonly #calls: PatientCalls;
  readonly #clock: Clock;
  readonly #silenceMs: number;
  readonly #msPerGib: number;

  constructor(
    deps: {
      readonly storage: BlockStorage | null;
      readonly store: Pick<ConductorStore, "holdsTask" | "pluggedPorts">;
      readonly clock: Clock;
    },
    settings: { readonly volumeConnectTimeoutMs: number; readonly reimageMsPerGib: number },
  ) {
    this.#storage = deps.storage;
    this.#reports = new Batcher({ run: (ids) => deps.store.pluggedPorts(ids), maxItems: ATTEMPTS_MAX });
    this.#clock = deps.clock;
    this.#silenceMs = settings.volumeConnectTimeoutMs;
    this.#msPerGib = settings.reimageMsPerGib;
    // How long Cinder may be silent, and how long it may take, are counted here, each from its own beginning.
    this.#calls = new PatientCalls(deps, { deadlineMs: Number.POSITIVE_INFINITY });
  }

  /**
   * Returns null at once for a volume that is not in Cinder. `imageRef` of the volume is the image. The promise never rejects because of Cinder. After a failure that
   * is not `isUnknown`, the volume holds what it held, and the former guest may go on when the volume is connected again.
   */
  reimage(
    serverUuid: string,
    { volumeId, imageRef: imageId, inCinder }: ServerVolume,
    need: ReimageNeed,
  ): Promise<EndedReplacement> | null {
    const storage = this.#storage;
    if (!inCinder) return null;
    if (storage === null)
      return Promise.resolve(this.#over({ ...need, mayBeCutOff: false }, noCinder("the volume is in Cinder")));
    const { mayBeAsked, attemptId, isWanted } = need;
    const course: Course = {
      ...{ serverUuid, volumeId, imageId, attemptId, isWanted, mayBeAsked, mayBeCutOff: false },
      ...{ filledSinceMs: null, untilMs: Number.POSITIVE_INFINITY, heardAtMs: this.#clock.monotonic() },
      ...{ pauseMs: LOOK_MS, isReported: false },
      mayWrite: () => this.#calls.mayWrite(need),
    };
    const goOn = async () => {
      try {
        return await this.#goOn(storage, course);
      } catch (error) {
        return this.#giveUp(course, error);
      }
    };
    return this.#calls.call(`Cinder could not be asked to fill volume ${volumeId}`, need, goOn, () =>
      this.#pause(course),
    );
  }

  /** Rethrows the error of a Cinder that may still answer in time. */
  #giveUp(course: Course, error: unknown): Undone {
    if (!(error instanceof BlockStorageError)) throw error;
    const silentMs = this.#clock.monotonic() - course.heardAtMs;
    if (error.code === "unreachable" && silentMs < this.#silenceMs) throw error;
    return this.#over(course, `Cinder could not be asked to fill volume ${course.volumeId}: ${error.message}`);
  }

  async #goOn(storage: BlockStorage, course: Course): Promise<EndedReplacement> {
    const { volumeId, imageId } = course;
    const volume = await storage.volume(volumeId, OWN_NAME);
    const nowMs = this.#clock.monotonic();
    course.heardAtMs = nowMs;
    if (volume === null) return this.#over(course, `Volume id ${volumeId} could not be found.`);
    if (volume.status === FILLING) return course.mayBeAsked ? this.#wait(course, volume, nowMs) : foreign(volumeId);
    const wasFilling = course.filledSinceMs !== null;
    if (wasFilling && volume.status === KEPT) return this.#judge(course, volume);
    if (wasFilling || volume.status === "error")
      return this.#over(
        course,
        `Cinder could not fill volume ${volumeId} with image ${imageId}: the volume's status is ${volume.status}. Cinder's log and its messages (openstack volume message list) have the reason`,
      );
    return this.#ask(storage, course);
  }

  #wait(course: Course, { sizeGib }: CinderVolume, nowMs: number): Undone {
    const { volumeId, imageId } = course;
    course.filledSinceMs ??= nowMs;
    const limitMs = this.#msPerGib * Math.max(1, sizeGib);
    course.untilMs = course.filledSinceMs + limitMs;
    if (nowMs >= course.untilMs)
      return this.#over(
        course,
        `Cinder has not filled volume ${volumeId} with image ${imageId} within ${Math.round(limitMs / 1_000)} s, and may still do so (BERTH_REIMAGE_TIMEOUT_PER_GIB). When the volume is no longer ${FILLING}, reboot the server hard`,
      );
    throw new BlockStorageError("unreachable", `Cinder still fills volume ${volumeId} with image ${imageId}`);
  }

  /** Somebody else may have had the volume filled with another image meanwhile, or has set its status while Cinder was filling it. */
  #judge(course: Course, { imageProperties }: CinderVolume): EndedReplacement {
    const { volumeId, imageId } = course;
    const { image_id = "none" } = imageProperties;
    if (image_id === imageId) return ENDED;
    return this.#over(
      course,
      `Cinder has not filled volume ${volumeId} with image ${imageId}: the image that it shows for the volume is ${image_id}`,
    );
  }

  async #ask(storage: BlockStorage, course: Course): Promise<EndedReplacement> {
    const { volumeId, imageId } = course;
    const kept = await this.#keepAlone(storage, course);
    if (kept !== null) return kept;
    if (!(await course.mayWrite())) return UNWANTED;
    const mayHaveBeenAsked = course.mayBeAsked;
    course.mayBeAsked = true;
    const outcome = await storage.reimage({ volumeId, imageId });
    if (outcome.kind === "begun") course.filledSinceMs = this.#clock.monotonic();
    else {
      const { status } = (await storage.volume(volumeId, OWN_NAME)) ?? { status: "gone" };
      course.mayBeAsked = mayHaveBeenAsked || status !== KEPT;
      // It was asked before, and has begun by now.
      const hasBegun = mayHaveBeenAsked && status === FILLING;
      // Cinder answers, so the volume can be connected again for the former guest, which is not started otherwise.
      if (!hasBegun)
        return this.#over(
          { ...course, mayBeCutOff: false },
          `Cinder does not fill volume ${volumeId} with image ${imageId}: ${outcome.why}`,
        );
    }
    throw new BlockStorageError("unreachable", `Cinder was asked to fill volume ${volumeId} with image ${imageId}`);
  }

  /** Lets one attachment that names no host keep the volume for the server, and ends the others. Returns null, or why that cannot be done. */
  async #keepAlone(storage: BlockStorage, course: Course): Promise<Undone | null> {
    const { volumeId, serverUuid, mayWrite } = course;
    const attachments = await storage.attachments({ volumeId, serverUuid });
    let alone = attachments.find(({ connection, status }) => connection === null && status === KEPT)?.id;
    if (alone === undefined) {
      if (!(await mayWrite())) return UNWANTED;
      const made = await storage.reserve({ volumeId, serverUuid, connector: null }, OWN_NAME);
      if (made.kind !== "reserved")
        return this.#over(
          course,
          `Cinder does not keep volume ${volumeId} for the server: ${made.kind === "unknown" ? "it does not exist" : made.why}`,
        );
      alone = made.attachment.id;
    }
    for (const { id } of attachments) {
      if (id === alone) continue;
      if (!(await mayWrite())) return UNWANTED;
      course.mayBeCutOff = true;
      await storage.deleteAttachment(id);
    }
    return null;
  }

  #over({ mayBeAsked, mayBeCutOff }: Pick<Course, "mayBeAsked" | "mayBeCutOff">, reason: string): Undone {
    return { ...failed(reason, true), ...((mayBeAsked || mayBeCutOff) && { isUnknown: true }) };
  }

  /** Resolves when Cinder is to be looked at again: when its event has come, after a pause, or when its time is over. */
  async #pause(course: Course): Promise<void> {
    const silentAtMs = course.heardAtMs + this.#silenceMs;
    const nowMs = this.#clock.monotonic();
    // Its time may be over while Cinder does not say what has become of the volume.
    const untilMs = course.untilMs > nowMs ? course.untilMs : Number.POSITIVE_INFINITY;
    const lookAtMs = Math.min(nowMs + course.pauseMs, untilMs, silentAtMs);
    course.pauseMs = Math.min(2 * course.pauseMs, LOOK_MS_MAX);
    for (;;) {
      const nowMs = this.#clock.monotonic();
      const leftMs = Math.max(1, lookAtMs - nowMs);
      // All reimages that wait ask at the same moments, and so in one question.
      const untilEventMs = Math.ceil(EVENT_MS - (nowMs % EVENT_MS));
      await new Promise<void>((resolve) => {
        this.#clock.setTimer(Math.min(leftMs, untilEventMs), resolve);
      });
      if (!course.isWanted() || this.#clock.monotonic() >= lookAtMs) return;
      if (!course.isReported && (await this.#isReported(course))) {
        course.isReported = true;
        return;
      }
    }
  }

  async #isReported({ attemptId, volumeId, filledSinceMs }: Course): Promise<boolean> {
    if (filledSinceMs === null) return false;
    try {
      const reported = await this.#reports.submit(attemptId);
      return reported.some(({ portId }) => portId === volumeId);
    } catch (error) {
      if (error instanceof StoreError) return false;
      throw error;
    }
  }
}

/** Cinder fills the volume, and this operation has not asked for it. No guest may be started meanwhile. */
const foreign = (volumeId: string): Undone => ({
  ...failed(
    `Cinder fills volume ${volumeId} already, for somebody else. Rebuild the server again when the volume is no longer ${FILLING}`,
    true,
  ),
  isUnknown: true,
});
