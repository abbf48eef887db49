import type { AgentStream } from "../../core/agent/link.ts";
import type { Home } from "../../core/cell/cell-store.ts";
import { type FoundGuest, guestFate } from "../../core/tasks/guest-fate.ts";
import type { DestroyReport } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { StepCommitter } from "./commit-steps.ts";
import type { ConductorEvents } from "./events.ts";
import type { FoundKnowledge, GuestJudge } from "./judge-guests.ts";
import type { ConductorStore } from "./ports.ts";
import { SharedStep } from "./shared-step.ts";

/** Agents answer within their driver's deadline, which is shorter. */
const DESTROY_ANSWER_MS = 90_000;

/**
 * Makes a guest what its server's row says: starts the one whose starter died, stops the one that runs and should not, destroys the one
 * that is not at home (law 4), leaves the others alone. Its orders have the revision of the row, so that a guest which has obeyed a later
 * order refuses them.
 */
export class GuestSettler {
  readonly #commits: StepCommitter;
  readonly #judge: Pick<GuestJudge, "mayDestroy" | "raise" | "wanted" | "isQuarantined" | "onlyThere">;
  readonly #clock: Clock;
  readonly #events: ConductorEvents;
  readonly #streamOf: (host: string) => AgentStream | null;
  readonly #homes: SharedStep<string, Home | null>;
  readonly #forcedDown: SharedStep<string, boolean>;
  /** Who waits for the answer to a destroy, by guest. */
  readonly #destroys = new Map<
    string,
    { readonly host: string; readonly done: (isGone: boolean) => void; readonly promise: Promise<boolean> }
  >();

  constructor(options: {
    readonly store: Pick<ConductorStore, "homes" | "sightings">;
    readonly commits: StepCommitter;
    readonly judge: Pick<GuestJudge, "mayDestroy" | "raise" | "wanted" | "isQuarantined" | "onlyThere">;
    readonly clock: Clock;
    readonly events: ConductorEvents;
    readonly streamOf: (host: string) => AgentStream | null;
  }) {
    const { store } = options;
    this.#commits = options.commits;
    this.#judge = options.judge;
    this.#clock = options.clock;
    this.#events = options.events;
    this.#streamOf = options.streamOf;
    this.#forcedDown = new SharedStep(async (hosts) => {
      const sightings = await store.sightings([...new Set(hosts)]);
      const forcedDown = new Set(sightings.filter((one) => one.forcedDown).map(({ name }) => name));
      return hosts.map((host) => forcedDown.has(host));
    });
    this.#homes = new SharedStep(async (serverUuids) => {
      const homes = new Map((await store.homes([...new Set(serverUuids)])).map((home) => [home.serverUuid, home]));
      return serverUuids.map((serverUuid) => homes.get(serverUuid) ?? null);
    });
  }

  /**
   * A host that an operator has forced down is one where nothing runs: a comparison does not start guests there until that word is taken back,
   * which is followed by another comparison.
   *
   * `found`: a comparison has found the guest; then it is destroyed only if its judge lets it. Null: a task is done with it.
   *
   * Resolves when it is settled: a destroy was answered, or the host is lost. True: the host said that the guest is gone; false: it may
   * be there. Rejects when the conductor stops.
   */
  async settle(guest: FoundGuest, found: FoundKnowledge | null = null): Promise<boolean> {
    const home = await this.homeOf(guest.serverUuid);
    const fate = guestFate(guest, home);
    if (found !== null && fate === "destroy" && !(await this.#judge.mayDestroy({ ...guest, ...found }))) return false;
    if (found !== null && fate !== "destroy") this.#judge.wanted(guest);
    const revision = await this.#revisionFor(guest, home, found?.revision ?? 0);
    if (fate === "leave") return false;
    const { host, serverUuid, attemptId } = guest;
    if (found !== null && fate === "start" && (await this.#commits.answered("forced-down", this.#forcedDown, host)))
      return false;
    const stream = this.#streamOf(host);
    // Nobody to ask and nobody to wait for: its guests are compared with the database when it comes back.
    if (stream === null) return false;
    this.#events.guestSettled(guest, fate);
    const name = { host, serverUuid, attemptId };
    if (fate === "start") {
      stream.send({ body: { $case: "start", value: { ...name, revision } } });
      return false;
    }
    if (fate === "stop" || fate === "pause") {
      // Nobody waits for the answer: if the guest still runs, the next comparison finds it.
      const orderId = `settled/${fate}/${revision}`;
      stream.send({ body: { $case: "power", value: { ...name, verb: fate, orderId, revision } } });
      return false;
    }
    stream.send({ body: { $case: "destroy", value: name } });
    return this.#destroyed(guest);
  }

  /**
   * The revision for an order that makes the guest what its row says. Where the guest has obeyed a later order than the row knows of, the row
   * is raised above that order: the guest refuses another order of the same revision, too. While an operation is open nothing is raised: that
   * the guest refuses what the operation orders is how the operation learns that the database has lost commits.
   */
  async #revisionFor(guest: FoundGuest, home: Home | null, obeyed: number): Promise<number> {
    const known = home?.revision ?? 0;
    if (obeyed <= known || home?.busy === true) return known;
    const revision = obeyed + 1;
    if (home !== null && home.status !== "DELETED") await this.#judge.raise(guest.serverUuid, revision);
    return revision;
  }

  /** Whether the last comparison has left the guest in quarantine. */
  isQuarantined(guest: Pick<FoundGuest, "host" | "attemptId">): boolean {
    return this.#judge.isQuarantined(guest);
  }

  /** The host has these guests and no others, or nobody hears of it here any more. */
  onlyThere(host: string, attemptIds: readonly string[]): void {
    this.#judge.onlyThere(host, attemptIds);
  }

  /** The server's row, read together with others'. */
  homeOf(serverUuid: string): Promise<Home | null> {
    return this.#commits.answered("homes", this.#homes, serverUuid);
  }

  /** An agent's answer to a destroy of one attempt. */
  reported(report: DestroyReport): void {
    if (report.failed !== "") this.#events.leftBehind(report.serverUuid, report.host, report.failed);
    this.#destroys.get(keyOf(report))?.done(report.failed === "");
  }

  hostLost(host: string): void {
    for (const waiting of this.#destroys.values()) if (waiting.host === host) waiting.done(false);
  }

  /** Whether the host said that the guest is gone. */
  async #destroyed(guest: FoundGuest): Promise<boolean> {
    const key = keyOf(guest);
    let waiting = this.#destroys.get(key);
    if (waiting === undefined) {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      waiting = { host: guest.host, done: resolve, promise };
      this.#destroys.set(key, waiting);
    }
    try {
      return await withDeadline(waiting.promise, DESTROY_ANSWER_MS, "destroying a guest", this.#clock);
    } catch {
      this.#events.leftBehind(guest.serverUuid, guest.host, "the agent did not answer");
      return false;
    } finally {
      if (this.#destroys.get(key) === waiting) this.#destroys.delete(key);
    }
  }
}

function keyOf(guest: { readonly host: string; readonly serverUuid: string; readonly attemptId: string }): string {
  return `${guest.host} ${guest.serverUuid} ${guest.attemptId}`;
}
