import type { AllocationItem, Consumer, Provider } from "./model.ts";

/** Everything that a ledger holds, sorted by UUID or name, for tests and for the audit. */
export interface LedgerDump {
  readonly providers: readonly Provider[];
  readonly consumers: readonly (Consumer & { readonly items: readonly AllocationItem[] })[];
}
