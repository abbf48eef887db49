import { type AggregateRecord, ZONE_KEY } from "./aggregate-record.ts";
import type { HostAggregate } from "./host-facts.ts";

const NONE: readonly HostAggregate[] = [];

/** The cloud's aggregates by host, as read at one moment. */
export class AggregateIndex {
  readonly defaultZone: string;
  /** All aggregates in the order of their ids. */
  readonly all: readonly HostAggregate[];
  /** Every key of any aggregate's metadata. */
  readonly keys: ReadonlySet<string>;
  readonly #byHost = new Map<string, readonly HostAggregate[]>();

  constructor(records: readonly AggregateRecord[], defaultZone: string) {
    this.defaultZone = defaultZone;
    const all: HostAggregate[] = [];
    const keys = new Set<string>();
    const lists = new Map<string, HostAggregate[]>();
    for (const { id, uuid, name, metadata, hosts } of records.toSorted((a, b) => a.id - b.id)) {
      const aggregate = { id, uuid, name, metadata: new Map(Object.entries(metadata)) };
      all.push(aggregate);
      for (const key of aggregate.metadata.keys()) keys.add(key);
      for (const host of hosts) {
        const list = lists.get(host);
        if (list) list.push(aggregate);
        else lists.set(host, [aggregate]);
      }
    }
    this.all = all;
    this.keys = keys;
    this.#shareEqualLists(lists);
  }

  /** The host's aggregates in the order of their ids. Hosts in the same aggregates share one list. */
  of(host: string): readonly HostAggregate[] {
    return this.#byHost.get(host) ?? NONE;
  }

  zoneOf(aggregates: readonly HostAggregate[]): string {
    for (const { metadata } of aggregates) {
      const zone = metadata.get(ZONE_KEY);
      if (zone !== undefined) return zone;
    }
    return this.defaultZone;
  }

  #shareEqualLists(lists: ReadonlyMap<string, readonly HostAggregate[]>): void {
    const shared = new Map<string, readonly HostAggregate[]>();
    for (const [host, list] of lists) {
      const key = list.map(({ id }) => id).join();
      const known = shared.get(key) ?? list;
      shared.set(key, known);
      this.#byHost.set(host, known);
    }
  }
}
