import type { ResourceClass } from "../ledger/ids.ts";
import type { SearchLimit } from "./search-budget.ts";

/** Why a tree cannot serve a request: the first check that it failed. `suffix` names the request group. */
export type Refusal =
  | { readonly kind: "no-host" | "host-down" | "host-disabled" | "host-excluded" | "other-host" }
  | { readonly kind: "traits" | "aggregates" | "other-tree"; readonly suffix: string }
  | { readonly kind: "lacks"; readonly suffix: string; readonly resourceClass: ResourceClass; readonly amount: number }
  /** The refusal of a host filter. */
  | { readonly kind: "filtered"; readonly filter: string; readonly why: string }
  /** Each group would fit by itself, but not all of them together. */
  | { readonly kind: "no-combination" }
  /** The search reached its bound of work before it knew whether the groups fit together. */
  | { readonly kind: "gave-up" }
  /** The search ended before it had covered this tree, because the decision had used up its limit of steps or time. */
  | { readonly kind: "not-searched"; readonly limit: SearchLimit };

export interface RefusalCount {
  readonly refusal: Refusal;
  readonly trees: number;
}

/** Returns a refusal as a text that can follow the number of hosts, as in "12 hosts: …". */
export function describeSearchRefusal(refusal: Refusal): string {
  switch (refusal.kind) {
    case "no-host":
      return "no host";
    case "host-down":
      return "down";
    case "host-disabled":
      return "disabled";
    case "host-excluded":
      return "tried already";
    case "other-host":
      return "not the requested host";
    case "traits":
      return `lacking or forbidden traits${ofGroup(refusal.suffix)}`;
    case "aggregates":
      return `outside the requested aggregates${ofGroup(refusal.suffix)}`;
    case "other-tree":
      return `outside the requested tree${ofGroup(refusal.suffix)}`;
    case "lacks":
      return `not enough ${refusal.resourceClass} (${refusal.amount} asked for)${ofGroup(refusal.suffix)}`;
    case "filtered":
      return `${refusal.why} (${refusal.filter})`;
    case "no-combination":
      return "request groups do not fit together";
    case "gave-up":
      return "too many request groups to combine";
    case "not-searched":
      return `not searched, because the search was given up: combining the request groups took too ${refusal.limit === "time" ? "long" : "many steps"}`;
    default:
      return refusal satisfies never;
  }
}

function ofGroup(suffix: string): string {
  return suffix === "" ? "" : ` in group ${suffix.replace(/^_/, "")}`;
}

/** Adds up the counts of several searches, one for each cell. The most frequent comes first. */
export function sumRefusals(counts: Iterable<RefusalCount>): RefusalCount[] {
  const sums = new Map<string, RefusalCount>();
  for (const { refusal, trees } of counts) {
    const key = describeSearchRefusal(refusal);
    sums.set(key, { refusal, trees: trees + (sums.get(key)?.trees ?? 0) });
  }
  return [...sums.values()].sort((a, b) => b.trees - a.trees);
}
