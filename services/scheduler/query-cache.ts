import { type PlacementQueryOutcome, placementQuery } from "../../core/scheduling/placement-query.ts";
import type { Flavor } from "../../proto/gen/berth/shared.ts";

const QUERIES_MAX = 1_000;

/** Flavors are few and requests many: what a flavor asks of the ledger is worked out once. */
export class QueryCache {
  readonly #queries = new Map<string, PlacementQueryOutcome>();

  of(flavor: Flavor): PlacementQueryOutcome {
    const key = JSON.stringify(flavor);
    const known = this.#queries.get(key);
    if (known) return known;
    if (this.#queries.size >= QUERIES_MAX) this.#queries.clear();
    const query = placementQuery(flavor);
    this.#queries.set(key, query);
    return query;
  }
}
