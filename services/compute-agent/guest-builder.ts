import type { ConductorStream } from "../../core/agent/link.ts";
import { LISTENS_AT_CHARS_MAX } from "../../core/agent/listen-address.ts";
import { operationKind } from "../../core/tasks/operation-kinds.ts";
import { withoutConnection } from "../../core/tasks/server-volumes.ts";
import { type Build, FailureKind, GuestState } from "../../proto/gen/berth/agent.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import { backoffMs } from "../../runtime/retry.ts";
import { type AttemptReporter, attemptReportOf } from "./attempt-reporter.ts";
import { BuildSlots, WAITING_BUILDS_MAX } from "./build-slots.ts";
import { type Driver, NO_TRUSTED_CERTS, NO_VOLUMES, type PrepareOrder, type PrepareOutcome } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import type { GuestRemover } from "./guest-remover.ts";
import { BURIED, type GuestStore } from "./guest-store.ts";
import type { GuestName } from "./journal.ts";
import { messageOf } from "./message-of.ts";

const REMOVE_RETRY = { delayMs: 500, delayMsMax: 60_000 };
const ATTEMPT_TIMEOUT_MS_MAX = 24 * 3_600_000;

/**
 * Carries out `Build` at most once for each attempt, however often it is ordered. A guest is recorded in the journal before the driver
 * creates anything, and again before a conductor is told that it is prepared.
 */
export class GuestBuilder {
  readonly #store: GuestStore;
  readonly #driver: Driver;
  readonly #remover: GuestRemover;
  readonly #reporter: AttemptReporter;
  readonly #clock: Clock;
  readonly #events: AgentEvents;
  readonly #slots: ReadonlyMap<string, BuildSlots>;
  /** Abort controllers of the builds that wait or run, by attempt id. */
  readonly #cancels = new Map<string, AbortController>();
  /** Failed attempts whose guest is not yet gone, by attempt id. */
  readonly #leftovers = new Map<string, { readonly word: FailedWord; timer: Timer | null }>();
  #stopped = false;

  constructor(options: {
    readonly store: GuestStore;
    readonly driver: Driver;
    readonly remover: GuestRemover;
    readonly reporter: AttemptReporter;
    readonly clock: Clock;
    readonly events: AgentEvents;
    /** How many builds may run at a time on each of the agent's hosts. */
    readonly limits: ReadonlyMap<string, number>;
  }) {
    this.#store = options.store;
    this.#driver = options.driver;
    this.#remover = options.remover;
    this.#reporter = options.reporter;
    this.#clock = options.clock;
    this.#events = options.events;
    this.#slots = new Map([...options.limits].map(([host, limit]) => [host, new BuildSlots(limit)]));
  }

  /** Begins the attempt, or attaches the caller to the running one. Every failure becomes a report and never an error. */
  build(order: Build, from: ConductorStream): void {
    const { host, attemptId, server } = order;
    if (server === undefined) return;
    const name: GuestName = { host, serverUuid: server.uuid, attemptId };
    this.#reporter.attach(name, from);
    const known = this.#store.guest(host, attemptId);
    const slots = this.#slots.get(host);
    if (this.#store.isBuried(name)) this.#refuseBuried(name);
    else if (this.#leftovers.has(attemptId)) this.#tellFailed(name, this.#leftovers.get(attemptId)!.word);
    else if (known !== undefined) this.#reporter.reportState(known);
    else if (slots === undefined) this.#refuse(name, "this agent does not have the host");
    else if (slots.full) this.#refuse(name, `more than ${WAITING_BUILDS_MAX} builds wait on the host`);
    else void this.#begin(name, order, slots);
  }

  /** Stops the attempt if it waits or runs. Returns true if it did, in which case the caller must destroy what it leaves. */
  cancel(attemptId: string): boolean {
    const cancel = this.#cancels.get(attemptId);
    cancel?.abort();
    return cancel !== undefined;
  }

  /** Cancels all builds, and stops retrying to remove leftovers. */
  cancelAll(): void {
    this.#stopped = true;
    for (const cancel of this.#cancels.values()) cancel.abort();
    for (const { timer } of this.#leftovers.values()) timer?.cancel();
  }

  /**
   * Keeps an attempt that failed for good and whose guest could not be removed. The guest stays listed, so that conductors find it, and its
   * removal is retried until it is gone.
   */
  retain(name: GuestName, word: FailedWord): void {
    if (this.#leftovers.has(name.attemptId)) return;
    this.#leftovers.set(name.attemptId, { word, timer: null });
    this.#removeLater(name, 1);
  }

  async #begin(name: GuestName, order: Build, slots: BuildSlots): Promise<void> {
    const cancel = new AbortController();
    this.#cancels.set(name.attemptId, cancel);
    const startedAtMs = this.#clock.monotonic();
    const span = this.#events.buildStarted(name, order.traceparent);
    try {
      const volumes = (order.server?.volumes ?? []).map(withoutConnection);
      const having = volumes.length === 0 ? {} : { volumes };
      await this.#store.record({ kind: "guest", ...name, state: "building", atMs: this.#clock.now(), ...having });
      await slots.enter();
      const outcome = await this.#prepare(name, order, cancel).finally(() => slots.leave());
      if (this.#store.isBuried(name)) {
        span.end("destroyed while it was built");
        return;
      }
      await this.#settle(name, outcome);
      span.end(outcome.kind === "failed" ? outcome.reason : null);
      this.#events.buildEnded(
        outcome.kind === "failed" ? outcome.failure : "prepared",
        this.#clock.monotonic() - startedAtMs,
      );
    } catch (error) {
      // Only the journal throws here, and the agent cannot continue without it.
      span.end(messageOf(error));
      this.#events.journalFailed(error);
    } finally {
      this.#cancels.delete(name.attemptId);
    }
  }

  async #settle(name: GuestName, outcome: PrepareOutcome): Promise<void> {
    const atMs = this.#clock.now();
    if (outcome.kind === "prepared") {
      const listening = outcome.listensAt === undefined ? {} : { listensAt: outcome.listensAt };
      await this.#store.record({ kind: "guest", ...name, state: "prepared", atMs, ...listening });
    } else {
      const { failure, reason } = outcome;
      if (!(await this.#cleanUp(name))) this.retain(name, { failure, reason });
      // The callers learn of the failure now, whether or not the guest is gone.
      if (this.#leftovers.has(name.attemptId)) {
        if (!this.#store.isBuried(name)) this.#tellFailed(name, { failure, reason });
        return;
      }
      await this.#store.record({ kind: "failed", ...name, failure, reason, atMs });
    }
    // A destroy may have come while the journal was written. It has already answered the callers.
    const entry = this.#store.guest(name.host, name.attemptId);
    if (entry === undefined || this.#store.isBuried(name)) return;
    this.#reporter.reportState(entry);
    if (entry.state === "failed") this.#reporter.detach(name.attemptId);
  }

  /** Resolves with the driver's answer, or with a failure when the build is cancelled or takes longer than the order allows. */
  #prepare(name: GuestName, order: Build, cancel: AbortController): Promise<PrepareOutcome> {
    if (cancel.signal.aborted) return Promise.resolve(CANCELLED);
    const hasVolumes = (order.server?.volumes.length ?? 0) > 0;
    if (hasVolumes && !this.#driver.capabilities.has("volumes")) return Promise.resolve(WITHOUT_VOLUMES);
    if (order.movedBy !== "" && operationKind(order.movedBy) === null) return Promise.resolve(unknownMove(order));
    const isSigned = (order.server?.trustedCerts.length ?? 0) > 0;
    if (isSigned && !this.#driver.capabilities.has("trusted-certs")) return Promise.resolve(withoutCerts(order));
    const timeoutMs = order.timeoutMs > 0 ? Math.min(order.timeoutMs, ATTEMPT_TIMEOUT_MS_MAX) : ATTEMPT_TIMEOUT_MS_MAX;
    return new Promise((resolve) => {
      let answered = false;
      const answer = (outcome: PrepareOutcome) => {
        // A guest that a driver finishes after its build was given up is not wanted and must be removed.
        if (answered) this.#removeLate(name).catch((error) => this.#events.journalFailed(error));
        answered = true;
        timer.cancel();
        resolve(outcome);
      };
      const giveUp = (outcome: PrepareOutcome) => {
        if (answered) return;
        answer(outcome);
        cancel.abort();
      };
      const timer = this.#clock.setTimer(timeoutMs, () => giveUp(timedOut(timeoutMs)));
      cancel.signal.addEventListener("abort", () => giveUp(CANCELLED), { once: true });
      const prepare: PrepareOrder = {
        ...name,
        server: order.server as PrepareOrder["server"],
        allocation: order.allocation,
        movedFrom:
          order.movedBy === ""
            ? null
            : { host: order.movedFromHost, attemptId: order.movedFromAttemptId, by: order.movedBy },
      };
      const control = { signal: cancel.signal, onStep: (step: string) => this.#reportStep(name, step) };
      this.#driver.prepare(prepare, control).then(
        (outcome) => answer(checked(outcome)),
        (error: unknown) => answer(thrown(error)),
      );
    });
  }

  /** Resolves with false when the driver failed and the guest may still be there. */
  async #cleanUp(name: GuestName): Promise<boolean> {
    return (await this.#remover.remove(name)) === null;
  }

  /**
   * Removes the guest of a build that had been given up. If it cannot be removed, it is recorded as a guest again, although it was reported
   * as failed or gone.
   */
  async #removeLate(name: GuestName): Promise<void> {
    if ((await this.#cleanUp(name)) || this.#stopped) return;
    const entry = this.#store.guest(name.host, name.attemptId);
    this.retain(name, entry?.state === "failed" ? entry : { failure: "reschedule", reason: "the build was cancelled" });
    if (entry === undefined || entry.state === "failed")
      await this.#store.record({ kind: "guest", ...name, state: "building", atMs: this.#clock.now() });
  }

  #removeLater(name: GuestName, tries: number): void {
    const leftover = this.#leftovers.get(name.attemptId);
    if (leftover === undefined || this.#stopped) return;
    leftover.timer = this.#clock.setTimer(backoffMs(tries, REMOVE_RETRY, Math.random), () => {
      this.#removeAgain(name, leftover.word, tries).catch((error) => this.#events.journalFailed(error));
    });
  }

  async #removeAgain(name: GuestName, word: FailedWord, tries: number): Promise<void> {
    // An ordered destroy may already have removed the guest.
    const isThere = this.#store.guest(name.host, name.attemptId) !== undefined;
    if (isThere && !(await this.#cleanUp(name))) return this.#removeLater(name, tries + 1);
    if (this.#stopped) return;
    this.#leftovers.delete(name.attemptId);
    if (this.#store.guest(name.host, name.attemptId) === undefined) return;
    const { failure, reason } = word;
    if (this.#store.isBuried(name)) await this.#store.record({ kind: "gone", ...name });
    else await this.#store.record({ kind: "failed", ...name, failure, reason, atMs: this.#clock.now() });
  }

  #tellFailed(name: GuestName, { failure, reason }: FailedWord): void {
    this.#reporter.report(attemptReportOf({ ...name, state: "failed", failure, reason, atMs: 0 }));
    this.#reporter.detach(name.attemptId);
  }

  #reportStep(name: GuestName, step: string): void {
    const nothing = { failure: FailureKind.FAILURE_KIND_UNSPECIFIED, reason: "", listensAt: "" };
    this.#reporter.report({ ...name, ...nothing, state: GuestState.GUEST_STATE_BUILDING, step });
  }

  /**
   * A guest that has run may still run while its removal is repeated. The server must then not be built on another host (law 4). Only a database that
   * has forgotten the delete asks for this.
   */
  #refuseBuried(name: GuestName): void {
    const guests = this.#store.guestsOf(name.host).filter(({ serverUuid }) => serverUuid === name.serverUuid);
    if (guests.some(({ state }) => HAS_RUN.includes(state)))
      this.#refuse(name, `${BURIED}, and its guest could not be removed yet`, FailureKind.FAILURE_KIND_ABORT);
    else this.#refuse(name, BURIED);
  }

  #refuse(name: GuestName, reason: string, failure: FailureKind = FailureKind.FAILURE_KIND_RESCHEDULE): void {
    this.#reporter.report({ ...name, state: GuestState.GUEST_STATE_FAILED, failure, reason, step: "", listensAt: "" });
    this.#reporter.detach(name.attemptId);
  }
}

const HAS_RUN: readonly string[] = ["running", "stopped", "paused", "suspended", "rescued"];

/** The failure report of an attempt. */
export type FailedWord = Pick<Extract<PrepareOutcome, { kind: "failed" }>, "failure" | "reason">;

/** Ends the build of a new server, as Nova does (`BuildAbortException`). Nova does not check this for moves, so a move goes on to another host. */
const withoutCerts = ({ movedBy }: Build): PrepareOutcome => ({
  ...{ kind: "failed", failure: movedBy === "" ? "abort" : "reschedule", reason: NO_TRUSTED_CERTS },
});

/** The guest of a move of a later version may have to wait for the source's guest, which is stopped or destroyed when it has handed over. */
const unknownMove = ({ movedBy }: Build): PrepareOutcome => {
  const reason = `this host's agent does not know moves of the kind "${movedBy}": update it, and move the server again`;
  return { kind: "failed", failure: "reschedule", reason };
};

/** Fails a guest whose address is too long to be told to the guest that moves to it. */
function checked(outcome: PrepareOutcome): PrepareOutcome {
  const length = outcome.kind === "prepared" ? (outcome.listensAt ?? "").length : 0;
  if (length <= LISTENS_AT_CHARS_MAX) return outcome;
  const reason = `the driver's address of the guest has ${length} characters; at most ${LISTENS_AT_CHARS_MAX} are allowed`;
  return { kind: "failed", failure: "reschedule", reason };
}

const WITHOUT_VOLUMES: PrepareOutcome = { kind: "failed", failure: "reschedule", reason: NO_VOLUMES };
const CANCELLED: PrepareOutcome = { kind: "failed", failure: "reschedule", reason: "the build was cancelled" };
const timedOut = (timeoutMs: number): PrepareOutcome => ({
  kind: "failed",
  failure: "reschedule",
  reason: `the build did not end within ${timeoutMs / 1_000} s`,
});
const thrown = (error: unknown): PrepareOutcome => ({
  kind: "failed",
  failure: "reschedule",
  reason: messageOf(error),
});
