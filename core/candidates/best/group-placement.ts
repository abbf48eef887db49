import type { BoundRequest } from "../bound/bound-request.ts";
import { WorkBudget } from "../work-budget.ts";
import { ProviderKinds } from "./provider-kinds.ts";

/**
 * How many of each group's members each provider takes. Rows are providers and columns are groups. Valid until the next placing is requested.
 */
export type GroupCounts = Int32Array;

/** Finds, one after the other, all placings of the numbered groups beside what the unnumbered group has already taken. */
export interface GroupPlacer {
  /** The placing that `next` found; valid after it returned true. */
  readonly counts: GroupCounts;
  /** Starts over with the current placement. */
  begin(): void;
  /**
   * Returns false when no placing is left or the budget is spent. When no placing is left, the placement is again as it was
   * at the beginning.
   */
  next(): boolean;
}

/**
 * The groups that remain to be placed in a tree, and the room in it: the state that all parts of a tree's search share. It is reused for the
 * next tree.
 */
export class GroupPlacement {
  readonly kinds: ProviderKinds;
  readonly budget = new WorkBudget();
  readonly classCount: number;
  /** By group: number of its members, which are interchangeable request groups. */
  readonly memberCounts: readonly number[];
  /** Room by provider and class, minus the amounts that have been placed so far. */
  room = new Float64Array(0);
  /**
   * By provider: bits of the unnumbered group's classes that it serves. A provider that serves any of them is no longer like another one.
   */
  serves = new Float64Array(0);
  /** The amount of each class that one member of the group takes. Rows are groups. */
  readonly #amounts: Float64Array;

  constructor(request: BoundRequest) {
    const { classes, numbered } = request;
    this.kinds = new ProviderKinds(request);
    this.classCount = classes.length;
    this.memberCounts = numbered.map((group) => group.suffixes.length);
    this.#amounts = new Float64Array(numbered.length * classes.length);
    numbered.forEach(({ amounts }, group) => {
      for (const { resourceClass, amount } of amounts) {
        const index = classes.findIndex((one) => one.resourceClass === resourceClass);
        this.#amounts[group * classes.length + index] = amount;
      }
    });
  }

  /** Turns to the tree of this root, in which nothing has been placed yet. */
  begin(root: number, steps: number): void {
    this.budget.renew(steps);
    this.kinds.fill(root);
    const { count, room } = this.kinds;
    if (this.room.length < room.length) this.room = new Float64Array(room.length);
    if (this.serves.length < count) this.serves = new Float64Array(this.kinds.slots.length);
    for (let at = 0; at < count * this.classCount; at += 1) this.room[at] = room[at]!;
    this.serves.fill(0, 0, count);
  }

  /** The amount of a class that one member of the group takes. */
  amountOf(group: number, index: number): number {
    return this.#amounts[group * this.classCount + index]!;
  }

  fits(group: number, provider: number): boolean {
    if (this.kinds.groupFits[provider * this.memberCounts.length + group] === 0) return false;
    for (let index = 0; index < this.classCount; index += 1) {
      if (this.room[provider * this.classCount + index]! < this.amountOf(group, index)) return false;
    }
    return true;
  }

  /** Puts `times` members of a group on a provider, or removes them when `times` is negative. */
  place(group: number, provider: number, times: number): void {
    for (let index = 0; index < this.classCount; index += 1) {
      const at = provider * this.classCount + index;
      this.room[at] = this.room[at]! - times * this.amountOf(group, index);
    }
  }
}
