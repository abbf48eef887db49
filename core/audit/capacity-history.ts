/** A row of a cell's ledger that a transaction wrote or removed. Providers and classes are named by the database's own numbers. */
export type HistoryRow =
  | {
      readonly kind: "inventory-put";
      readonly providerId: number;
      readonly classId: number;
      readonly capacity: number;
      readonly used: number;
    }
  | { readonly kind: "inventory-removed"; readonly providerId: number; readonly classId: number }
  | {
      readonly kind: "allocation-put";
      readonly consumer: string;
      readonly providerId: number;
      readonly classId: number;
      readonly amount: number;
    }
  | {
      readonly kind: "allocation-removed";
      readonly consumer: string;
      readonly providerId: number;
      readonly classId: number;
    };

/** A violation of law 1 that a committed transaction caused. */
export interface HistoryBreach {
  readonly what: string;
  readonly providerId: number;
  readonly classId: number;
  readonly proof: string;
}

export const OVER_CAPACITY_MOMENT = "more than the capacity was allocated at one moment";
export const UNEQUAL_MOMENT = "used was not the sum of the allocations at one moment";
export const UNOFFERED_MOMENT = "resources without an inventory were allocated at one moment";

interface Place {
  readonly providerId: number;
  readonly classId: number;
  /** Null when there is no such inventory. */
  inventory: { readonly capacity: number; readonly used: number } | null;
  sum: number;
}

interface State {
  readonly used: number;
  readonly sum: number;
  readonly excess: number;
  readonly difference: number;
  readonly unoffered: boolean;
}

/**
 * Checks law 1 at every committed moment. Replays a cell's inventories and allocations one transaction at a time, and reports the
 * violations that each transaction causes. Cost: one map entry for each allocation, and one check of each inventory that a transaction
 * touches.
 */
export class CapacityHistory {
  readonly #places = new Map<string, Place>();
  /** Amounts by consumer, provider and class. They are kept because a removed row arrives with its key only. */
  readonly #amounts = new Map<string, number>();

  /** Loads the state at the beginning of the history. An audit of the present reports violations that exist by then. */
  load(rows: readonly HistoryRow[]): void {
    this.#places.clear();
    this.#amounts.clear();
    for (const row of rows) this.#apply(row);
  }

  /** Applies all rows of one transaction in their order. Only the end of the transaction is a committed moment. */
  commit(rows: readonly HistoryRow[]): readonly HistoryBreach[] {
    const touched = new Map<Place, State>();
    for (const row of rows) {
      const place = this.#placeOf(row);
      if (!touched.has(place)) touched.set(place, stateOf(place));
      this.#apply(row);
    }
    return [...touched].flatMap(([place, before]) => breachesOf(place, before));
  }

  #apply(row: HistoryRow): void {
    const place = this.#placeOf(row);
    switch (row.kind) {
      case "inventory-put":
        place.inventory = { capacity: row.capacity, used: row.used };
        return;
      case "inventory-removed":
        place.inventory = null;
        return;
      case "allocation-put":
      case "allocation-removed": {
        const key = `${row.consumer} ${row.providerId} ${row.classId}`;
        const amount = row.kind === "allocation-put" ? row.amount : 0;
        place.sum += amount - (this.#amounts.get(key) ?? 0);
        if (row.kind === "allocation-put") this.#amounts.set(key, amount);
        else this.#amounts.delete(key);
        return;
      }
      default:
        row satisfies never;
    }
  }

  #placeOf({ providerId, classId }: HistoryRow): Place {
    const key = `${providerId} ${classId}`;
    let place = this.#places.get(key);
    if (place === undefined) {
      place = { providerId, classId, inventory: null, sum: 0 };
      this.#places.set(key, place);
    }
    return place;
  }
}

function stateOf({ inventory, sum }: Place): State {
  if (inventory === null) return { used: 0, sum, excess: 0, difference: 0, unoffered: sum > 0 };
  const { capacity, used } = inventory;
  return { used, sum, excess: Math.max(used, sum) - capacity, difference: used - sum, unoffered: false };
}

function breachesOf(place: Place, before: State): readonly HistoryBreach[] {
  const { providerId, classId, inventory, sum } = place;
  const now = stateOf(place);
  const breaches: HistoryBreach[] = [];
  const add = (what: string, proof: string): void => void breaches.push({ what, providerId, classId, proof });
  if (now.unoffered && !before.unoffered) add(UNOFFERED_MOMENT, `${sum} allocated, no such inventory`);
  if (inventory === null) return breaches;
  // An inventory may shrink below its use, because its host offers less than before.
  const isTaken = now.used > before.used || sum > before.sum;
  if (now.excess > 0 && now.excess > before.excess && isTaken)
    add(OVER_CAPACITY_MOMENT, `${Math.max(inventory.used, sum)} of ${inventory.capacity}: a claim took it there`);
  if (now.difference !== 0 && now.difference !== before.difference)
    add(UNEQUAL_MOMENT, `used says ${inventory.used}, the allocations add up to ${sum}`);
  return breaches;
}
