import type { KeptOffer } from "./merge-report.ts";
import type { TreeOutcome } from "./provider-tree.ts";

type Accepted = Extract<TreeOutcome, { readonly generations: unknown }>;

/** The outcome of a report of a tree. */
export type ReportOutcome =
  | { readonly kind: Accepted["kind"]; readonly kept: readonly KeptOffer[] }
  /** Allocations of servers would have to move to other providers of the tree and do not fit there. The tree is as it was. `why` is a sentence. */
  | { readonly kind: "reshape-refused"; readonly why: string }
  | Exclude<TreeOutcome, Accepted>;

/** The outcome of a merged report whose tree was put. */
export function reportOutcomeOf(outcome: TreeOutcome, kept: readonly KeptOffer[]): ReportOutcome {
  return "generations" in outcome ? { kind: outcome.kind, kept } : outcome;
}
