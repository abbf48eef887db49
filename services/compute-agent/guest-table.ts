import type { StopCause } from "../../core/agent/stop-cause.ts";
import type { AttemptFailure } from "../../core/tasks/build-task.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { ComparedWith, GuestName, GuestState, JournalRecord } from "./journal.ts";

/** A guest, or the failure report of an attempt whose guest is gone. */
export type GuestEntry =
  | (GuestName & {
      readonly state: GuestState;
      readonly atMs: number;
      readonly revision?: number | undefined;
      readonly orderId?: string;
      readonly listensAt?: string;
      readonly cause?: StopCause;
      readonly volumes?: readonly ServerVolume[];
      readonly isFound?: boolean;
    })
  | (GuestName & {
      readonly state: "failed";
      readonly failure: AttemptFailure;
      readonly reason: string;
      readonly atMs: number;
    });

type Tombstone = GuestName & { readonly atMs: number };

interface Aging<Entry> {
  readonly entry: Entry;
  /** When the entry was applied, by the clock of `apply`. */
  readonly sinceMs: number;
}

/**
 * The guests of an agent's hosts, folded from its journal. Failure reports and tombstones only have to outlive messages that may still be
 * in flight, so they expire, and only a limited number of each is kept.
 */
export class GuestTable {
  /** The guests of each host, by attempt id. */
  readonly #guests = new Map<string, Map<string, Aging<GuestEntry>>>();
  /** The tombstones of each host, by attempt id, or by server for all of its attempts. */
  readonly #tombstones = new Map<string, Map<string, Aging<Tombstone>>>();
  readonly #compared = new Map<string, ComparedWith>();

  /** `nowMs` is read from a monotonic clock, which may have started with this process. */
  apply(record: JournalRecord, nowMs: number): void {
    switch (record.kind) {
      case "guest":
      case "failed": {
        const { kind: _, ...entry } = record;
        const guest = (
          record.kind === "failed" ? { ...entry, state: "failed" } : { ...this.#keptOf(record), ...entry }
        ) as GuestEntry;
        childOf(this.#guests, record.host).set(record.attemptId, { entry: guest, sinceMs: nowMs });
        return;
      }
      case "gone":
        this.#guests.get(record.host)?.delete(record.attemptId);
        return;
      case "tombstone": {
        const { kind: _, ...tombstone } = record;
        const ofHost = childOf(this.#tombstones, record.host);
        const key = tombstoneKey(record);
        ofHost.delete(key);
        ofHost.set(key, { entry: tombstone, sinceMs: nowMs });
        return;
      }
      case "compared":
        this.#compared.set(record.host, { incarnation: record.incarnation, cell: record.cell });
        return;
      default:
        record satisfies never;
    }
  }

  /**
   * What stays of earlier records of the guest: its volumes, and that it was found, until it has obeyed an order. The first start of a build is an order of revision 0, so that a revision of any
   * value is that of an order.
   */
  #keptOf({ host, attemptId, revision }: Extract<JournalRecord, { readonly kind: "guest" }>) {
    const before = this.guest(host, attemptId);
    if (before === undefined || before.state === "failed") return {};
    const { volumes, isFound = false } = before;
    return { ...(volumes && { volumes }), ...(isFound && revision === undefined && { isFound }) };
  }

  /** The database with which the host was last compared, with the incarnation "" when there was none. */
  comparedWith(host: string): ComparedWith {
    return this.#compared.get(host) ?? { incarnation: "" };
  }

  guest(host: string, attemptId: string): GuestEntry | undefined {
    return this.#guests.get(host)?.get(attemptId)?.entry;
  }

  /** The guests that exist on the host, without failed attempts. */
  guestsOf(host: string): GuestEntry[] {
    return entriesOf(this.#guests.get(host)).filter((entry) => entry.state !== "failed");
  }

  all(): GuestEntry[] {
    return [...this.#guests.values()].flatMap(entriesOf);
  }

  /** Whether the attempt, or all of its server, was destroyed here. */
  isBuried(name: GuestName): boolean {
    const ofHost = this.#tombstones.get(name.host);
    if (ofHost === undefined) return false;
    return ofHost.has(name.serverUuid) || ofHost.get(tombstoneKey(name))?.entry.serverUuid === name.serverUuid;
  }

  /** Deletes failure reports and tombstones that were applied before `beforeMs`, and the oldest ones beyond `keepMax` for each host. */
  forget(beforeMs: number, keepMax: number): void {
    for (const guests of this.#guests.values()) {
      const failed = [...guests.values()].filter(({ entry }) => entry.state === "failed");
      for (const entry of spent(failed, beforeMs, keepMax)) guests.delete(entry.attemptId);
    }
    for (const tombstones of this.#tombstones.values()) {
      for (const entry of spent([...tombstones.values()], beforeMs, keepMax)) {
        tombstones.delete(tombstoneKey(entry));
      }
    }
  }

  /** The shortest journal from which this table can be rebuilt. */
  records(): JournalRecord[] {
    const tombstones = [...this.#tombstones.values()].flatMap(entriesOf);
    return [
      ...Array.from(this.#compared, ([host, database]): JournalRecord => ({ kind: "compared", host, ...database })),
      ...tombstones.map((entry): JournalRecord => ({ kind: "tombstone", ...entry })),
      ...this.all().map((entry): JournalRecord => {
        if (entry.state !== "failed") return { kind: "guest", ...entry };
        const { state: _, ...word } = entry;
        return { kind: "failed", ...word };
      }),
    ];
  }
}

/**
 * An attempt id names its task, so no two servers have the same one. The key is one of the two ids and not both together, because to look
 * up a string that was just put together costs several times as much.
 */
const tombstoneKey = ({ serverUuid, attemptId }: GuestName): string => (attemptId === "" ? serverUuid : attemptId);

function entriesOf<Entry>(aging: ReadonlyMap<string, Aging<Entry>> | undefined): Entry[] {
  return Array.from(aging?.values() ?? [], ({ entry }) => entry);
}

/** Entries that are too old, and the oldest ones beyond `keepMax`. The input is in the order of arrival. */
function spent<Entry>(aging: readonly Aging<Entry>[], beforeMs: number, keepMax: number): Entry[] {
  return aging
    .filter(({ sinceMs }, index) => sinceMs < beforeMs || index < aging.length - keepMax)
    .map(({ entry }) => entry);
}

function childOf<Value>(map: Map<string, Map<string, Value>>, key: string): Map<string, Value> {
  let child = map.get(key);
  if (child === undefined) {
    child = new Map();
    map.set(key, child);
  }
  return child;
}
