import type { CompiledRequest } from "./compiled-request.ts";
import { ProviderKinds } from "./provider-kinds.ts";
import { WorkBudget } from "./work-budget.ts";

/** How many of each group's likes each provider takes; row by provider, column by group. Valid until the next is asked for. */
export type GroupCounts = Int32Array;

/** A way to find, one after the other, all placings of the numbered groups beside what the unnumbered one has taken. */
export interface GroupPlacer {
  /** As the next gives them; valid after it returned true. */
  readonly counts: GroupCounts;
  /** Forgets how far it was; looks at the placement as it is now. */
  begin(): void;
  /** False: there is none left, or the budget is spent. The placement is as it was at the beginning, unless the budget is spent. */
  next(): boolean;
}

/**
 * What is left to place in a tree, and where there is room: the state that the parts of its search share. Kept from one tree to the
 * next.
 */
export class GroupPlacement {
  readonly kinds: ProviderKinds;
  readonly budget = new WorkBudget();
  readonly classCount: number;
  /** By group: how many likes there are. */
  readonly likes: readonly number[];
  /** Room by provider and class, less what was placed so far. */
  room = new Float64Array(0);
  /** By provider: bits of the unnumbered group's classes that it serves. With any it is like no other any more. */
  serves = new Float64Array(0);
  /** By group and class: the amount one of these like groups takes. Row by group. */
  readonly #needs: Float64Array;

  constructor(request: CompiledRequest) {
    const { classes, numbered } = request;
    this.kinds = new ProviderKinds(request);
    this.classCount = classes.length;
    this.likes = numbered.map((group) => group.suffixes.length);
    this.#needs = new Float64Array(numbered.length * classes.length);
    numbered.forEach(({ demands }, group) => {
      for (const { resourceClass, amount } of demands) {
        const index = classes.findIndex((like) => like.resourceClass === resourceClass);
        this.#needs[group * classes.length + index] = amount;
      }
    });
  }

  /** Nothing is placed in the tree of this root yet. */
  begin(root: number, steps: number): void {
    this.budget.renew(steps);
    this.kinds.fill(root);
    const { count, room } = this.kinds;
    if (this.room.length < room.length) this.room = new Float64Array(room.length);
    if (this.serves.length < count) this.serves = new Float64Array(this.kinds.slots.length);
    for (let at = 0; at < count * this.classCount; at += 1) this.room[at] = room[at]!;
    this.serves.fill(0, 0, count);
  }

  /** The amount of a class that one like of the group takes. */
  need(group: number, index: number): number {
    return this.#needs[group * this.classCount + index]!;
  }

  fits(group: number, provider: number): boolean {
    if (this.kinds.groupFits[provider * this.likes.length + group] === 0) return false;
    for (let index = 0; index < this.classCount; index += 1) {
      if (this.room[provider * this.classCount + index]! < this.need(group, index)) return false;
    }
    return true;
  }

  /** Puts `times` likes of a group on a provider, or takes them off (negative). */
  place(group: number, provider: number, times: number): void {
    for (let index = 0; index < this.classCount; index += 1) {
      const at = provider * this.classCount + index;
      this.room[at] = this.room[at]! - times * this.need(group, index);
    }
  }
}
