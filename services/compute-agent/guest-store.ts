import type { Clock } from "../../runtime/clock.ts";
import { type GuestEntry, GuestTable } from "./guest-table.ts";
import type { ComparedWith, GuestName, Journal, JournalRecord } from "./journal.ts";

/**
 * Failure reports and tombstones are kept for this long after this process wrote or read them, which is well past the arrival of any late
 * message. The wall clock is not used, because it may jump.
 */
const FORGET_MS = 3_600_000;
/** Limits how many failure reports and how many tombstones are kept for a host. */
const KEEP_MAX = 2_000;
/**
 * A journal is rewritten when it has more records than this and `COMPACT_FACTOR` times more than it needs. One that could not be rewritten, because its disk is full,
 * is rewritten when it has twice its length.
 */
const COMPACT_RECORDS_MIN = 20_000;
const COMPACT_FACTOR = 4;

/** Why a buried guest is neither built nor ordered to do anything. */
export const BURIED = "the server was destroyed here before";

type GuestRecord = Exclude<JournalRecord, { readonly kind: "compared" }>;

/**
 * The agent's memory: a table to read from, and a journal that survives a crash. A record is in the table at once, and is durable when
 * `record` resolves. `isSettling` is true for a guest whose latest record is not yet durable, so that it is not reported.
 */
export class GuestStore {
  readonly #journal: Journal;
  readonly #clock: Clock;
  readonly #table = new GuestTable();
  readonly #settling = new Map<string, number>();
  readonly #heard = new Map<string, number>();
  /** The journal is rewritten when it is longer. */
  #lengthMax = COMPACT_RECORDS_MIN;

  private constructor(journal: Journal, clock: Clock) {
    this.#journal = journal;
    this.#clock = clock;
  }

  /** Reads the journal and rewrites it without the records that are no longer needed. */
  static async open(journal: Journal, clock: Clock): Promise<GuestStore> {
    const store = new GuestStore(journal, clock);
    for (const record of await journal.load()) store.#table.apply(record, clock.monotonic());
    await store.#compact();
    return store;
  }

  /** The database with which the host was last compared, with the incarnation "" when there was none. */
  comparedWith(host: string): ComparedWith {
    return this.#table.comparedWith(host);
  }

  /** Records that the host was compared with this database. One whose cell is not named is of the cell that is known. Resolves when that is durable. */
  async compared(host: string, { incarnation, cell }: ComparedWith): Promise<void> {
    const before = this.comparedWith(host);
    if (before.incarnation === incarnation && (cell ?? before.cell) === before.cell) return;
    const record = { kind: "compared", host, incarnation, cell: cell ?? before.cell } as const;
    this.#table.apply(record, this.#clock.monotonic());
    await this.#journal.append(record);
  }

  async record(record: GuestRecord): Promise<void> {
    this.#table.apply(record, this.#clock.monotonic());
    const key = keyOf(record);
    this.#settling.set(key, (this.#settling.get(key) ?? 0) + 1);
    await this.#journal.append(record);
    const left = (this.#settling.get(key) ?? 1) - 1;
    if (left === 0) this.#settling.delete(key);
    else this.#settling.set(key, left);
    if (this.#journal.length > this.#lengthMax) {
      this.#lengthMax = Number.MAX_SAFE_INTEGER;
      await this.#compact();
    }
  }

  isSettling(name: GuestName): boolean {
    return this.#settling.has(keyOf(name));
  }

  guest(host: string, attemptId: string): GuestEntry | undefined {
    return this.#table.guest(host, attemptId);
  }

  /** Revision of the latest order that the guest obeyed, or 0 when there was none. */
  revisionOf(host: string, attemptId: string): number {
    const entry = this.#table.guest(host, attemptId);
    return entry === undefined || entry.state === "failed" ? 0 : (entry.revision ?? 0);
  }

  /** Notes that the guest was given an order of this revision. */
  noteHeard(name: GuestName, revision: number): void {
    const key = keyOf(name);
    this.#heard.set(key, Math.max(revision, this.#heard.get(key) ?? 0));
  }

  /** The highest revision of any order that the guest was given since the agent started, including failed orders, or 0 when there was none. */
  heardBy(name: GuestName): number {
    return this.#heard.get(keyOf(name)) ?? 0;
  }

  /** Forgets the revisions of a guest that is gone. */
  forgetHeard(name: GuestName): void {
    this.#heard.delete(keyOf(name));
  }

  /** The guests that exist on the host, without failed attempts. */
  guestsOf(host: string): GuestEntry[] {
    return this.#table.guestsOf(host);
  }

  all(): GuestEntry[] {
    return this.#table.all();
  }

  isBuried(name: GuestName): boolean {
    return this.#table.isBuried(name);
  }

  close(): Promise<void> {
    return this.#journal.close();
  }

  async #compact(): Promise<void> {
    let needed = 0;
    await this.#journal.compact(() => {
      this.#table.forget(this.#clock.monotonic() - FORGET_MS, KEEP_MAX);
      const records = this.#table.records();
      needed = records.length;
      return records;
    });
    this.#lengthMax = Math.max(COMPACT_RECORDS_MIN, needed * COMPACT_FACTOR, this.#journal.length * 2);
  }
}

const keyOf = (name: GuestName): string => `${name.host} ${name.attemptId}`;
