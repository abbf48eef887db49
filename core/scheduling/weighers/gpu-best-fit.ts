import type { BoundRequest } from "../../candidates/bound/bound-request.ts";
import type { RequestedAmount } from "../../candidates/bound/requested-amount.ts";
import { hasRoom } from "../../candidates/bound/requested-amount.ts";
import type { InventoryColumn } from "../../ledger/inventory-column.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import { resourceClassPattern } from "./resource-class-pattern.ts";
import type { AbsoluteWeigher, HostBatch } from "./weigher.ts";

/** VGPU, PGPU, CUSTOM_GPU_MILLI, CUSTOM_A100_GPU, … The displays of VGPUs (VGPU_DISPLAY_HEAD) are no GPUs. */
export const isGpuClass = resourceClassPattern(/^(?!VGPU_DISPLAY_HEAD$)(.*_)?[PV]?GPU(_|$)/);

/**
 * Keeps GPUs whole and together. For a share of a GPU it prefers the host whose child is left with the least. For whole GPUs, and among
 * equals, it prefers the host that is left with the fewest. A server without GPUs goes to a host without any while there is one, then to
 * the host with the fewest free GPUs.
 */
export const gpuBestFit: AbsoluteWeigher = {
  name: "gpu_best_fit",
  kind: "absolute",
  addTo(batch, weights, offset, multiplier) {
    const wanted = gpusWanted(batch.request);
    if (wanted.length > 0) {
      addRemainders(batch, wanted, { weights, offset, multiplier });
      return;
    }
    const columns = gpuColumns(batch.request.view);
    if (columns.length > 0) addUnwanted(batch, columns, { weights, offset, multiplier });
  },
};

/** The array to which weights are added, and their multiplier. */
interface Sums {
  readonly weights: Float64Array;
  readonly offset: number;
  readonly multiplier: number;
}

/** A requested amount that occurs `times` times, each on one provider. */
interface GpuAmount {
  readonly requested: RequestedAmount;
  readonly times: number;
}

/** Remembered, since one request is weighed for many times, with some hosts at a time. */
const knownWanted = new WeakMap<BoundRequest, readonly GpuAmount[]>();

function gpusWanted(request: BoundRequest): readonly GpuAmount[] {
  const known = knownWanted.get(request);
  if (known) return known;
  const { numbered, unnumbered } = request;
  const groups = unnumbered ? [...numbered, unnumbered] : numbered;
  const wanted = groups.flatMap(({ amounts, suffixes }) =>
    amounts
      .filter((requested) => isGpuClass(requested.resourceClass))
      .map((requested) => ({ requested, times: suffixes.length })),
  );
  knownWanted.set(request, wanted);
  return wanted;
}

/** The columns of all GPU classes of a view. */
export function gpuColumns(view: LedgerView): Readonly<InventoryColumn>[] {
  const columns: Readonly<InventoryColumn>[] = [];
  for (const name of view.resourceClasses()) if (isGpuClass(name)) columns.push(view.column(name)!);
  return columns;
}

/**
 * The weight for a server without GPUs: 0 for a host without GPUs, otherwise between −0.5, when all its GPUs are in use, and −1, when all are
 * free.
 */
function addUnwanted(batch: HostBatch, columns: readonly Readonly<InventoryColumn>[], sums: Sums): void {
  const { weights, offset, multiplier } = sums;
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
    if (capacity > 0) weights[offset + index] = weights[offset + index]! - multiplier * (0.5 + (0.5 * free) / capacity);
  }
}

/** Adds a weight between 0, when nothing of any GPU is left, and −1, when everything is left of each. */
function addRemainders(batch: HostBatch, wanted: readonly GpuAmount[], sums: Sums): void {
  const { weights, offset } = sums;
  const factor = sums.multiplier / (3 * wanted.length);
  const { slots } = batch.request.view;
  for (let index = 0; index < batch.count; index += 1) {
    const root = batch.roots[index]!;
    const descendants = slots.descendants(root);
    let remainder = 0;
    let left = 0;
    for (const { requested, times } of wanted) {
      const { amount, roomDecides } = requested;
      const { free, used } = requested.column;
      let tightest = 1;
      let freeSum = 0;
      let capacity = 0;
      for (let at = -1; at < descendants.length; at += 1) {
        const slot = at < 0 ? root : descendants[at]!;
        const room = free[slot]!;
        if (room < 0) continue;
        const total = room + used[slot]!;
        freeSum += room;
        capacity += total;
        if (room >= amount && (roomDecides || hasRoom(requested, slot)))
          tightest = Math.min(tightest, (room - amount) / total);
      }
      remainder += tightest;
      if (capacity > 0) left += Math.max(0, freeSum - amount * times) / capacity;
    }
    weights[offset + index] = weights[offset + index]! - factor * (2 * remainder + left);
  }
}
