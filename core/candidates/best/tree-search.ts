import type { ProviderUuid, ResourceClass } from "../../ledger/ids.ts";
import type { AllocationItem } from "../../ledger/model.ts";
import { type BoundRequest, haveTogether } from "../bound/bound-request.ts";
import { GroupIsolator } from "./group-isolator.ts";
import { GroupPacker } from "./group-packer.ts";
import { GroupPlacement, type GroupPlacer } from "./group-placement.ts";
import { hasGroupRules, keepsGroupRules } from "./group-rules.ts";

/** One way to serve a request from one tree. The caller may keep it, since it is never changed. */
export interface Assignment {
  /** Slot of the view. */
  readonly root: number;
  /** Each pair of provider and class occurs once. */
  readonly items: AllocationItem[];
  /** The slots of the providers that serve each group. The unnumbered group has several when it is spread. */
  readonly mappings: readonly { readonly suffix: string; readonly slots: readonly number[] }[];
}

/** A flat tree that passed the scan can serve an unnumbered group in exactly one way. */
export function assignmentOnRoot(request: BoundRequest, root: number): Assignment {
  const amounts = request.unnumbered?.amounts ?? [];
  const provider = request.view.slots.uuid(root);
  return {
    root,
    items: amounts.map(({ resourceClass, amount }) => ({ provider, resourceClass, amount })),
    mappings: request.unnumbered ? [{ suffix: "", slots: [root] }] : [],
  };
}

/** Maximum number of fruitless searches that are remembered for one request. */
const IN_VAIN_MAX = 256;

/**
 * Finds every way to serve the request from one tree. Equivalent providers are interchangeable, and so are equivalent groups. If ways
 * differ only in which equivalent providers or groups they use, only one of them is found. The search ends early when the budget is
 * spent. A way that breaks a rule between groups is dropped only when it is complete, and it costs budget too.
 *
 * The unnumbered group's classes are placed first, each on one provider. Then the numbered groups are placed by their policy.
 *
 * One object searches one tree after the other and keeps its arrays, so a tree costs only the ways that are requested. A tree may be left
 * before its end.
 */
export class TreeSearch {
  readonly #request: BoundRequest;
  readonly #placement: GroupPlacement;
  /** Null when there are no numbered groups. */
  readonly #numbered: GroupPlacer | null;
  readonly #hasRules: boolean;
  /** By class of the unnumbered group: its column in the room, and the provider that serves it, or -1 when none has been tried. */
  readonly #classOf: readonly number[];
  readonly #chosen: number[];
  /** Trees that were searched without a result, by all properties that the search uses. The value is true when that search gave up. */
  readonly #inVain = new Map<string, boolean>();
  #root = 0;
  #stage: "new" | "flat" | "unnumbered" | "numbered" | "ended" = "ended";

  constructor(request: BoundRequest) {
    const { unnumbered, numbered, classes, isolate } = request;
    this.#request = request;
    this.#placement = new GroupPlacement(request);
    const Placer = isolate ? GroupIsolator : GroupPacker;
    this.#numbered = numbered.length > 0 ? new Placer(this.#placement) : null;
    this.#hasRules = hasGroupRules(request.request);
    const amounts = unnumbered?.amounts ?? [];
    this.#classOf = amounts.map((requested) =>
      classes.findIndex(({ resourceClass }) => resourceClass === requested.resourceClass),
    );
    this.#chosen = amounts.map(() => -1);
  }

  /** Turns to a tree that passed the scan. The view must not change until its last way has been requested. */
  begin(root: number, steps: number): this {
    this.#root = root;
    const isFlat = this.#numbered === null && this.#request.view.slots.descendants(root).length === 0;
    this.#stage = isFlat ? "flat" : "new";
    if (isFlat) this.#placement.budget.renew(steps);
    else this.#placement.begin(root, steps);
    return this;
  }

  /** True when the search left the tree because its steps were spent. The tree may then have more ways than were found. */
  get gaveUp(): boolean {
    return this.#placement.budget.spent;
  }

  /** Whether the unsuccessful search of an identical tree gave up; null when no such search is remembered. */
  knownInVain(): boolean | null {
    if (this.#inVain.size === 0 || this.#stage !== "new") return null;
    return this.#inVain.get(this.#likeness()) ?? null;
  }

  /** Records that the search of the tree found nothing, with all steps that a tree may have. Call it before the next tree is begun. */
  rememberInVain(gaveUp: boolean): void {
    // Rules between groups depend on a provider's place in the tree, which the likeness does not contain.
    if (this.#hasRules) return;
    if (this.#inVain.size >= IN_VAIN_MAX) this.#inVain.clear();
    this.#inVain.set(this.#likeness(), gaveUp);
  }

  /** A text of everything that decides how the search of a tree proceeds. */
  #likeness(): string {
    const { kinds, classCount, memberCounts } = this.#placement;
    const { count } = kinds;
    const { slots } = this.#request.view;
    const together = this.#request.unnumbered?.togetherSets != null;
    const traitSets = together ? Array.from(kinds.slots.subarray(0, count), (slot) => slots.traitSet[slot]!) : [];
    return [
      kinds.kind.subarray(0, count),
      kinds.room.subarray(0, count * classCount),
      kinds.groupFits.subarray(0, count * memberCounts.length),
      kinds.amountFits.subarray(0, count * this.#chosen.length),
      traitSets,
    ].join(";");
  }

  /** Steps that this tree has taken so far. */
  get steps(): number {
    return this.#placement.budget.taken;
  }

  /** The cost, in steps, of beginning this tree or comparing it with others. */
  get size(): number {
    const { kinds, memberCounts, classCount } = this.#placement;
    return this.#stage === "flat" ? 0 : kinds.count * (memberCounts.length + classCount);
  }

  /** The next way, or null when none is left or the budget is spent. */
  next(): Assignment | null {
    if (this.#stage === "flat") {
      this.#stage = "ended";
      return assignmentOnRoot(this.#request, this.#root);
    }
    while (this.#placeNext()) {
      const assignment = this.#assignment();
      if (!this.#hasRules) return assignment;
      if (keepsGroupRules(this.#request.request, assignment, this.#request.view.slots.parent)) return assignment;
    }
    return null;
  }

  /** Advances the arrays to the next way; false when there is none. */
  #placeNext(): boolean {
    while (this.#stage !== "ended") {
      if (this.#stage === "numbered" && this.#numbered?.next()) return true;
      if (!this.#placeUnnumbered()) break;
      if (!this.#haveTogether()) continue;
      if (this.#numbered === null) return true;
      if (this.#placement.kinds.count === 0) break;
      this.#numbered.begin();
      this.#stage = "numbered";
    }
    this.#stage = "ended";
    return false;
  }

  /**
   * Places the unnumbered group's classes in the next way: it first tries another provider for the last class, then for those before it.
   */
  #placeUnnumbered(): boolean {
    const { budget } = this.#placement;
    const total = this.#chosen.length;
    let index = total - 1;
    if (this.#stage === "new") {
      if (!budget.step()) return false;
      if (total > 0) this.#chosen[0] = -1;
      index = 0;
    }
    this.#stage = "unnumbered";
    while (index >= 0 && index < total) {
      if (!this.#moveOn(index)) {
        index -= 1;
        continue;
      }
      if (!budget.step()) return false;
      index += 1;
      if (index < total) this.#chosen[index] = -1;
    }
    return index === total;
  }

  /**
   * Moves a class from its provider to the next one that can serve it. Returns false when there is none; the class is then on no provider.
   */
  #moveOn(index: number): boolean {
    const { kinds, room, serves, classCount } = this.#placement;
    const total = this.#chosen.length;
    const { amount } = this.#request.unnumbered!.amounts[index]!;
    const column = this.#classOf[index]!;
    const bit = 2 ** index;
    const partner = this.#request.unnumbered!.partners?.[index] ?? -1;
    let provider = this.#chosen[index]!;
    if (provider >= 0) {
      room[provider * classCount + column] = room[provider * classCount + column]! + amount;
      serves[provider] = serves[provider]! - bit;
    }
    for (provider += 1; provider < kinds.count; provider += 1) {
      const at = provider * classCount + column;
      if (kinds.amountFits[provider * total + index] === 0 || room[at]! < amount) continue;
      if (partner >= 0 && this.#chosen[partner] !== provider) continue;
      const before = provider - 1;
      if (before >= 0 && kinds.kind[before] === kinds.kind[provider] && serves[before] === serves[provider]) continue;
      room[at] = room[at]! - amount;
      serves[provider] = serves[provider]! + bit;
      this.#chosen[index] = provider;
      return true;
    }
    this.#chosen[index] = -1;
    return false;
  }

  #haveTogether(): boolean {
    const { unnumbered, view } = this.#request;
    if (!unnumbered || unnumbered.togetherSets === null) return true;
    const { slots } = this.#placement.kinds;
    return haveTogether(
      view,
      unnumbered,
      this.#chosen.map((provider) => view.slots.traitSet[slots[provider]!]!),
    );
  }

  #assignment(): Assignment {
    const { view, unnumbered, numbered } = this.#request;
    const { slots, count } = this.#placement.kinds;
    const items: Changing<AllocationItem>[] = [];
    const mappings: { suffix: string; slots: number[] }[] = [];
    if (unnumbered) {
      const serving: number[] = [];
      for (let index = 0; index < this.#chosen.length; index += 1) {
        const slot = slots[this.#chosen[index]!]!;
        const { resourceClass, amount } = unnumbered.amounts[index]!;
        addItem(items, view.slots.uuid(slot), resourceClass, amount);
        if (!serving.includes(slot)) serving.push(slot);
      }
      mappings.push({ suffix: "", slots: serving });
    }
    for (let group = 0; group < numbered.length; group += 1) {
      const { amounts, suffixes } = numbered[group]!;
      let next = 0;
      for (let provider = 0; provider < count; provider += 1) {
        const slot = slots[provider]!;
        const uuid = view.slots.uuid(slot);
        for (let times = this.#numbered!.counts[provider * numbered.length + group]!; times > 0; times -= 1) {
          for (const { resourceClass, amount } of amounts) addItem(items, uuid, resourceClass, amount);
          mappings.push({ suffix: suffixes[next]!, slots: [slot] });
          next += 1;
        }
      }
    }
    return { root: this.#root, items, mappings };
  }
}

type Changing<Value> = { -readonly [Key in keyof Value]: Value[Key] };

/**
 * Keeps the items of one provider together, in the order in which the providers came to serve. There are so few items that a scan costs
 * less than a map.
 */
function addItem(
  items: Changing<AllocationItem>[],
  provider: ProviderUuid,
  resourceClass: ResourceClass,
  amount: number,
): void {
  let behind = -1;
  for (let index = items.length - 1; index >= 0; index -= 1) {
    const item = items[index]!;
    if (item.provider !== provider) continue;
    if (item.resourceClass === resourceClass) {
      item.amount += amount;
      return;
    }
    behind = Math.max(behind, index);
  }
  const item = { provider, resourceClass, amount };
  if (behind < 0) items.push(item);
  else items.splice(behind + 1, 0, item);
}

const kept = new WeakMap<BoundRequest, TreeSearch>();

/** Begins a search of this tree with an object that is kept with the request. The caller must be done with it before the next call. */
export function searchTree(request: BoundRequest, root: number, steps: number): TreeSearch {
  let search = kept.get(request);
  if (!search) {
    search = new TreeSearch(request);
    kept.set(request, search);
  }
  return search.begin(root, steps);
}
