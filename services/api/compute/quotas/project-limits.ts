import {
  limitsOfProject,
  limitsOfUser,
  NO_SET_LIMITS,
  type QuotaLimits,
  type SetLimits,
} from "../../../../core/stores/api/quota-limits.ts";
import type { QuotaStore } from "../../../../core/stores/api/quota-store.ts";
import type { Clock } from "../../../../runtime/clock.ts";

const ENTRIES_MAX = 1_000;
/** A number that no count reaches, for stores that compare counts with a limit. */
const NO_LIMIT = 2_147_483_647;

/**
 * The limits of projects as this process last read them, for the quotas of single requests (metadata, files, keypairs, groups). Another api
 * may have changed them `cacheMs` ago. The quotas of servers are never read from here: the transaction that accepts servers reads them.
 */
export class ProjectLimits {
  readonly defaults: QuotaLimits;
  readonly #store: Pick<QuotaStore, "limits"> | null;
  readonly #clock: Clock;
  readonly #cacheMs: number;
  readonly #entries = new Map<string, { readonly set: SetLimits; readonly readAtMs: number }>();

  /** Without a store, every project has the defaults. */
  constructor(
    deps: { readonly store: Pick<QuotaStore, "limits"> | null; readonly clock: Clock },
    options: { readonly defaults: QuotaLimits; readonly cacheMs: number },
  ) {
    this.defaults = options.defaults;
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#cacheMs = options.cacheMs;
  }

  /** Returns the limits of a project, -1 for none. */
  async ofProject(projectId: string): Promise<QuotaLimits> {
    return limitsOfProject(await this.#read(projectId), this.defaults);
  }

  /** Returns the limits of a user in a project, -1 for none. */
  async ofUser({ projectId, userId }: { readonly projectId: string; readonly userId: string }): Promise<QuotaLimits> {
    return limitsOfUser(await this.#read(projectId), this.defaults, userId);
  }

  /** Called when this process has changed the limits of a project, or of all. */
  forget(projectId: string | null): void {
    if (projectId === null) this.#entries.clear();
    else this.#entries.delete(projectId);
  }

  async #read(projectId: string): Promise<SetLimits> {
    if (this.#store === null) return NO_SET_LIMITS;
    const entry = this.#entries.get(projectId);
    const nowMs = this.#clock.monotonic();
    if (entry !== undefined && nowMs - entry.readAtMs < this.#cacheMs) return entry.set;
    const set = await this.#store.limits(projectId);
    if (this.#entries.size >= ENTRIES_MAX) this.#entries.clear();
    this.#entries.set(projectId, { set, readAtMs: nowMs });
    return set;
  }
}

/** Returns a limit as the largest allowed count. */
export function countMax(limit: number): number {
  return limit < 0 ? NO_LIMIT : limit;
}
