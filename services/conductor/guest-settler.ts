import type { AgentStream } from "../../core/agent/link.ts";
import { keptReason } from "../../core/tasks/failure-message.ts";
import { type FoundGuest, type GuestFate, guestFate } from "../../core/tasks/guest-fate.ts";
import type { Home } from "../../core/tasks/home.ts";
import { filesOf } from "../../core/tasks/server-volumes.ts";
import type { DestroyReport } from "../../proto/gen/berth/agent.ts";
import type { GuestInterfaces, VolumeFile } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { ConductorEvents } from "./events.ts";
import type { FoundKnowledge, GuestJudge } from "./guest-judge.ts";
import type { HomePorts } from "./home-ports.ts";
import type { InterfaceCompleter } from "./interface-completer.ts";
import { NO_SUBJECT } from "./operation-orders.ts";
import type { ConductorStore } from "./ports.ts";
import { SharedStep } from "./shared-step.ts";
import type { StepCommitter } from "./step-committer.ts";

/** Longer than any driver's deadline, within which agents answer. */
const DESTROY_ANSWER_MS = 90_000;
/**
 * A row is not raised above greater revisions. An agent that lies could otherwise raise a server's revision to the limit of all revisions; and when
 * the server has moved to another host, that host's honest agent would be refused for what its guest has obeyed.
 */
const RAISED_REVISION_MAX = 1_000_000_000;

type SettlersJudge = Pick<
  GuestJudge,
  "mayDestroy" | "judgeStart" | "isBesideQuarantined" | "raise" | "wanted" | "isQuarantined" | "onlyThere"
>;

/** Whether the order may make a guest run that did not run before, or make a rescued guest run from its own disk. */
const MAKES_RUN: Readonly<Record<GuestFate, boolean>> = {
  start: true,
  unrescue: true,
  stop: false,
  pause: false,
  suspend: false,
  destroy: false,
  "stop-server": false,
  leave: false,
};

/**
 * Makes a guest match its server's row. It starts a guest whose starter died, stops one that runs and should not, destroys one that is not
 * at home (law 4), and leaves the others alone. Its orders carry the revision of the row, so that a guest that has obeyed a later order
 * refuses them.
 */
export class GuestSettler {
  readonly #commits: StepCommitter;
  readonly #judge: SettlersJudge;
  readonly #ports: Pick<HomePorts, "bindHome">;
  readonly #interfaces: Pick<InterfaceCompleter, "look">;
  readonly #clock: Clock;
  readonly #events: ConductorEvents;
  readonly #streamOf: (host: string) => AgentStream | null;
  readonly #stopServer: (guest: FoundGuest) => Promise<void>;
  readonly #resumeSnapshot: (guest: FoundGuest, found: FoundKnowledge) => Promise<boolean>;
  readonly #homes: SharedStep<string, Home | null>;
  readonly #forcedDown: SharedStep<string, boolean>;
  /** The files that guests of servers must use for their volumes. */
  readonly #files: SharedStep<string, VolumeFile[]>;
  /** Halted guests at home that have obeyed a later order than their server's row knows of, while a task of the server runs. */
  readonly #undecided = new Set<string>();
  /** The callers that wait for the answer to a destroy, by guest. */
  readonly #destroys = new Map<
    string,
    { readonly host: string; readonly done: (isGone: boolean) => void; readonly promise: Promise<boolean> }
  >();

  constructor(options: {
    readonly store: Pick<ConductorStore, "homes" | "servers" | "sightings">;
    readonly commits: StepCommitter;
    readonly judge: SettlersJudge;
    readonly ports: Pick<HomePorts, "bindHome">;
    readonly interfaces: Pick<InterfaceCompleter, "look">;
    readonly clock: Clock;
    readonly events: ConductorEvents;
    readonly streamOf: (host: string) => AgentStream | null;
    /** Stops a server whose guest stopped without an order (`ServerStopper`). */
    readonly stopServer: (guest: FoundGuest) => Promise<void>;
    /** Begins a snapshot again that the database has forgotten (`SnapshotResumer`). */
    readonly resumeSnapshot: (guest: FoundGuest, found: FoundKnowledge) => Promise<boolean>;
  }) {
    const { store } = options;
    this.#commits = options.commits;
    this.#judge = options.judge;
    this.#ports = options.ports;
    this.#interfaces = options.interfaces;
    this.#clock = options.clock;
    this.#events = options.events;
    this.#streamOf = options.streamOf;
    this.#stopServer = options.stopServer;
    this.#resumeSnapshot = options.resumeSnapshot;
    this.#forcedDown = new SharedStep(async (hosts) => {
      const sightings = await store.sightings([...new Set(hosts)]);
      const forcedDown = new Set(sightings.filter((one) => one.forcedDown).map(({ name }) => name));
      return hosts.map((host) => forcedDown.has(host));
    });
    this.#files = new SharedStep(async (uuids) => {
      const servers = new Map((await store.servers([...new Set(uuids)])).map((server) => [server.uuid, server]));
      return uuids.map((uuid) => filesOf(servers.get(uuid)?.spec ?? { volumes: [] }));
    });
    this.#homes = new SharedStep(async (serverUuids) => {
      const homes = new Map((await store.homes([...new Set(serverUuids)])).map((home) => [home.serverUuid, home]));
      return serverUuids.map((serverUuid) => homes.get(serverUuid) ?? null);
    });
  }

  /**
   * Settles one guest.
   *
   * `found` is what a comparison knows of the guest, which is then destroyed only if the judge allows it. It is null when a task is done
   * with the guest. A comparison starts no guest on a host that is forced down. When the operator takes that back, another comparison
   * follows.
   *
   * Resolves when the guest is settled, a destroy was answered, or the host is lost: with true when the host has reported that the guest is
   * gone, and with false when the guest may still be there. Rejects when the conductor stops.
   */
  async settle(guest: FoundGuest, found: FoundKnowledge | null = null): Promise<boolean> {
    // An order that follows from this reading of the row must not reach a host that was lost meanwhile and has come back: its server may have moved.
    const stream = this.#streamOf(guest.host);
    const { home, fate, interfaces } = await this.#fateOf(guest);
    if (found !== null && fate === "destroy" && !(await this.#judge.mayDestroy({ ...guest, ...found }))) return false;
    if (found !== null && fate !== "destroy") this.#judge.wanted(guest);
    if (found !== null && !(await this.#isDecided(guest, home, fate, found))) return false;
    // The revision of the row shows that the database has forgotten something. So it stays what it is until this was looked into.
    if (found !== null && !(await this.#hasResumed(guest, home, found))) return false;
    const revision = await this.#revisionFor(guest, home, fate, found);
    if (fate === "leave") {
      if (found !== null && home !== null) this.#interfaces.look(guest, home, found.revision);
      return false;
    }
    if (fate === "stop-server") {
      this.#events.guestSettled(guest, fate);
      await this.#stopServer(guest);
      return false;
    }
    const { host, serverUuid, attemptId } = guest;
    if (found !== null && fate === "start" && (await this.#commits.answered("forced-down", this.#forcedDown, host)))
      return false;
    // A comparison has judged a start, and then the server is in ERROR. Anything else that is held up is left to the next comparison.
    if (MAKES_RUN[fate] && (await this.#judge.isBesideQuarantined(guest))) return false;
    // A row of the server that is newer than its home here has later files, and the guest refuses this order if it has obeyed a later one.
    const files = MAKES_RUN[fate] ? await this.#commits.answered("files", this.#files, guest.serverUuid) : [];
    // The host cannot be asked, and nothing waits for it. Its guests are compared with the database when it comes back.
    if (stream === null || this.#streamOf(host) !== stream) return false;
    this.#events.guestSettled(guest, fate);
    const name = { host, serverUuid, attemptId };
    if (fate === "start") {
      stream.send({ body: { $case: "start", value: { ...name, revision, interfaces, files } } });
      return false;
    }
    if (fate !== "destroy") {
      // Nothing waits for the answer. If the guest still runs, the next comparison finds it.
      const orderId = `settled/${fate}/${revision}`;
      const power = { ...name, verb: fate, orderId, revision, ...NO_SUBJECT, files };
      stream.send({ body: { $case: "power", value: power } });
      return false;
    }
    this.#undecided.delete(keyOf(guest));
    stream.send({ body: { $case: "destroy", value: name } });
    return this.#destroyed(guest);
  }

  /**
   * Reads the server's row. Before a guest is started, its ports are bound to its host, since the move that was to do it may have ended while the host was
   * away. That takes time, so the row is read again then, and everything is judged by the second reading.
   */
  async #fateOf(guest: FoundGuest): Promise<{
    readonly home: Home | null;
    readonly fate: GuestFate;
    readonly interfaces: GuestInterfaces | undefined;
  }> {
    const first = await this.homeOf(guest.serverUuid);
    const interfaces = guestFate(guest, first) === "start" ? await this.#ports.bindHome(guest) : null;
    const home = interfaces === null ? first : await this.homeOf(guest.serverUuid);
    return { home, fate: guestFate(guest, home), interfaces: interfaces ?? undefined };
  }

  /**
   * Whether a comparison may continue with the guest. Only a comparison judges this: a task that is done with the guest at the same time does
   * not know what the database may have forgotten.
   */
  async #isDecided(guest: FoundGuest, home: Home | null, fate: GuestFate, found: FoundKnowledge): Promise<boolean> {
    const key = keyOf(guest);
    if (home !== null && isUndecided(guest, home, found.revision)) this.#undecided.add(key);
    else this.#undecided.delete(key);
    if (fate !== "start") return true;
    const revision = Math.min(found.revision, RAISED_REVISION_MAX);
    const verdict = await this.#judge.judgeStart(guest, { ...found, revision }, home?.revision ?? 0);
    if (verdict === "undecided") this.#undecided.add(key);
    return verdict === "start";
  }

  /** False if the next comparison has to look again. */
  async #hasResumed(guest: FoundGuest, home: Home | null, found: FoundKnowledge): Promise<boolean> {
    const isAtHome = home?.host === guest.host && home.attemptId === guest.attemptId;
    if ((found.files ?? []).length === 0 || !isAtHome || hasOpenTask(home)) return true;
    return this.#resumeSnapshot(guest, found);
  }

  /**
   * Returns the revision for an order that makes the guest match its row. If the guest has obeyed a later order than the row knows of, the
   * row is raised above that order, since the guest refuses an order of the same revision as well. While a task is open nothing is raised:
   * the guest's refusal tells an operation that the database has lost commits. For the same reason nothing is raised for a halted guest that
   * may stay as it is: its server may have been moved by the forgotten order, and a later start must be refused (law 4). A guest that runs refuses whatever is older than an order
   * that it was given, also if that one failed, so such an order counts there. A revision that no honest guest has raises nothing.
   */
  async #revisionFor(
    guest: FoundGuest,
    home: Home | null,
    fate: GuestFate,
    found: FoundKnowledge | null,
  ): Promise<number> {
    const known = home?.revision ?? 0;
    const obeyed = Math.max(found?.revision ?? 0, isHalted(guest) ? 0 : (found?.heard ?? 0));
    if (obeyed <= known || hasOpenTask(home) || obeyed > RAISED_REVISION_MAX) return known;
    if (isHalted(guest) && fate === "leave") return known;
    const revision = obeyed + 1;
    if (home !== null && home.status !== "DELETED") await this.#judge.raise(guest.serverUuid, revision);
    return revision;
  }

  /** Whether the guest has to be compared once more when the open task of its server has ended. */
  isUndecided(guest: Pick<FoundGuest, "host" | "serverUuid" | "attemptId">): boolean {
    return this.#undecided.has(keyOf(guest));
  }

  /** Whether the last comparison left the guest in quarantine. */
  isQuarantined(guest: Pick<FoundGuest, "host" | "attemptId">): boolean {
    return this.#judge.isQuarantined(guest);
  }

  /** Forgets waiting guests of the host except these ones. Called with the host's complete list, or with none when the host is lost. */
  onlyThere(host: string, attemptIds: readonly string[]): void {
    this.#judge.onlyThere(host, attemptIds);
  }

  /** The server's row, read in one batch with the rows of others. */
  homeOf(serverUuid: string): Promise<Home | null> {
    return this.#commits.answered("homes", this.#homes, serverUuid);
  }

  /** Handles an agent's answer to the destroy of one attempt. */
  reported(report: DestroyReport): void {
    if (report.failed !== "") this.#events.leftBehind(report.serverUuid, report.host, keptReason(report.failed));
    this.#destroys.get(keyOf(report))?.done(report.failed === "");
  }

  hostLost(host: string): void {
    for (const waiting of this.#destroys.values()) if (waiting.host === host) waiting.done(false);
  }

  /** Resolves with whether the host reported that the guest is gone. */
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

function isUndecided(guest: FoundGuest, home: Home, obeyed: number): boolean {
  const isAtHome = home.host === guest.host && home.attemptId === guest.attemptId;
  return hasOpenTask(home) && isHalted(guest) && obeyed > home.revision && isAtHome;
}

function isHalted({ state }: FoundGuest): boolean {
  return state === "stopped" || state === "paused" || state === "suspended";
}

/** `busy` does not count builds. */
function hasOpenTask(home: Home | null): boolean {
  return home !== null && (home.busy || home.status === "BUILD");
}

function keyOf(guest: { readonly host: string; readonly serverUuid: string; readonly attemptId: string }): string {
  return `${guest.host} ${guest.serverUuid} ${guest.attemptId}`;
}
