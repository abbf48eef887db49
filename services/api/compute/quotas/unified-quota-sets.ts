import {
  onlyLimits,
  type QuotaLimits,
  type ServerUsage,
  type SetLimits,
} from "../../../../core/stores/api/quota-limits.ts";
import type { QuotaStore } from "../../../../core/stores/api/quota-store.ts";
import type { QuotaSets } from "./quota-deps.ts";
import type { UnifiedLimits } from "./unified-limits.ts";

/**
 * Quota sets and classes where Keystone has the limits: they show its limits with the use, and changes are taken without an effect. Source: Nova's
 * `UnifiedLimitsDriver`.
 */
export class UnifiedQuotaSets implements QuotaSets {
  readonly isChangeable = false;
  readonly #limits: Pick<UnifiedLimits, "shown" | "registered">;
  readonly #store: Pick<QuotaStore, "usage">;

  constructor(limits: Pick<UnifiedLimits, "shown" | "registered">, store: Pick<QuotaStore, "usage">) {
    this.#limits = limits;
    this.#store = store;
  }

  async limits(projectId: string): Promise<SetLimits> {
    return onlyLimits(await this.#limits.shown(projectId));
  }

  classLimits(): Promise<QuotaLimits> {
    return this.#limits.registered();
  }

  usage(projectId: string): Promise<ServerUsage> {
    return this.#store.usage(projectId);
  }

  async setLimits(): Promise<void> {}
  async forgetLimits(): Promise<void> {}
  async setClassLimits(): Promise<void> {}
}
