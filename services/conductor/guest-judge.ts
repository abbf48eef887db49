import type { DoomedGuest, GuestVerdict, ServerAttempt, UncertainServer } from "../../core/stores/cell/quarantine.ts";
import { describeForgottenOrder, describeOtherGuest } from "../../core/tasks/describe-forgotten-order.ts";
import type { FoundGuest } from "../../core/tasks/guest-fate.ts";
import type { VolumeFile } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";
import { SharedStep } from "./shared-step.ts";
import type { StepCommitter } from "./step-committer.ts";
import { WaitingGuests } from "./waiting-guests.ts";

const MINUTE_MS = 60_000;

/** The facts about a guest in a comparison, in addition to its name. */
export type FoundKnowledge = Pick<DoomedGuest, "revision" | "incarnation" | "isFound"> & {
  /** The revision of the latest order that the guest was given, also if it failed. */
  readonly heard?: number;
  /** The files to which the guest writes, as far as its host has them by name; none if absent. */
  readonly files?: readonly VolumeFile[];
};

/**
 * Whether a halted guest may be started. `uncertain`: its server went to ERROR instead. `undecided`: it must not be started, and the next
 * comparison has to judge it again, because its server was in another state or had a task meanwhile.
 */
export type StartVerdict = "start" | "uncertain" | "undecided";

/**
 * Decides whether a comparison may destroy a guest. A guest that the database seems to have lost in a restore or failover is kept in
 * quarantine (law 6). Other guests of servers that the database does not know are destroyed at a limited rate, except those that
 * their agents have found without a record, which may be another cloud's. Otherwise an empty new database would cost every guest of every host at once.
 */
export class GuestJudge {
  readonly #commits: StepCommitter;
  readonly #clock: Clock;
  readonly #events: ConductorEvents;
  readonly #perMinute: number;
  readonly #judging: SharedStep<DoomedGuest, GuestVerdict>;
  readonly #marking: SharedStep<UncertainServer, boolean>;
  readonly #others: SharedStep<ServerAttempt, boolean>;
  readonly #incarnation: SharedStep<string, string>;
  readonly #raising: SharedStep<{ readonly serverUuid: string; readonly revision: number }, undefined>;
  /** When unknown guests were allowed to be destroyed during the last minute, by the monotonic clock. */
  #permittedAtMs: number[] = [];
  /** Unknown guests that wait for their turn to be destroyed. */
  readonly #waiting = new WaitingGuests();
  readonly #quarantined = new Set<string>();

  constructor(options: {
    readonly store: Pick<
      ConductorStore,
      "judgeGuests" | "raiseRevisions" | "markUncertain" | "othersInQuarantine" | "incarnation"
    >;
    readonly commits: StepCommitter;
    readonly clock: Clock;
    readonly events: ConductorEvents;
    readonly settings: Pick<ConductorSettings, "unknownDestroysPerMinute">;
  }) {
    const { store } = options;
    this.#commits = options.commits;
    this.#clock = options.clock;
    this.#events = options.events;
    this.#perMinute = options.settings.unknownDestroysPerMinute;
    this.#judging = new SharedStep((guests) => store.judgeGuests(guests));
    this.#marking = new SharedStep((servers) => store.markUncertain(servers));
    this.#others = new SharedStep((attempts) => store.othersInQuarantine(attempts));
    this.#incarnation = new SharedStep(async (hosts) => {
      const incarnation = await store.incarnation();
      return hosts.map(() => incarnation);
    });
    this.#raising = new SharedStep(async (revisions) => {
      await store.raiseRevisions(revisions);
      return revisions.map(() => undefined);
    });
  }

  /** Rejects when the conductor stops. */
  async mayDestroy(guest: DoomedGuest): Promise<boolean> {
    const { kind, reason } = await this.#commits.answered("judge-guests", this.#judging, guest);
    if (reason !== null) this.#events.guestQuarantined(guest, reason);
    const key = keyOf(guest);
    if (kind === "quarantined") this.#quarantined.add(key);
    else this.#quarantined.delete(key);
    if (kind !== "unknown") {
      if (this.#waiting.delete(guest)) this.#tellWaiting();
      return kind === "destroy";
    }
    const mayGo = this.#takeTurn();
    if (mayGo) this.#waiting.delete(guest);
    else this.#waiting.add(guest);
    this.#tellWaiting();
    return mayGo;
  }

  /** Called for a guest that the database does not want to be destroyed. */
  wanted(guest: Pick<DoomedGuest, "host" | "attemptId">): void {
    this.#quarantined.delete(keyOf(guest));
    if (this.#waiting.delete(guest)) this.#tellWaiting();
  }

  /** Forgets waiting guests of the host except these ones. Called with the host's complete list, or with none when the host is lost. */
  onlyThere(host: string, attemptIds: readonly string[]): void {
    if (this.#waiting.keepOnly(host, attemptIds)) this.#tellWaiting();
  }

  /** Whether the last judgement left the guest in quarantine. */
  isQuarantined(guest: Pick<DoomedGuest, "host" | "attemptId">): boolean {
    return this.#quarantined.has(keyOf(guest));
  }

  /**
   * Raises the revision of a server whose guest has obeyed a later order than the row knows of, because the next order must be later still.
   */
  async raise(serverUuid: string, revision: number): Promise<void> {
    await this.#commits.answered("raise-revisions", this.#raising, { serverUuid, revision });
    this.#events.revisionRaised(serverUuid, revision);
  }

  /**
   * Judges whether a comparison may start a halted guest at home. If the guest was halted by an order that a restored database has forgotten,
   * the server may have been moved by it, and may run elsewhere (law 4). Then the server goes to ERROR instead, until an operator has looked
   * for its other guests. A host that was compared with this database before was judged then, and a start now is the operator's word.
   * No guest is started beside another one in quarantine, whatever the row says: an action of the server's owner may have raised the row above
   * the forgotten order. Rejects when the conductor stops.
   */
  async judgeStart(
    guest: FoundGuest,
    { revision, incarnation }: Pick<FoundKnowledge, "revision" | "incarnation">,
    known: number,
  ): Promise<StartVerdict> {
    if (await this.#isForgotten(guest, { revision, incarnation }, known))
      return this.#markUncertain(guest, revision, describeForgottenOrder(guest, revision, known));
    if (!(await this.isBesideQuarantined(guest))) return "start";
    return this.#markUncertain(guest, Math.max(revision, known + 1), describeOtherGuest(guest));
  }

  /** Whether another guest of the server is in quarantine, and may run, so that this one must not be started. Rejects when the conductor stops. */
  isBesideQuarantined({ serverUuid, attemptId }: ServerAttempt): Promise<boolean> {
    return this.#commits.answered("others-in-quarantine", this.#others, { serverUuid, attemptId });
  }

  /** Whether the guest has obeyed an order that the database has lost, and its host was not compared with this database before. */
  async #isForgotten(
    { host }: FoundGuest,
    { revision, incarnation }: Pick<FoundKnowledge, "revision" | "incarnation">,
    known: number,
  ): Promise<boolean> {
    if (revision <= known) return false;
    return incarnation !== (await this.#commits.answered("incarnation", this.#incarnation, host));
  }

  async #markUncertain(guest: FoundGuest, revision: number, fault: string): Promise<StartVerdict> {
    const { host, serverUuid, attemptId } = guest;
    const isMarked = await this.#commits.answered("mark-uncertain", this.#marking, {
      ...{ host, serverUuid, attemptId, revision, fault },
    });
    if (!isMarked) return "undecided";
    this.#events.serverUncertain(guest, fault);
    return "uncertain";
  }

  #tellWaiting(): void {
    this.#events.unknownGuestsWait(this.#waiting.count, this.#perMinute);
  }

  #takeTurn(): boolean {
    const nowMs = this.#clock.monotonic();
    this.#permittedAtMs = this.#permittedAtMs.filter((atMs) => nowMs - atMs < MINUTE_MS);
    if (this.#permittedAtMs.length >= this.#perMinute) return false;
    this.#permittedAtMs.push(nowMs);
    return true;
  }
}

const keyOf = ({ host, attemptId }: Pick<DoomedGuest, "host" | "attemptId">): string => `${host} ${attemptId}`;
