import type { Registry } from "prom-client";
import { isOrderlyEnd } from "../../core/agent/link.ts";
import type { StopCause } from "../../core/agent/stop-cause.ts";
import type { DoomedGuest } from "../../core/stores/cell/quarantine.ts";
import type { FoundGuest, GuestFate } from "../../core/tasks/guest-fate.ts";
import type { Migration } from "../../core/tasks/migration.ts";
import { BusError } from "../../runtime/bus.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import { RepeatedLogs } from "../../runtime/repeated-logs.ts";
import { createConductorMetrics } from "./conductor-metrics.ts";
import type { MessageMisfit } from "./message-clock.ts";

const HELD_UP_LOG_MS = 30_000;
const GUESTS_MISSING =
  "servers should have a guest on this host, but the host does not have it: look for their disks there; if a disk is lost, rebuild the server, which makes an empty guest from the image, or delete it";
/** The log names the ids of at most this many servers whose guests a host has lost. */
const MISSING_NAMED_MAX = 20;
/** How long the streams of a cell may be missing before that is a warning, and how often one is logged while messages cannot be read. */
const STREAMS_AWAITED_MS = 30_000;
const UNREAD_LOG_MS = 60_000;

/** Reports events that are useful for operators. Each method writes a log line, updates a metric, or does both. */
export class ConductorEvents {
  readonly #logger: Logger;
  readonly #metrics: ReturnType<typeof createConductorMetrics>;
  /** Faults that may hit many tasks at once. Each occurrence is counted all the same. */
  readonly #repeated: RepeatedLogs;

  constructor(options: {
    readonly logger: Logger;
    readonly registry: Registry;
    readonly clock: Clock;
    readonly taskCount: () => number;
  }) {
    this.#logger = options.logger;
    this.#repeated = new RepeatedLogs(options.clock);
    this.#metrics = createConductorMetrics(options.registry, options.taskCount);
  }

  agentArrived(agentId: string, hosts: number): void {
    this.#metrics.agents.inc();
    this.#logger.info({ agentId, hosts }, "an agent connected");
  }

  agentLost(agentId: string, reason: string): void {
    this.#metrics.agents.dec();
    this.#logger[isOrderlyEnd(reason) ? "info" : "warn"]({ agentId, reason }, "the connection to an agent was lost");
  }

  agentRefused(agentId: string, reason: string): void {
    this.#metrics.agentsRefused.inc();
    this.#repeated.log(`refused ${agentId}`, () =>
      this.#logger.error({ agentId, reason }, "an agent was refused, for the given reason"),
    );
  }

  cellWideCertificate(agentId: string): void {
    this.#logger.warn(
      { agentId },
      "an agent was accepted whose certificate names no agent, so it could act for every host of the cell: issue a certificate for it with `berth certs --agent-hosts`",
    );
  }

  /** An agent reported on a host that its connection does not carry, on another host's attempt, or more than can be settled at a time. */
  reportDropped(agentId: string | null, host: string, what: string): void {
    this.#metrics.reportsDropped.inc({ what });
    this.#repeated.log("report dropped", () =>
      this.#logger.warn(
        { agentId, host: host.slice(0, 200), what },
        "a report was dropped, because it is about a host or an attempt of another agent, is malformed, or is one of too many",
      ),
    );
  }

  hostsDown(hosts: readonly string[]): void {
    const shown = { hosts: hosts.slice(0, 20), count: hosts.length };
    this.#logger.warn(shown, "hosts are down, because no conductor has heard from their agents lately");
  }

  /** The unseen hosts that stay up because of the limit. The list is normally empty. */
  hostsHeldUp(hosts: readonly string[]): void {
    this.#metrics.heldUp.set(hosts.length);
    if (hosts.length === 0) return;
    this.#repeated.log(
      "held up",
      () =>
        this.#logger.error(
          { hosts: hosts.slice(0, 20), count: hosts.length },
          "hosts are silent and stay up: too large a share of the cell would be down at once, so the network between agents and conductors " +
            "may be at fault. Tasks wait for these hosts. If they are dead, fence them and force them down " +
            "(openstack compute service set --down HOST nova-compute), or raise BERTH_DOWN_SHARE_MAX",
        ),
      HELD_UP_LOG_MS,
    );
  }

  treeRefused(host: string, reason: string): void {
    this.#logger.error(
      { host, reason },
      "a host's report of its resources was refused, for the given reason; until a report is accepted, a host that is up keeps its former resources, and another one stays down",
    );
  }

  treeKept(host: string, kept: readonly string[]): void {
    this.#logger.warn({ host, kept }, "a host no longer offers resources that are kept for the servers that use them");
  }

  guestSettled(guest: FoundGuest, fate: GuestFate): void {
    this.#metrics.settled.inc({ fate });
    this.#logger.info({ ...guest, fate }, "a guest was brought into the state that the database states");
  }

  stoppedWithGuest({ host, serverUuid, attemptId }: FoundGuest, cause: StopCause): void {
    this.#metrics.stoppedWithGuest.inc({ cause });
    const meaning = "a guest stopped without an order; its server is being stopped, too";
    this.#logger.warn({ server: serverUuid, host, attempt: attemptId, cause }, meaning);
  }

  guestQuarantined(guest: DoomedGuest, reason: string): void {
    this.#metrics.quarantined.inc();
    const { host, serverUuid, attemptId, state } = guest;
    this.#logger.error(
      { server: serverUuid, host, attempt: attemptId, state, reason },
      "a guest that the cell's database does not know is kept in quarantine: decide what happens to it with berth cell quarantine",
    );
  }

  /** A server went to ERROR, because a restored database does not know the order that halted its guest. */
  serverUncertain({ serverUuid, host }: FoundGuest, fault: string): void {
    const meaning = "a halted guest is not started, because its server may run elsewhere: do what the fault says";
    this.#logger.error({ server: serverUuid, host, fault }, meaning);
  }

  /** This number of guests of unknown servers must wait until others have been destroyed. */
  unknownGuestsWait(count: number, perMinute: number): void {
    this.#metrics.unknownWaiting.set(count);
    if (count === 0) return;
    this.#repeated.log(
      "unknown guests",
      () =>
        this.#logger.error(
          { count, perMinute },
          "hosts have many guests of servers that the cell's database does not know, and a few are destroyed each minute. If the database " +
            "was restored, run berth cell restored at once: the remaining guests are then kept. If the agents belong to another cell, stop them",
        ),
      HELD_UP_LOG_MS,
    );
  }

  revisionRaised(serverUuid: string, revision: number): void {
    const meaning = "a guest has obeyed a later order than its server's row knew, so the row's revision was raised";
    this.#logger.warn({ server: serverUuid, revision }, meaning);
  }

  snapshotResumed({ serverUuid, host }: FoundGuest, file: string): void {
    const meaning = "a guest writes to the file of a snapshot that the database has forgotten; the snapshot goes on";
    this.#logger.warn({ server: serverUuid, host, file }, meaning);
  }

  guestsMissing(host: string, servers: readonly string[]): void {
    this.#metrics.missing.inc(servers.length);
    const named = { host, servers: servers.slice(0, MISSING_NAMED_MAX), count: servers.length };
    this.#repeated.log(`missing on ${host}`, () => this.#logger.error(named, GUESTS_MISSING), HELD_UP_LOG_MS);
  }

  comparisonFailed(error: unknown): void {
    this.#repeated.log("compare", () =>
      this.#logger.warn(
        { err: error },
        "the guests of hosts could not be compared with the database; they are compared again soon",
      ),
    );
  }

  resumed(taskId: string, serverUuid: string, epoch: number): void {
    this.#metrics.resumed.inc();
    this.#logger.info({ task: taskId, server: serverUuid, epoch }, "this conductor resumed a build");
  }

  swept(count: number): void {
    this.#metrics.swept.inc(count);
    this.#logger.info({ count }, "this conductor took over tasks that no conductor was working on");
  }

  /** Called for each message whose builds were taken before they were begun, because of its age. */
  toldUnusable(reason: MessageMisfit): void {
    this.#metrics.toldUnusable.inc({ reason });
  }

  /** NATS's clock is behind this one by `aheadMs`; if that is negative, it is ahead. Called once for each direction until `clocksAgree`. */
  clocksDiffer(aheadMs: number): void {
    const seconds = Number((Math.abs(aheadMs) / 1_000).toFixed(1));
    const meaning =
      aheadMs < 0
        ? `the clock of NATS is ahead of this conductor's by ${seconds} s at least, so builds begin later: synchronise the clocks of both machines (NTP)`
        : `for a while, every message of this cell's queue has seemed to be older than ${seconds} s, so builds begin later: synchronise the clocks of ` +
          "this machine and of NATS (NTP), since this one is ahead. If they agree, messages wait: give the cell more conductors or CPU";
    this.#logger.warn({ seconds }, meaning);
  }

  clocksAgree(): void {
    this.#logger.info({}, "the times of NATS's messages agree with this conductor's clock again");
  }

  taskReleased(taskId: string, serverUuid: string, host: string): void {
    this.#metrics.handedOver.inc();
    this.#repeated.log("hand-over", () =>
      this.#logger.warn(
        { task: taskId, server: serverUuid, host },
        "this conductor released a task, because its host is connected only to other conductors",
      ),
    );
  }

  taskMalformed(taskId: string, reason: string): void {
    this.#logger.error(
      { task: taskId, reason },
      "a task cannot be read, so it is not carried out: upgrade this conductor, or delete the server. Otherwise the server will end in ERROR after a while",
    );
  }

  /** Called once for each task. */
  stageUnknown(task: { readonly taskId: string; readonly serverUuid: string }, kind: string, stage: string): void {
    this.#logger.error(
      { task: task.taskId, server: task.serverUuid, kind, stage },
      "an operation is at a stage that this conductor does not know, so another one must continue it: run a conductor of the version that began the stage, or a newer one. The operation waits until then",
    );
  }

  /** Called once for each move. */
  moveUnreadable({ uuid, serverUuid, note }: Pick<Migration, "uuid" | "serverUuid" | "note">): void {
    this.#logger.error(
      { migration: uuid, server: serverUuid, note },
      "a move waits for its confirmation, and its record cannot be read: upgrade this conductor, or delete the server",
    );
  }

  unreadableEnded(taskId: string, serverUuid: string, reason: string): void {
    this.#logger.error(
      { task: taskId, server: serverUuid, reason },
      "a task that no conductor can read has ended, and its server is in ERROR: delete it to release its allocations",
    );
  }

  alternateSkipped(serverUuid: string, host: string, why: string): void {
    this.#metrics.attempts.inc({ result: "skipped" });
    this.#logger.debug(
      { server: serverUuid, host, why },
      "an alternate host was skipped, because the server no longer fits there",
    );
  }

  attemptFailed(serverUuid: string, host: string, reason: string): void {
    this.#metrics.attempts.inc({ result: "failed" });
    this.#logger.info({ server: serverUuid, host, reason }, "a host failed to build a server");
  }

  buildFailed(serverUuid: string, reason: string): void {
    this.#logger.warn({ server: serverUuid, reason }, "the build of a server failed, and the server is in ERROR");
  }

  buildEnded(serverUuid: string, as: "active" | "error" | "fenced", tookMs: number, traceId = ""): void {
    this.#metrics.builds.inc({ outcome: as });
    this.#metrics.seconds.observe(tookMs / 1_000, {}, traceId);
    this.#logger.debug({ server: serverUuid, as, tookMs }, "the build of a server ended");
  }

  confirmedLate(serverUuid: string): void {
    this.#logger.info(
      { server: serverUuid },
      "a resize is being confirmed, because it was not confirmed or reverted in time",
    );
  }

  evacuatedReleased(host: string, count: number): void {
    this.#logger.info(
      { host, count },
      "the allocations of evacuated servers on a host were released, because their guests are gone from it",
    );
  }

  operationEnded(serverUuid: string, kind: string, as: string): void {
    this.#metrics.operations.inc({ kind, outcome: as });
    this.#logger.debug({ server: serverUuid, kind, as }, "an operation ended");
  }

  operationWaits(serverUuid: string, kind: string, note: string): void {
    this.#metrics.waits.inc({ kind });
    this.#logger.warn({ server: serverUuid, kind, note }, "an operation waits, and its server shows the reason");
  }

  deleted(serverUuid: string): void {
    this.#metrics.deletes.inc();
    this.#logger.debug({ server: serverUuid }, "a server was deleted");
  }

  /** The consumers that are currently known to be orphans. */
  orphans(consumers: readonly string[]): void {
    this.#metrics.orphans.set(consumers.length);
    if (consumers.length === 0) return;
    this.#logger.error(
      { consumers: consumers.slice(0, 20), count: consumers.length },
      "allocations belong to no server and no move of this cell: release them with berth audit --heal",
    );
  }

  leftBehind(serverUuid: string, host: string, reason: string): void {
    this.#metrics.leftovers.inc();
    this.#logger.warn(
      { server: serverUuid, host, reason },
      "a guest may be left on a host; it is removed when the host's guests are compared with the database",
    );
  }

  startInDoubt(server: string, host: string, reason: string): void {
    this.#logger.warn({ server, host, reason }, "a host refuses a start and may run the guest: look at its agent");
  }

  eventLost(reason: unknown): void {
    this.#metrics.eventsLost.inc();
    this.#repeated.log("event", () => this.#logger.warn({ err: reason }, "an event could not be sent to the API tier"));
  }

  busFailed(error: unknown): void {
    this.#logger.warn(
      { err: error },
      "the conductor cannot read messages from NATS yet; until it can, its sweeps find the tasks",
    );
  }

  /**
   * Called for each failed try to read the messages of tasks; `forMs` is the time since the first one. A conductor often starts before the api or the scheduler
   * that creates the cell's streams, so streams that are missing are a warning only if they stay missing.
   */
  messagesUnread(error: unknown, forMs: number): void {
    const isMissing = error instanceof BusError && error.code === "no-stream";
    if (isMissing && forMs < STREAMS_AWAITED_MS) {
      const meaning =
        "the conductor waits for the streams of its cell, which an api or a scheduler creates; until then its sweeps find the tasks";
      this.#repeated.log("streams", () => this.#logger.info({ stream: error.about }, meaning), STREAMS_AWAITED_MS);
      return;
    }
    this.#repeated.log(
      "messages",
      () => {
        if (!isMissing) return this.busFailed(error);
        const meaning =
          "the streams of this cell are still missing in NATS: see that an api or a scheduler runs, and that it has this cell with this NATS; until then sweeps find the tasks, only later";
        this.#logger.warn({ stream: error.about, seconds: Math.round(forMs / 1_000) }, meaning);
      },
      UNREAD_LOG_MS,
    );
  }

  /** Messages are read after tries that failed. */
  messagesRead(): void {
    this.#logger.info({}, "the conductor reads messages from NATS now");
  }

  /** The close did not wait any longer for a part, because a server that it needs accepts calls and does not answer in time. */
  closedWithout(part: string): void {
    const meaning =
      "the conductor closes without waiting for a part of it any longer, because the cell's database, NATS or Neutron does not answer in time; its tasks are rows, which others take over when its lease has run out";
    this.#logger.warn({ part }, meaning);
  }

  portsBound(server: string, host: string): void {
    this.#logger.info({ server, host }, "ports that were not bound to their server's host were bound to it");
  }

  portsNotBound(server: string | null, host: string | null, reason: string): void {
    const meaning = "ports of servers at rest could not be bound to their hosts; the next comparison tries again";
    this.#repeated.log("ports", () => this.#logger.warn({ server, host, reason }, meaning));
  }

  databaseFailed(what: string, error: unknown): void {
    this.#metrics.databaseFailures.inc({ what });
    this.#repeated.log(`database ${what}`, () =>
      this.#logger.error({ err: error, what }, "the cell's database failed; the conductor tries again"),
    );
  }

  stepRefused(what: string, serverUuid: string, error: unknown): void {
    this.#metrics.refusedSteps.inc({ what });
    this.#logger.error(
      { err: error, what, server: serverUuid },
      "the cell's database refuses a step of a build, so the server goes to ERROR",
    );
  }
}
