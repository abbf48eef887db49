import type { RequestedAmount } from "../../candidates/bound/requested-amount.ts";
import type { AbsoluteWeigher } from "./weigher.ts";
import type { WeigherSettings } from "./weigher-settings.ts";

/**
 * Prefers the host that is left with the least of the requested classes, in the classes of the setting or in all of them. Its weight
 * goes from 0 (nothing is left of any class) down to −1 (everything is left of each).
 */
export function bestFit({ bestFitClasses }: WeigherSettings): AbsoluteWeigher {
  const classes = new Set(bestFitClasses);
  return {
    name: "best_fit",
    kind: "absolute",
    addTo({ request, roots, count }, weights, offset, multiplier) {
      const amounts =
        classes.size === 0
          ? request.classes
          : request.classes.filter(({ resourceClass }) => classes.has(resourceClass));
      const factor = multiplier / amounts.length;
      const { slots } = request.view;
      for (const requested of amounts) {
        for (let index = 0; index < count; index += 1) {
          const root = roots[index]!;
          const slotsOfTree = requested.column.has(root) ? null : slots.descendants(root);
          const left = slotsOfTree ? leftTogether(requested, slotsOfTree) : leftOn(requested, root);
          weights[offset + index] = weights[offset + index]! - factor * left;
        }
      }
    },
  };
}

function leftOn({ amount, column: { free, used } }: RequestedAmount, slot: number): number {
  const capacity = free[slot]! + used[slot]!;
  return capacity > 0 ? Math.max(0, free[slot]! - amount) / capacity : 0;
}

function leftTogether({ amount, column }: RequestedAmount, slots: readonly number[]): number {
  let free = 0;
  let capacity = 0;
  for (const slot of slots) {
    if (!column.has(slot)) continue;
    free += Math.max(0, column.free[slot]!);
    capacity += column.free[slot]! + column.used[slot]!;
  }
  return capacity > 0 ? Math.max(0, free - amount) / capacity : 0;
}
