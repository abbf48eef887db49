import type { RunningGuest } from "../core/audit/facts.ts";

export type GuestsByHost = ReadonlyMap<string, readonly RunningGuest[]>;

interface HostedGuest {
  readonly host: string;
  readonly guest: RunningGuest;
}

const NO_GUESTS: readonly RunningGuest[] = [];

/** The guests of a cell's hosts, sorted by the UUIDs of their servers, so that they can be taken in slices. Memory: one entry for each guest. */
export class SortedGuests {
  readonly #sorted: readonly HostedGuest[];
  /** What the latest slice shows: every host, with the guests of the slice. */
  readonly #slice: Map<string, readonly RunningGuest[]>;
  #shown = new Set<string>();
  #next = 0;

  constructor(guests: GuestsByHost) {
    const all = [...guests].flatMap(([host, ofHost]) => ofHost.map((guest) => ({ host, guest })));
    const keyOf = ({ guest }: HostedGuest): string => guest.serverUuid;
    this.#sorted = all.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0));
    this.#slice = new Map(Array.from(guests.keys(), (host) => [host, NO_GUESTS]));
  }

  /** Number of hosts whose guests are known. */
  get hosts(): number {
    return this.#slice.size;
  }

  /**
   * The next guests whose server's UUID is below this one, or all that are left with null, by host. Hosts without such guests have an empty list.
   * The map is valid until the next call.
   */
  take(below: string | null): GuestsByHost {
    for (const host of this.#shown) this.#slice.set(host, NO_GUESTS);
    const from = this.#next;
    let end = from;
    while (end < this.#sorted.length && (below === null || this.#sorted[end]!.guest.serverUuid < below)) end += 1;
    this.#next = end;
    const byHost = Map.groupBy(this.#sorted.slice(from, end), ({ host }) => host);
    for (const [host, there] of byHost)
      this.#slice.set(
        host,
        there.map(({ guest }) => guest),
      );
    this.#shown = new Set(byHost.keys());
    return this.#slice;
  }
}
