import { classAmountsOf, countedAmounts } from "../../../core/stores/api/counted-amounts.ts";
import { ProjectQuota } from "../../../core/stores/api/project-quota.ts";
import {
  amountsOf,
  increaseOf,
  NO_SERVERS,
  onlyLimits,
  type QuotaExcess,
  type QuotaLimits,
  type ServerAmounts,
  type ServerUsage,
  type SetLimits,
  type StatedLimits,
  sumOf,
} from "../../../core/stores/api/quota-limits.ts";
import type {
  ChargedResize,
  QuotaScope,
  QuotaStore,
  ResizeCharge,
  SeenCharge,
} from "../../../core/stores/api/quota-store.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { Clock } from "../../../runtime/clock.ts";

/** A server that counts, with its present amounts. */
export interface CountedServer {
  readonly projectId: string;
  readonly userId: string;
  /** Without those of resource classes until a resize has changed them; those of the spec hold then. */
  readonly amounts: ServerAmounts;
  readonly spec: ServerSpec;
}

/** The in-process twin of the quotas' tables. `MemoryApiStore` tells it which servers are accepted and cancelled. */
export class MemoryQuotaStore implements QuotaStore {
  readonly #clock: Pick<Clock, "now">;
  /** By project, then by user. The entry of the user "" belongs to the project itself. */
  readonly #limits = new Map<string, Map<string, Partial<QuotaLimits>>>();
  readonly #classes = new Map<string, Partial<QuotaLimits>>();
  readonly #counted = new Map<string, CountedServer>();
  /** Servers that are deleted softly. Their charges are kept for the time after they are restored. */
  readonly #aside = new Set<string>();
  readonly #charged = new Map<
    string,
    { readonly version: number; readonly lookedAtMs: number; readonly touch: number }
  >();
  #touches = 0;

  constructor(deps: { readonly clock: Pick<Clock, "now"> }) {
    this.#clock = deps.clock;
  }

  async setLimits({ projectId, userId }: QuotaScope, limits: Partial<QuotaLimits>): Promise<void> {
    const own = this.#limits.get(projectId) ?? new Map<string, Partial<QuotaLimits>>();
    own.set(userId ?? "", { ...own.get(userId ?? ""), ...limits });
    this.#limits.set(projectId, own);
  }

  async limits(projectId: string): Promise<SetLimits> {
    return this.#limitsOf(projectId);
  }

  async forgetLimits({ projectId, userId }: QuotaScope): Promise<void> {
    if (userId === null) this.#limits.delete(projectId);
    else this.#limits.get(projectId)?.delete(userId);
  }

  async setClassLimits(className: string, limits: Partial<QuotaLimits>): Promise<void> {
    this.#classes.set(className, { ...this.#classes.get(className), ...limits });
  }

  async classLimits(className: string): Promise<Partial<QuotaLimits>> {
    return this.#classes.get(className) ?? {};
  }

  async usage(
    projectId: string,
    { withClasses }: { readonly withClasses: boolean } = { withClasses: false },
  ): Promise<ServerUsage> {
    return this.#usageOf(projectId, withClasses);
  }

  async chargeResize(
    { serverUuid, amounts }: ResizeCharge,
    defaults: QuotaLimits,
    stated?: StatedLimits,
  ): Promise<QuotaExcess | null> {
    const server = this.#counted.get(serverUuid);
    if (server === undefined) return null;
    const now = withClassesOf(server);
    const more = increaseOf(now, amounts);
    const excess = this.#quotaOf(server.projectId, defaults, stated).admit(server.userId, more);
    if (excess !== null) return excess;
    this.#counted.set(serverUuid, { ...server, amounts: sumOf(now, more) });
    const version = (this.#charged.get(serverUuid)?.version ?? 0) + 1;
    this.#touch(serverUuid, version, this.#clock.now());
    return null;
  }

  async chargedResizes(untouchedMs: number, limit: number): Promise<readonly ChargedResize[]> {
    const nowMs = this.#clock.now();
    const due = [...this.#charged].filter(([, { lookedAtMs }]) => lookedAtMs <= nowMs - untouchedMs);
    return due
      .sort(([, a], [, b]) => a.lookedAtMs - b.lookedAtMs)
      .slice(0, limit)
      .map(([serverUuid, { version }]) => {
        this.#touch(serverUuid, version, nowMs);
        return { serverUuid, version };
      });
  }

  #touch(serverUuid: string, version: number, lookedAtMs: number): void {
    this.#touches += 1;
    this.#charged.set(serverUuid, { version, lookedAtMs, touch: this.#touches });
  }

  async soleCharge(serverUuid: string): Promise<SeenCharge | null> {
    const note = this.#charged.get(serverUuid);
    return note?.version === 1 ? { serverUuid, version: 1, touched: String(note.touch) } : null;
  }

  async settleResize(resize: ChargedResize | SeenCharge, amounts: ServerAmounts): Promise<void> {
    const { serverUuid, version } = resize;
    const note = this.#charged.get(serverUuid);
    if (note?.version !== version || this.#aside.has(serverUuid)) return;
    if ("touched" in resize && resize.touched !== String(note.touch)) return;
    this.#charged.delete(serverUuid);
    const server = this.#counted.get(serverUuid);
    if (server !== undefined) this.#counted.set(serverUuid, { ...server, amounts: { ...amounts, instances: 1 } });
  }

  /** Returns why the servers of one call are over quota, or null. */
  excessOf(specs: readonly ServerSpec[], defaults: QuotaLimits, stated?: StatedLimits): QuotaExcess | null {
    const [first] = specs;
    if (first === undefined) return null;
    const of = (spec: ServerSpec) => (stated === undefined ? amountsOf(spec.flavor) : countedAmounts(spec));
    const asked = specs.reduce((sum, spec) => sumOf(sum, of(spec)), NO_SERVERS);
    return this.#quotaOf(first.projectId, defaults, stated).admit(first.userId, asked, of(first));
  }

  /** Counts a server that is accepted. */
  add(spec: ServerSpec): void {
    const { uuid, projectId, userId, flavor } = spec;
    this.#counted.set(uuid, { projectId, userId, amounts: amountsOf(flavor), spec });
  }

  /** Subtracts the amounts of a server that is deleted for good. */
  remove(serverUuid: string): void {
    this.#counted.delete(serverUuid);
    this.#aside.delete(serverUuid);
  }

  /** Subtracts the amounts of a server that is deleted softly, and returns them. */
  setAside(serverUuid: string): CountedServer | null {
    const counted = this.#counted.get(serverUuid) ?? null;
    this.#counted.delete(serverUuid);
    this.#aside.add(serverUuid);
    return counted;
  }

  /** Counts a server again. Returns why it is over quota, and counts nothing then. */
  addAgain(
    serverUuid: string,
    counted: CountedServer,
    defaults: QuotaLimits | null,
    stated?: StatedLimits,
  ): QuotaExcess | null {
    const { projectId, userId } = counted;
    const amounts = stated === undefined ? counted.amounts : withClassesOf(counted);
    const excess = defaults === null ? null : this.#quotaOf(projectId, defaults, stated).admit(userId, amounts);
    if (excess !== null) return excess;
    this.#counted.set(serverUuid, counted);
    this.#aside.delete(serverUuid);
    return null;
  }

  #quotaOf(projectId: string, defaults: QuotaLimits, stated?: StatedLimits): ProjectQuota {
    const set = stated === undefined ? this.#limitsOf(projectId) : onlyLimits(stated);
    return new ProjectQuota(set, defaults, this.#usageOf(projectId, stated !== undefined));
  }

  #limitsOf(projectId: string): SetLimits {
    const ofUsers = new Map(this.#limits.get(projectId));
    const ofProject = ofUsers.get("") ?? {};
    ofUsers.delete("");
    return { byDefault: this.#classes.get("default") ?? {}, ofProject, ofUsers };
  }

  #usageOf(projectId: string, withClasses: boolean): ServerUsage {
    const own = [...this.#counted.values()].filter((server) => server.projectId === projectId);
    const sum = (servers: readonly CountedServer[]) =>
      servers.reduce(
        (total: ServerAmounts, { amounts: { cores, instances, ram } }) => sumOf(total, { cores, instances, ram }),
        NO_SERVERS,
      );
    const byUser = Map.groupBy(own, (server) => server.userId);
    const ofProject = withClasses ? own.map(withClassesOf).reduce((all, one) => sumOf(all, one), NO_SERVERS) : sum(own);
    return { ofProject, ofUsers: new Map([...byUser].map(([user, servers]) => [user, sum(servers)])) };
  }
}

/** The amounts of a server with those of each resource class. */
const withClassesOf = ({ amounts, spec }: CountedServer): ServerAmounts => ({
  classes: classAmountsOf(spec),
  ...amounts,
});
