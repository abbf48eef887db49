import type { CompiledRequest, Demand } from "../../candidates/bound/compiled-request.ts";
import type { HostBatch } from "./weigher.ts";

/** The first of these classes that the request asks for. */
export function demandOf(request: CompiledRequest, classes: ReadonlySet<string>): Demand | undefined {
  return request.classes.find((demand) => classes.has(demand.resourceClass));
}

/** Writes how much of the class each host has free: on its root, or on all its other providers together when the root has none. */
export function weighFree(batch: HostBatch, demand: Demand, weights: Float64Array, offset: number): void {
  const { roots, count, request } = batch;
  const { column } = demand;
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
