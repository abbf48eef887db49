import type { ProviderKinds } from "./provider-kinds.ts";
import type { WorkBudget } from "./work-budget.ts";

/** What is left to place, and where there is room: the state that one branch of a tree's search shares. */
export interface GroupPlacement {
  readonly kinds: ProviderKinds;
  /** Room by provider and class, less what the branch has placed so far. Changed while a search runs, restored after. */
  readonly room: Float64Array;
  readonly classCount: number;
  /** By provider: whether the unnumbered group uses it already, so that it is like no other any more. */
  readonly touched: readonly boolean[];
  /** By group and class: the amount one of these like groups takes. Row by row. */
  readonly needs: Float64Array;
  /** By group: how many likes there are. */
  readonly counts: readonly number[];
  readonly budget: WorkBudget;
}

/** How many of each group's likes each provider takes; row by provider, column by group. Valid until the next is asked for. */
export type GroupCounts = Int32Array;

export function fitsNow(placement: GroupPlacement, group: number, provider: number): boolean {
  const { kinds, room, needs, classCount } = placement;
  if (kinds.groupFits[group * kinds.slots.length + provider] === 0) return false;
  for (let index = 0; index < classCount; index += 1) {
    if (room[provider * classCount + index]! < needs[group * classCount + index]!) return false;
  }
  return true;
}

/** Puts `times` likes of a group on a provider, or takes them off (negative). */
export function place(placement: GroupPlacement, group: number, provider: number, times: number): void {
  const { room, needs, classCount } = placement;
  for (let index = 0; index < classCount; index += 1) {
    const at = provider * classCount + index;
    room[at] = room[at]! - times * needs[group * classCount + index]!;
  }
}
