import { randomUUID } from "node:crypto";
import { RequestAnnouncer } from "../../../../adapters/nats/request-announcer.ts";
import type { AcceptOutcome } from "../../../../core/stores/api/api-store.ts";
import { countedAmounts } from "../../../../core/stores/api/counted-amounts.ts";
import { ProjectQuota } from "../../../../core/stores/api/project-quota.ts";
import {
  amountsOf,
  NO_SERVERS,
  onlyLimits,
  type QuotaExcess,
  type QuotaLimits,
  type ServerAmounts,
  type StatedLimits,
  sumOf,
} from "../../../../core/stores/api/quota-limits.ts";
import type { QuotaStore } from "../../../../core/stores/api/quota-store.ts";
import { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../../../runtime/batcher.ts";
import type { Bus } from "../../../../runtime/bus.ts";
import { encodeOnce } from "../../../../runtime/encode-once.ts";
import type { ApiEvents } from "../../events.ts";
import { Fault } from "../../http/fault.ts";
import type { RequestsPort, ReservationsPort } from "../../ports.ts";
import type { IntakeSettings } from "../../settings.ts";
import { overQuota, overUnifiedLimit } from "../quotas/over-quota.ts";
import type { UnifiedLimits } from "../quotas/unified-limits.ts";

/** How often a call is made smaller when other calls take what its quota had left. */
const REDUCTIONS_MAX = 3;

/** The servers of one call, and the limits of their project where Keystone has them. */
interface AskedCall {
  readonly specs: readonly ServerSpec[];
  readonly stated: StatedLimits | undefined;
}

/**
 * Accepts requests: commits them to the API database, those of concurrent calls in one transaction, and notifies the schedulers. A request
 * is accepted once it is committed. The notification only saves the wait for the schedulers' sweep, so callers do not wait for it and it
 * may fail.
 */
export class RequestAcceptor {
  readonly #commits: Batcher<AskedCall, AcceptOutcome>;
  readonly #unified: Pick<UnifiedLimits, "enforced"> | null;
  readonly #quotas: Pick<QuotaStore, "limits" | "usage"> | null;
  readonly #defaults: QuotaLimits | null;
  readonly #announcer: RequestAnnouncer;
  readonly #reservations: ReservationsPort;
  readonly #events: ApiEvents;
  readonly #tellingMax: number;
  readonly #openMax: number | null;
  readonly #telling = new Set<Promise<void>>();

  constructor(
    deps: {
      readonly store: Pick<RequestsPort, "acceptWithin">;
      readonly reservations: ReservationsPort;
      readonly bus: Pick<Bus, "publish">;
      readonly events: ApiEvents;
      /** Null when servers are not counted. */
      readonly quotas: Pick<QuotaStore, "limits" | "usage"> | null;
      /** Null where Keystone does not have the limits of projects. */
      readonly unified: Pick<UnifiedLimits, "enforced"> | null;
    },
    settings: IntakeSettings & { readonly quotas: QuotaLimits | null },
  ) {
    this.#unified = deps.unified;
    this.#quotas = deps.quotas;
    this.#defaults = settings.quotas;
    this.#reservations = deps.reservations;
    this.#announcer = new RequestAnnouncer(deps.bus);
    this.#events = deps.events;
    this.#tellingMax = settings.publishesInFlightMax;
    this.#openMax = settings.openRequestsMax;
    this.#commits = new Batcher({
      run: (asked) => {
        const { openRequestsMax: openMax, quotas } = settings;
        const calls = asked.map(({ specs }) => specs);
        const stated = statedBy(asked);
        return deps.store.acceptWithin(calls, { openMax, quotas, stated });
      },
      maxItems: settings.batchMax,
      concurrency: settings.batchesInFlight,
      maxQueued: settings.queuedMax,
      spacingMs: COMMIT_SPACING_MS,
    });
  }

  /**
   * Returns the servers of a call that its quota has room for now, at least `minCount`, before anything is made for them. Rejects as `accept` when there are
   * fewer. Nothing is kept for the call: `accept` judges it again.
   */
  async fitting(asked: readonly ServerSpec[], minCount: number): Promise<readonly ServerSpec[]> {
    const [first] = asked;
    if (first === undefined || this.#quotas === null || this.#defaults === null) return asked;
    const { projectId, userId } = first;
    const stated = await this.#unified?.enforced(projectId);
    const withClasses = stated !== undefined;
    const set = stated === undefined ? await this.#quotas.limits(projectId) : onlyLimits(stated);
    const used = await this.#quotas.usage(projectId, { withClasses });
    const quota = new ProjectQuota(set, this.#defaults, used);
    const excess = quota.admit(userId, sumOfSpecs(asked, withClasses), sumOfSpecs([first], withClasses));
    if (excess === null) return asked;
    if (!isReducible(excess, asked.length, minCount))
      throw refusal(excess, asked, minCount, withClasses ? projectId : null);
    return asked.slice(0, excess.fitting);
  }

  /**
   * Accepts the servers of one call, or none, and returns those that it accepted. These are all of them, or as many as the quota allows if
   * that is at least `minCount`. At least `minCount` of them are to be placed, or none. One message announces all of them; `headers` carry
   * its trace. Rejects when the commit failed, and with a `Fault` when a quota is used up, too many requests of the project are
   * waiting already, or a UUID was closed; then nothing was accepted.
   */
  async accept(
    asked: readonly ServerSpec[],
    minCount: number,
    headers: Readonly<Record<string, string>>,
  ): Promise<readonly ServerSpec[]> {
    let specs = asked;
    // Keystone is asked first, so that nothing is written when it does not answer.
    const projectId = asked[0]?.projectId ?? "";
    const stated = await this.#unified?.enforced(projectId);
    for (let reductions = 0; ; reductions += 1) {
      const [first] = specs;
      if (first === undefined) return specs;
      // The reservation is written before the requests, so that a scheduler that finds one of the requests finds the others too.
      if (first.reservationId !== "") {
        const serverUuids = specs.map((spec) => spec.uuid);
        await this.#reservations.reserve({ id: first.reservationId, serverUuids, minCount });
      }
      const outcome = await this.#commits.submit({ specs, stated });
      if (outcome.kind === "accepted") {
        this.#events.accepted(specs.length);
        this.#tell(first, headers);
        return specs;
      }
      if (outcome.kind === "over-limit") throw overLimit(specs.length, outcome.open, this.#openMax);
      if (outcome.kind === "closed") throw tooLate();
      const { excess } = outcome;
      if (!isReducible(excess, specs.length, minCount) || reductions === REDUCTIONS_MAX)
        throw refusal(excess, asked, minCount, stated === undefined ? null : projectId);
      specs = reduced(asked, excess.fitting);
    }
  }

  /** Resolves when all notifications have been sent or have failed. */
  async settle(): Promise<void> {
    await Promise.all(this.#telling);
  }

  #tell(spec: ServerSpec, headers: Readonly<Record<string, string>>): void {
    if (this.#telling.size >= this.#tellingMax) {
      this.#events.publishFailed(
        spec.uuid,
        new Error(`${this.#tellingMax} publishes are already waiting for an answer`),
      );
      return;
    }
    const told = this.#announcer
      .announce(spec.uuid, headers, isTold(spec) ? encodeOnce(ServerSpec, spec) : undefined)
      .catch((error: unknown) => this.#events.publishFailed(spec.uuid, error))
      .finally(() => this.#telling.delete(told));
    this.#telling.add(told);
  }
}

/**
 * Whether the queue carries the spec: everything that a scheduler needs for the request is in it, since no other servers of a call or of a
 * group are placed with it, and no secrets, such as those in user data, which stay in the databases.
 */
const isTold = ({ reservationId, group, userData, files }: ServerSpec): boolean =>
  reservationId === "" && group === undefined && userData === "" && files.length === 0;

/** The limits by project. Undefined where Keystone does not have them. Of two calls of one project the later one has read them later. */
function statedBy(asked: readonly AskedCall[]): ReadonlyMap<string, StatedLimits> | undefined {
  const stated = asked.flatMap(({ specs: [first], stated: limits }) =>
    first === undefined || limits === undefined ? [] : [[first.projectId, limits] as const],
  );
  return stated.length === 0 ? undefined : new Map(stated);
}

/** Whether a call of `count` servers can be made smaller, so that its quota has room for it. */
const isReducible = ({ fitting }: QuotaExcess, count: number, minCount: number): boolean =>
  fitting >= Math.max(1, minCount) && fitting < count;

/** Returns the first servers of a call as a call of their own, since the reservation of all of them is written already. */
function reduced(specs: readonly ServerSpec[], count: number): readonly ServerSpec[] {
  const reservationId = randomUUID();
  return specs.slice(0, count).map((spec) => ({ ...spec, reservationId }));
}

const sumOfSpecs = (specs: readonly ServerSpec[], withClasses: boolean): ServerAmounts =>
  specs.reduce((sum, spec) => sumOf(sum, withClasses ? countedAmounts(spec) : amountsOf(spec.flavor)), NO_SERVERS);

function refusal(
  excess: QuotaExcess,
  asked: readonly ServerSpec[],
  minCount: number,
  unifiedProject: string | null,
): Fault {
  const sum = sumOfSpecs(asked, unifiedProject !== null);
  if (unifiedProject !== null) return overUnifiedLimit(excess, { ...sum, instances: asked.length }, unifiedProject);
  const instances = minCount === asked.length ? minCount : `${minCount}-${asked.length}`;
  return overQuota(excess, { ...sum, instances });
}

/** The volumes and ports of the call's servers are given back already, because the call has held them for so long. */
function tooLate(): Fault {
  return new Fault(
    503,
    "The volumes and ports of the servers were not ready in time, so no server was created; try again, with fewer servers or volumes in one call.",
  );
}

/** Returns the 403 that Nova answers when a project's quota is used up. */
function overLimit(asked: number, open: number, openMax: number | null): Fault {
  return new Fault(
    403,
    `Quota exceeded for open requests: Requested ${asked}, but already used ${open} of ${openMax} open requests. They wait to be placed; try again when some of them have been placed, or delete some.`,
  );
}
