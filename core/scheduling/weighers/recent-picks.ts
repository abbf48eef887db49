import type { HostPick } from "../host-pick.ts";
import type { AbsoluteWeigher, HostBatch } from "./weigher.ts";

/** When this many schedulers have picked a host at once, it has lost half of the weigher's multiplier. */
const HALF_AT = 2;

/**
 * Avoids hosts that other schedulers have just reported as picked, since their claims may not show in the view yet. The penalty is small,
 * because a guess must not outweigh known facts.
 */
export class RecentPicks implements AbsoluteWeigher {
  readonly name = "recent_picks";
  readonly kind = "absolute";
  #byCell = new Map<string, Map<string, number>>();

  /** Returns the hosts whose picks have changed, since their weights must be computed again. */
  set(picks: readonly HostPick[]): HostPick[] {
    const byCell = new Map<string, Map<string, number>>();
    for (const { cell, host } of picks) {
      const hosts = byCell.get(cell) ?? new Map<string, number>();
      byCell.set(cell, hosts.set(host, 1 + (hosts.get(host) ?? 0)));
    }
    const before = this.#byCell;
    this.#byCell = byCell;
    return [...differing(before, byCell), ...gone(before, byCell)];
  }

  addTo({ cell, request, roots, count }: HostBatch, weights: Float64Array, offset: number, multiplier: number): void {
    const picked = this.#byCell.get(cell);
    if (!picked) return;
    const { hosts } = request.view;
    for (let index = 0; index < count; index += 1) {
      const picks = picked.get(hosts.nameOf(roots[index]!) ?? "");
      if (picks) weights[offset + index] = weights[offset + index]! - (multiplier * picks) / (picks + HALF_AT);
    }
  }
}

type PicksByCell = ReadonlyMap<string, ReadonlyMap<string, number>>;

function* differing(before: PicksByCell, now: PicksByCell): Generator<HostPick> {
  for (const [cell, hosts] of now) {
    for (const [host, picks] of hosts) if (before.get(cell)?.get(host) !== picks) yield { cell, host };
  }
}

function* gone(before: PicksByCell, now: PicksByCell): Generator<HostPick> {
  for (const [cell, hosts] of before) {
    for (const host of hosts.keys()) if (!now.get(cell)?.has(host)) yield { cell, host };
  }
}
