import type { BoundRequest } from "../../candidates/bound/bound-request.ts";
import type { RequestedAmount } from "../../candidates/bound/requested-amount.ts";
import type { HostBatch } from "./weigher.ts";

/** The first of these classes that the request asks for. */
export function amountOf(request: BoundRequest, classes: ReadonlySet<string>): RequestedAmount | undefined {
  return request.classes.find((requested) => classes.has(requested.resourceClass));
}

/** Writes how much of the class each host has free: on its root, or on all its other providers together when the root has none. */
export function weighFree(batch: HostBatch, requested: RequestedAmount, weights: Float64Array, offset: number): void {
  const { roots, count, request } = batch;
  const { column } = requested;
  const { free } = column;
  for (let index = 0; index < count; index += 1) {
    const root = roots[index]!;
    let sum = free[root]!;
    if (sum < 0 && !column.has(root)) {
      sum = 0;
      for (const slot of request.view.slots.descendants(root)) sum += Math.max(0, free[slot]!);
    }
    weights[offset + index] = sum;
  }
}
