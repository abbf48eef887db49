import type { CompiledRequest, Demand } from "../../candidates/compiled-request.ts";
import { hasRoom } from "../../candidates/compiled-request.ts";
import type { InventoryColumn } from "../../ledger/inventory-column.ts";
import type { HostBatch, Weigher } from "./weigher.ts";

/** VGPU, PGPU, CUSTOM_GPU_MILLI, CUSTOM_A100_GPU, … */
const GPU_CLASS = /(^|_)[PV]?GPU(_|$)/;

/**
 * Keeps GPUs whole and together. For a server that wants a share of a GPU: the host with the child that is left with the least;
 * for one that wants whole GPUs, and among equals: the host that is left with the fewest. A server that wants no GPU
 * goes to a host without any while there is one, then to the one with the fewest free.
 */
export const gpuBestFit: Weigher = {
  name: "gpu-best-fit",
  scale: { kind: "absolute" },
  weigh(batch, weights, offset) {
    const columns = gpuColumns(batch.request);
    if (columns.length === 0) return false;
    const wanted = batch.request.numbered.flatMap((group) =>
      group.demands.filter((demand) => GPU_CLASS.test(demand.resourceClass)),
    );
    const onAny = batch.request.unnumbered?.demands.filter((demand) => GPU_CLASS.test(demand.resourceClass)) ?? [];
    const demands = [...wanted, ...onAny];
    if (demands.length === 0) weighUnwanted(batch, columns, weights, offset);
    else weighRemainders(batch, demands, weights, offset);
    return true;
  },
};

function gpuColumns({ view }: CompiledRequest): Readonly<InventoryColumn>[] {
  const columns: Readonly<InventoryColumn>[] = [];
  for (const name of view.resourceClasses()) if (GPU_CLASS.test(name)) columns.push(view.column(name)!);
  return columns;
}

/** 0 without GPUs; with some −0.5, down to −1 when all of them are free. */
function weighUnwanted(
  batch: HostBatch,
  columns: readonly Readonly<InventoryColumn>[],
  weights: Float64Array,
  offset: number,
): void {
  const { slots } = batch.request.view;
  for (let index = 0; index < batch.count; index += 1) {
    const root = batch.roots[index]!;
    const descendants = slots.descendants(root);
    let free = 0;
    let capacity = 0;
    for (const column of columns) {
      for (let at = -1; at < descendants.length; at += 1) {
        const slot = at < 0 ? root : descendants[at]!;
        if (!column.has(slot)) continue;
        free += Math.max(0, column.free[slot]!);
        capacity += column.free[slot]! + column.used[slot]!;
      }
    }
    weights[offset + index] = capacity > 0 ? -0.5 - (0.5 * free) / capacity : 0;
  }
}

/** From 0 (nothing is left, of any GPU) down to −1. */
function weighRemainders(batch: HostBatch, demands: readonly Demand[], weights: Float64Array, offset: number): void {
  const { slots } = batch.request.view;
  for (let index = 0; index < batch.count; index += 1) {
    const root = batch.roots[index]!;
    const descendants = slots.descendants(root);
    let remainder = 0;
    let left = 0;
    for (const demand of demands) {
      const { column, amount } = demand;
      let tightest = 1;
      let free = 0;
      let capacity = 0;
      for (let at = -1; at < descendants.length; at += 1) {
        const slot = at < 0 ? root : descendants[at]!;
        const room = column.free[slot]!;
        if (room < 0) continue;
        const total = room + column.used[slot]!;
        free += room;
        capacity += total;
        if (total > 0 && hasRoom(demand, slot)) tightest = Math.min(tightest, (room - amount) / total);
      }
      remainder += tightest;
      if (capacity > 0) left += Math.max(0, free - amount) / capacity;
    }
    weights[offset + index] = -(2 * remainder + left) / (3 * demands.length);
  }
}
