import { randomUUID } from "node:crypto";
import { messageOfMove } from "../../../../adapters/nats/schedule-message.ts";
import { schedulerRequestsSubject } from "../../../../adapters/nats/streams.ts";
import { countedAmounts } from "../../../../core/stores/api/counted-amounts.ts";
import type { AcceptMoveOutcome, MoveStore } from "../../../../core/stores/api/move-store.ts";
import { type QuotaLimits, sumOf } from "../../../../core/stores/api/quota-limits.ts";
import type { QuotaStore } from "../../../../core/stores/api/quota-store.ts";
import { type MoveKind, OPERATIONS } from "../../../../core/tasks/operation-kinds.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { MoveRequest } from "../../../../proto/gen/berth/scheduler.ts";
import type { Flavor } from "../../../../proto/gen/berth/shared.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../../../runtime/batcher.ts";
import type { Bus } from "../../../../runtime/bus.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { ApiEvents } from "../../events.ts";
import type { KnownCall } from "../../http/call.ts";
import { overQuota, overUnifiedLimit } from "../quotas/over-quota.ts";
import type { UnifiedLimits } from "../quotas/unified-limits.ts";
import { waitingTaskState } from "../servers/waiting-moves.ts";
import { type ActionTarget, busy, wrongState } from "./action-target.ts";

/** The move that a call asks for. */
export interface RequestedMove {
  readonly kind: Exclude<MoveKind, "rebuild" | "reimage">;
  readonly flavor?: Flavor;
  /** The destination, or "" for any host. */
  readonly host?: string;
  readonly forced?: boolean;
  readonly sameHostAllowed?: boolean;
  /** The zone that the server is requested in from now on, "" for any. When absent, the zone stays unchanged. */
  readonly zone?: string;
  /** Whether the server keeps its partitions from now on (`OS-DCF:diskConfig`); left out to leave that as it is. */
  readonly manualDisk?: boolean;
  /** Allows an evacuation from a host that is only unseen and not forced down. */
  readonly fenceWaived?: boolean;
}

/**
 * Accepts moves that need a host: commits them to the API database, those of concurrent calls in one transaction, and notifies the
 * schedulers. Without the notification, the schedulers' sweep would find them later.
 */
export class MoveAcceptor {
  readonly #commits: Batcher<MoveRequest, AcceptMoveOutcome>;
  readonly #bus: Pick<Bus, "publish">;
  readonly #clock: Clock;
  readonly #events: ApiEvents;
  readonly #quotas: Pick<QuotaStore, "chargeResize"> | null;
  readonly #quotaDefaults: QuotaLimits;
  readonly #unified: Pick<UnifiedLimits, "enforced"> | null;
  readonly #telling = new Set<Promise<void>>();

  constructor(
    deps: {
      readonly store: Pick<MoveStore, "accept">;
      readonly bus: Pick<Bus, "publish">;
      readonly clock: Clock;
      readonly events: ApiEvents;
      /** Null when quotas are not counted. */
      readonly quotas: Pick<QuotaStore, "chargeResize"> | null;
      /** Null where Keystone does not have the limits of projects. */
      readonly unified: Pick<UnifiedLimits, "enforced"> | null;
    },
    settings: { readonly quotas: QuotaLimits; readonly batchMax: number; readonly queuedMax: number },
  ) {
    this.#quotas = deps.quotas;
    this.#quotaDefaults = settings.quotas;
    this.#unified = deps.unified;
    this.#bus = deps.bus;
    this.#clock = deps.clock;
    this.#events = deps.events;
    this.#commits = new Batcher({
      run: (moves) => deps.store.accept(moves),
      maxItems: settings.batchMax,
      maxQueued: settings.queuedMax,
      spacingMs: COMMIT_SPACING_MS,
    });
  }

  /**
   * Accepts a move. Refuses a move that the server's state does not allow, and a second move of the same server. Once this resolves, the
   * move will be carried out or refused with a reason (law 5).
   */
  async accept(
    target: ActionTarget,
    requested: RequestedMove,
    call: KnownCall,
    headers: Readonly<Record<string, string>>,
  ): Promise<void> {
    const { action, server, cell, record } = target;
    // A user may have pinned the server to another zone, or to none, since its spec was written in its cell.
    const zone = requested.zone ?? record.changes?.availabilityZone;
    if (!OPERATIONS[requested.kind].allowedFrom.includes(server.status))
      throw wrongState({ action, uuid: server.uuid }, server.status);
    const move: MoveRequest = {
      id: randomUUID(),
      serverUuid: server.uuid,
      cell: cell.name,
      kind: requested.kind,
      flavor: requested.flavor,
      host: requested.host ?? "",
      forced: requested.forced ?? false,
      sameHostAllowed: requested.sameHostAllowed ?? false,
      availabilityZone: zone ?? "",
      changesZone: zone !== undefined,
      requestId: call.requestId,
      userId: call.identity.userId,
      projectId: call.identity.projectId,
      createdAtMs: this.#clock.now(),
      fenceWaived: requested.fenceWaived ?? false,
    };
    if (requested.flavor !== undefined) await this.#charge(server, requested.flavor);
    const outcome = await this.#commits.submit(move);
    if (outcome.kind === "busy") throw busy({ action, uuid: server.uuid }, waitingTaskState(outcome.running));
    this.#tell(move, headers);
  }

  /** Counts the server as the larger of both sizes. `ResizeSettler` corrects this when the resize has ended, or was never begun. */
  async #charge({ uuid, spec }: Server, flavor: Flavor): Promise<void> {
    const amounts = countedAmounts({ ...spec, flavor });
    const charge = { serverUuid: uuid, amounts };
    const stated = await this.#unified?.enforced(spec.projectId);
    const excess = (await this.#quotas?.chargeResize(charge, this.#quotaDefaults, stated)) ?? null;
    if (excess === null) return;
    const more = sumOf(amounts, countedAmounts(spec), -1);
    throw stated === undefined ? overQuota(excess, more) : overUnifiedLimit(excess, more, spec.projectId);
  }

  /** Resolves when all notifications have been sent or have failed. */
  async settle(): Promise<void> {
    await Promise.all(this.#telling);
  }

  #tell(move: MoveRequest, headers: Readonly<Record<string, string>>): void {
    const told = this.#bus
      .publish(schedulerRequestsSubject, messageOfMove(move.id), { id: move.id, headers })
      .catch((error: unknown) => this.#events.publishFailed(move.serverUuid, error))
      .finally(() => this.#telling.delete(told));
    this.#telling.add(told);
  }
}
