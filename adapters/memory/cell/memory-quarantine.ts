import { compare } from "../../../core/ledger/ledger-state.ts";
import {
  type DoomedGuest,
  type GuestVerdict,
  LOSS_MARGIN_MS,
  mayBeForgotten,
  QUARANTINE_DISABLES,
  type QuarantineAdmin,
  type QuarantinedGuest,
  type QuarantineStore,
  quarantineReason,
  type ServerAttempt,
  type UncertainServer,
} from "../../../core/stores/cell/quarantine.ts";
import { parseAttemptId } from "../../../core/tasks/attempt-id.ts";
import { isStartKnown } from "../../../core/tasks/known-start.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { CellState } from "./cell-state.ts";

/** The quarantine of a cell in memory. */
export class MemoryQuarantine implements QuarantineStore, QuarantineAdmin {
  readonly #cell: CellState;
  readonly #clock: Pick<Clock, "now">;
  readonly #disable: (host: string, reason: string) => Promise<unknown>;
  /** Guests for which their host was disabled once. An operator may have enabled the host again. */
  readonly #disabledFor = new Set<string>();
  #renewals = 0;
  #restoredAtMs: number | null = null;

  constructor(options: {
    readonly cell: CellState;
    readonly clock: Pick<Clock, "now">;
    readonly disable: (host: string, reason: string) => Promise<unknown>;
  }) {
    this.#cell = options.cell;
    this.#clock = options.clock;
    this.#disable = options.disable;
  }

  /**
   * Returns a function that restores the rows as they are now. The incarnation stays, because a restored database always gets a new one. It is on a new timeline from then on.
   */
  remember(): () => void {
    const disabledFor = new Set(this.#disabledFor);
    return () => {
      this.#disabledFor.clear();
      for (const key of disabledFor) this.#disabledFor.add(key);
      this.#restoredAtMs = this.#clock.now();
    };
  }

  async incarnation(): Promise<string> {
    return this.present;
  }

  /** The present incarnation. */
  get present(): string {
    return `memory/${this.#renewals}`;
  }

  async judgeGuests(guests: readonly DoomedGuest[]): Promise<readonly GuestVerdict[]> {
    const verdicts = guests.map((guest) => this.#judge(guest));
    const kept = guests.filter((_, at) => verdicts[at]?.kind === "quarantined");
    for (const guest of kept) {
      const host = this.#cell.hosts.get(guest.host);
      if (host === undefined || this.#disabledFor.has(keyOf(guest))) continue;
      this.#disabledFor.add(keyOf(guest));
      if (!host.disabled) await this.#disable(host.name, QUARANTINE_DISABLES);
    }
    return verdicts;
  }

  #judge(guest: DoomedGuest): GuestVerdict {
    const { host, serverUuid, attemptId, state } = guest;
    const before = this.#cell.quarantined.get(keyOf(guest));
    if (before !== undefined) return { kind: before.condemned ? "destroy" : "quarantined", reason: null };
    const server = this.#cell.servers.get(serverUuid);
    const revision = server === undefined || server.status === "CLOSED" ? null : server.revision;
    const attempt = parseAttemptId(attemptId);
    const task = attempt === null ? undefined : this.#cell.tasks.get(attempt.taskId);
    const isAttemptKnown = attempt !== null && task !== undefined && task.selection >= attempt.selection;
    const incarnation = this.present;
    const made =
      task === undefined || !isAttemptKnown
        ? null
        : { kind: task.kind, result: this.#cell.attempts.get(attemptId)?.result, stages: task.stages };
    const record = { status: server?.status ?? "CLOSED", task: made, selection: attempt?.selection ?? 0 };
    const known = {
      ...{ revision, isAttemptKnown, isStartKnown: isStartKnown(record), incarnation },
      wasCompared: this.#cell.compared.get(host) === incarnation,
      wasThere: server?.host === host || this.#cell.attemptsOf(serverUuid).some((one) => one.host === host),
    };
    const reason = quarantineReason(guest, known);
    if (reason === null) return { kind: revision === null ? "unknown" : "destroy", reason };
    const foundAtMs = this.#clock.now();
    this.#cell.quarantined.set(keyOf(guest), {
      host,
      serverUuid,
      attemptId,
      state,
      reason,
      foundAtMs,
      condemned: false,
      holds: mayBeForgotten(known),
    });
    return { kind: "quarantined", reason };
  }

  async noteCompared(hosts: readonly { readonly host: string; readonly incarnation: string }[]): Promise<void> {
    for (const { host, incarnation } of hosts) this.#cell.compared.set(host, incarnation);
  }

  async keepQuarantined(
    hosts: readonly { readonly host: string; readonly attemptIds: readonly string[] }[],
  ): Promise<void> {
    const kept = new Map(hosts.map(({ host, attemptIds }) => [host, attemptIds]));
    for (const [key, { host, attemptId }] of this.#cell.quarantined)
      if (kept.get(host)?.includes(attemptId) === false) {
        this.#cell.quarantined.delete(key);
        this.#disabledFor.delete(key);
      }
  }

  async raiseRevisions(
    revisions: readonly { readonly serverUuid: string; readonly revision: number }[],
  ): Promise<void> {
    for (const { serverUuid, revision } of revisions) {
      const server = this.#cell.servers.get(serverUuid);
      if (server !== undefined) server.revision = Math.max(server.revision, revision);
    }
  }

  async markUncertain(servers: readonly UncertainServer[]): Promise<readonly boolean[]> {
    return servers.map(({ serverUuid, host, attemptId, revision, fault }) => {
      const server = this.#cell.servers.get(serverUuid);
      if (server?.status !== "ACTIVE" || server.taskState !== null || server.revision >= revision) return false;
      if (server.host !== host || server.attemptId !== attemptId) return false;
      const atMs = this.#clock.now();
      Object.assign(server, {
        status: "ERROR",
        uncertain: true,
        fault: { message: fault, atMs },
        revision,
        updatedAtMs: atMs,
      });
      return true;
    });
  }

  async othersInQuarantine(attempts: readonly ServerAttempt[]): Promise<readonly boolean[]> {
    return attempts.map(({ serverUuid, attemptId }) => this.#cell.isInQuarantine(serverUuid, attemptId));
  }

  async quarantined(): Promise<readonly QuarantinedGuest[]> {
    return [...this.#cell.quarantined.values()].sort((a, b) => compare(keyOf(a), keyOf(b)));
  }

  async condemn(serverUuids: readonly string[] | null): Promise<number> {
    let count = 0;
    for (const [key, guest] of this.#cell.quarantined) {
      if (serverUuids !== null && !serverUuids.includes(guest.serverUuid)) continue;
      this.#cell.quarantined.set(key, { ...guest, condemned: true });
      count += 1;
    }
    return count;
  }

  async restoredAgoMs(): Promise<number | null> {
    return this.#restoredAtMs === null ? null : this.#clock.now() - this.#restoredAtMs;
  }

  /** Whether a host may have a guest of the server that was not seen since the database has lost commits. */
  mayBeUnseen(serverUuid: string): boolean {
    const { servers, hosts, forcedDown, compared } = this.#cell;
    if (this.#restoredAtMs === null) return false;
    const server = servers.get(serverUuid);
    const isKnown = server !== undefined && server.status !== "CLOSED";
    if (isKnown && server.createdAtMs > this.#restoredAtMs + LOSS_MARGIN_MS) return false;
    const incarnation = this.present;
    return hosts.values().some(({ name }) => !forcedDown.has(name) && compared.get(name) !== incarnation);
  }

  async renewIncarnation(): Promise<string> {
    this.#renewals += 1;
    this.#restoredAtMs = this.#clock.now();
    return this.incarnation();
  }
}

const keyOf = ({ host, attemptId }: { readonly host: string; readonly attemptId: string }): string =>
  `${host} ${attemptId}`;
