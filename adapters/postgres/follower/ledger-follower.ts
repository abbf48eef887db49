import type { RowChange } from "../../../core/ledger/row-change.ts";
import { ViewError, type ViewSource } from "../../../core/stores/cell/view-source.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import { FollowSession, type SessionHandlers } from "./follow-session.ts";
import type { Lsn } from "./lsn.ts";

/** The part of the view that its follower needs. */
export interface FollowedView {
  /** Applies the rows of a transaction, or a part of them. */
  applyAll(changes: Iterable<RowChange>): void;
  /** Begins a new state beside the present one, which readers see until the new one is shown. */
  beginLoad(): LoadingView;
}

/** The new state of a view while it is being loaded. It is dropped when the load fails. */
export interface LoadingView {
  applyAll(changes: Iterable<RowChange>): void;
  /** Replaces what the view shows, at once. Called at most once, and last. */
  show(): void;
}

export interface FollowerEvents {
  loaded(cell: string, figures: { readonly rows: number; readonly tookMs: number }): void;
  lost(cell: string, error: Error, retryInMs: number): void;
  /** These transactions, described for people, hold up a load. Called every few seconds as long as that lasts. */
  waiting?(cell: string, holders: readonly string[]): void;
  /** A handler of `onApplied` threw this. The view follows all the same, and the other handlers are called. */
  handlerFailed?(cell: string, error: unknown): void;
}

export interface FollowerStats {
  readonly ready: boolean;
  /** Milliseconds from the commit of the last transaction of the database to its end here, by the clocks of two machines. Null before the first. */
  readonly lagMs: number | null;
  /** The number of transactions that changed rows of the view. */
  readonly transactions: number;
  readonly rows: number;
  /** The number of loads so far. Each one after the first means that a connection was lost. */
  readonly loads: number;
}

interface Waiter {
  /** The position that the view must reach. Null until the database was asked, or asked again. */
  target: Lsn | null;
  /** The position of the view at the call. Null when it followed nothing then, or has been loaded again since. */
  shownAtCall: Lsn | null;
  /** When the question was sent. A view that reaches the position shows everything that was committed before. */
  askedAt: number;
  readonly resolve: (hadBeenShown: boolean) => void;
  readonly reject: (error: ViewError) => void;
  timer: Timer;
}

const BEAT_MS = 1_000;
/** After this many beats without a message from the server the connection counts as lost. */
const SILENT_BEATS_MAX = 10;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5_000;
/** While a caller waits: how often the server is asked for its position, and after how many of these questions the log is flushed. */
const HURRY_MS = 20;
const HURRIES_A_PUSH = 3;
/**
 * How much longer a caller waits after its deadline. A process that was busy until then, for example with a long search, has not read yet what
 * the database has sent meanwhile.
 */
const LAST_LOOK_MS = 100;

/**
 * Keeps a ledger view equal to one cell's database, by logical replication.
 * Modes: **idle** (until `start`) → **loading** (a session opens: slot, snapshot, load) → **following** (ready) → after any failure
 * **waiting** (backs off for 0.1 to 5 s; the view keeps its last state, and `ready` is false) → loading again. `close` leads from each mode
 * to **closed**, which is final.
 */
export class LedgerFollower implements ViewSource {
  readonly cell: string;
  readonly #databaseUrl: string;
  readonly #view: FollowedView;
  readonly #servers: boolean;
  readonly #clock: Clock;
  readonly #events: FollowerEvents;
  readonly #appliedHandlers = new Set<(xid: number) => void>();
  readonly #waiters = new Set<Waiter>();
  #session: FollowSession | null = null;
  #opening: Promise<void> = Promise.resolve();
  readonly #closing = new AbortController();
  #mode: "idle" | "loading" | "following" | "waiting" | "closed" = "idle";
  #asking = false;
  #hurry: Timer | null = null;
  #hurries = 0;
  #beat: Timer | null = null;
  #silentBeats = 0;
  #retry: Timer | null = null;
  #retryMs = RETRY_MS_MIN;
  #transactions = 0;
  #rows = 0;
  #loads = 0;
  #lagMs: number | null = null;
  /** Why the view does not follow its cell, for people. Null while it does. */
  #obstacle: string | null = "it is being loaded";
  /** The view shows everything that was committed before this moment of the monotonic clock. */
  #seenAt = Number.NEGATIVE_INFINITY;

  constructor(options: {
    readonly cell: string;
    readonly databaseUrl: string;
    readonly view: FollowedView;
    /** Whether the cell's servers and their moves are followed, too. */
    readonly servers?: boolean;
    readonly clock: Clock;
    readonly events: FollowerEvents;
  }) {
    this.cell = options.cell;
    this.#databaseUrl = options.databaseUrl;
    this.#view = options.view;
    this.#servers = options.servers ?? false;
    this.#clock = options.clock;
    this.#events = options.events;
  }

  get ready(): boolean {
    return this.#mode === "following";
  }

  /** Why the view does not follow its cell, for people; null while it does. */
  get obstacle(): string | null {
    return this.#obstacle;
  }

  get lagMs(): number | null {
    return this.#lagMs;
  }

  get stats(): FollowerStats {
    return {
      ready: this.ready,
      lagMs: this.#lagMs,
      transactions: this.#transactions,
      rows: this.#rows,
      loads: this.#loads,
    };
  }

  /** Begins to load, and keeps trying until it is closed. `waitUntilSeen` resolves when the view is loaded. */
  start(): void {
    if (this.#mode === "idle") this.#load();
  }

  onApplied(handler: (xid: number) => void): () => void {
    this.#appliedHandlers.add(handler);
    return () => this.#appliedHandlers.delete(handler);
  }

  /**
   * Also waits for a load, whether it is the first one or follows a lost connection. A caller that accepts a view as old as the present one
   * is answered without asking the database, even while the database is away.
   */
  waitUntilSeen(deadlineMs: number, staleMs = 0): Promise<boolean> {
    if (this.#mode === "closed") return Promise.reject(this.#closedError());
    if (staleMs > 0 && this.#clock.monotonic() - this.#seenAt <= staleMs) return Promise.resolve(true);
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiters.delete(waiter);
        const text = `the view of cell ${this.cell} did not catch up within ${deadlineMs} ms`;
        reject(new ViewError("behind", this.cell, text));
      };
      const timer = this.#clock.setTimer(deadlineMs, () => {
        waiter.timer = this.#clock.setTimer(LAST_LOOK_MS, giveUp);
      });
      const shownAtCall = this.#session?.position ?? null;
      const waiter: Waiter = { target: null, shownAtCall, askedAt: Number.NEGATIVE_INFINITY, resolve, reject, timer };
      this.#waiters.add(waiter);
      void this.#ask();
    });
  }

  /** How many bytes of log the view is behind the database at this moment. Null while it follows nothing. Cost: one round trip. */
  async measureLagBytes(): Promise<number | null> {
    const session = this.#session;
    if (session === null) return null;
    return Math.max(0, (await session.askPosition()) - session.position);
  }

  /** Stops for good and frees the slot. Waiting calls are rejected. Repeatable. */
  async close(): Promise<void> {
    this.#mode = "closed";
    for (const timer of [this.#hurry, this.#beat, this.#retry]) timer?.cancel();
    for (const waiter of this.#waiters) {
      waiter.timer.cancel();
      waiter.reject(this.#closedError());
    }
    this.#waiters.clear();
    this.#closing.abort();
    await this.#opening;
    await this.#session?.close();
    this.#session = null;
  }

  #closedError(): ViewError {
    return new ViewError("closed", this.cell, `the view of cell ${this.cell} is closed`);
  }

  // --- sessions ------------------------------------------------------------------------------------------------------

  #load(): void {
    this.#mode = "loading";
    const startedAt = this.#clock.monotonic();
    let rows = 0;
    const loading = this.#view.beginLoad();
    // A session that is lost while it opens may still be closing, so no new session starts before its opening has ended.
    let opened = false;
    let lostEarly: Error | null = null;
    const handlers: SessionHandlers = {
      servers: this.#servers,
      onWaiting: (holders) => {
        this.#obstacle = `it cannot load before other transactions have ended: ${holders.join("; ")}`;
        this.#events.waiting?.(this.cell, holders);
      },
      onLoading: (changes) => {
        loading.applyAll(changes);
        rows += changes.length;
      },
      onLoaded: () => {
        loading.show();
        this.#rows += rows;
      },
      onChanges: (changes) => this.#apply(changes),
      onReached: (committedAtMs) => {
        this.#lagMs = Math.max(0, this.#clock.now() - committedAtMs);
      },
      onCommitted: (xid) => this.#committed(xid),
      onPosition: () => this.#settle(),
      onLost: (error) => {
        if (opened) this.#lost(error);
        else lostEarly ??= error;
      },
    };
    this.#opening = FollowSession.open(this.#databaseUrl, handlers, this.#closing.signal).then(
      (session) => {
        opened = true;
        this.#session = session;
        if (lostEarly !== null) this.#lost(lostEarly);
        else this.#opened({ rows, tookMs: this.#clock.monotonic() - startedAt });
      },
      (error: Error) => this.#backOff(error),
    );
  }

  #opened(figures: { readonly rows: number; readonly tookMs: number }): void {
    if (this.#mode === "closed") return;
    this.#mode = "following";
    this.#obstacle = null;
    this.#loads += 1;
    this.#retryMs = RETRY_MS_MIN;
    this.#silentBeats = 0;
    this.#events.loaded(this.cell, figures);
    this.#scheduleBeat();
    void this.#ask();
  }

  #lost(error: Error): void {
    this.#drop();
    this.#backOff(error);
  }

  #drop(): void {
    const session = this.#session;
    this.#session = null;
    this.#beat?.cancel();
    // A position of the next session may be unrelated to this one's (the database may have been restored), so the database is asked again.
    for (const waiter of this.#waiters) waiter.target = waiter.shownAtCall = null;
    if (session !== null) void session.close();
  }

  #backOff(error: Error): void {
    if (this.#mode === "closed" || this.#mode === "waiting") return;
    this.#mode = "waiting";
    this.#obstacle = `it was lost: ${error.message}`;
    // The delay is random, since a restarted database meets all of its followers at once.
    const retryInMs = Math.round(this.#retryMs * (0.5 + Math.random() / 2));
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS_MAX);
    this.#events.lost(this.cell, error, retryInMs);
    this.#retry = this.#clock.setTimer(retryInMs, () => this.#load());
  }

  #scheduleBeat(): void {
    this.#beat = this.#clock.setTimer(BEAT_MS, () => {
      const session = this.#session;
      if (session === null) return;
      this.#silentBeats = session.beat() ? 0 : this.#silentBeats + 1;
      if (this.#silentBeats >= SILENT_BEATS_MAX)
        this.#lost(new Error(`no message for ${(SILENT_BEATS_MAX * BEAT_MS) / 1000} s`));
      else this.#scheduleBeat();
    });
  }

  // --- changes -------------------------------------------------------------------------------------------------------

  #apply(changes: readonly RowChange[]): void {
    this.#view.applyAll(changes);
    this.#rows += changes.length;
  }

  #committed(xid: number): void {
    this.#transactions += 1;
    for (const handler of this.#appliedHandlers) {
      try {
        handler(xid);
      } catch (error) {
        this.#events.handlerFailed?.(this.cell, error);
      }
    }
  }

  // --- waiting calls -------------------------------------------------------------------------------------------------

  /** Asks one question at a time, for all calls that came before it was sent. A later call needs a later answer. */
  async #ask(): Promise<void> {
    while (!this.#asking && this.#session !== null) {
      const session = this.#session;
      const asked = [...this.#waiters].filter((waiter) => waiter.target === null);
      if (asked.length === 0) return;
      this.#asking = true;
      const askedAt = this.#clock.monotonic();
      let position: Lsn | null = null;
      try {
        position = await session.askPosition();
      } catch {
        // The connection is gone. The session's own handler ends it, and the next session asks again.
      } finally {
        this.#asking = false;
      }
      if (this.#session !== session) continue;
      if (position === null) return;
      for (const waiter of asked) {
        waiter.target = position;
        waiter.askedAt = askedAt;
      }
      this.#settle();
      if (this.#waiters.size > 0) {
        session.askKeepalive();
        this.#scheduleHurry();
      }
    }
  }

  #settle(): void {
    const position = this.#session?.position;
    if (position === undefined || this.#waiters.size === 0) return;
    for (const waiter of this.#waiters) {
      if (waiter.target === null || waiter.target > position) continue;
      this.#waiters.delete(waiter);
      waiter.timer.cancel();
      this.#seenAt = Math.max(this.#seenAt, waiter.askedAt);
      waiter.resolve(waiter.shownAtCall !== null && waiter.shownAtCall >= waiter.target);
    }
  }

  #scheduleHurry(): void {
    if (this.#hurry !== null) return;
    this.#hurry = this.#clock.setTimer(HURRY_MS, () => {
      this.#hurry = null;
      const session = this.#session;
      if (session === null || this.#waiters.size === 0) {
        this.#hurries = 0;
        return;
      }
      this.#hurries += 1;
      session.askKeepalive();
      // A failure of the connection ends the session.
      if (this.#hurries % HURRIES_A_PUSH === 0) session.pushLog().catch(() => {});
      this.#scheduleHurry();
    });
  }
}
