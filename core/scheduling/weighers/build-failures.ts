import type { AbsoluteWeigher, HostBatch } from "./weigher.ts";

/** After so many failures in a row a host has lost half of the weigher's multiplier. */
const HALF_AT = 3;

/**
 * Avoids hosts on which builds failed of late by the host's fault (Nova's BuildFailureWeigher, but saturating: one stray failure
 * makes a host less liked, and bans it from nothing).
 */
export function buildFailures(countsOf: (cell: string) => ReadonlyMap<string, number> | undefined): AbsoluteWeigher {
  const penaltyOf = (failures: number): number => failures / (failures + HALF_AT);
  let penalties = new Float64Array(0);

  /** Hosts that failed are fewer than those that are weighed: what each costs is noted by slot, and then looked up. */
  function addNoted(counts: ReadonlyMap<string, number>, batch: HostBatch, out: WeightsOut): void {
    const { slots, hosts } = batch.request.view;
    if (penalties.length < slots.capacity) penalties = new Float64Array(slots.capacity);
    const failed: number[] = [];
    for (const [host, failures] of counts) {
      const slot = hosts.slotOf(host);
      if (slot < 0) continue;
      penalties[slot] = penaltyOf(failures);
      failed.push(slot);
    }
    for (let index = 0; index < batch.count; index += 1) {
      const at = out.offset + index;
      out.weights[at] = out.weights[at]! - out.multiplier * penalties[batch.roots[index]!]!;
    }
    for (const slot of failed) penalties[slot] = 0;
  }

  /** Few hosts are weighed, as when a ranking is kept up: each is asked for by its name. */
  function addOneByOne(counts: ReadonlyMap<string, number>, batch: HostBatch, out: WeightsOut): void {
    const { hosts } = batch.request.view;
    for (let index = 0; index < batch.count; index += 1) {
      const failures = counts.get(hosts.nameOf(batch.roots[index]!) ?? "");
      if (failures === undefined) continue;
      const at = out.offset + index;
      out.weights[at] = out.weights[at]! - out.multiplier * penaltyOf(failures);
    }
  }

  return {
    name: "build_failure",
    kind: "absolute",
    addTo(batch, weights, offset, multiplier) {
      const counts = countsOf(batch.cell);
      if (!counts || counts.size === 0) return;
      (batch.count < counts.size ? addOneByOne : addNoted)(counts, batch, { weights, offset, multiplier });
    },
  };
}

interface WeightsOut {
  readonly weights: Float64Array;
  readonly offset: number;
  readonly multiplier: number;
}
