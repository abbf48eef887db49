import { randomBytes } from "node:crypto";
import type pg from "pg";
import type { RowChange } from "../../../core/ledger/row-change.ts";
import { Turns } from "../../../runtime/turns.ts";
import { PrimaryClient } from "../client/primary-client.ts";
import { createPgoutputDecoder, type StreamEvent } from "./decode-pgoutput.ts";
import { type LedgerRow, LedgerRowTranslator } from "./ledger-row-translator.ts";
import { loadSnapshot } from "./load-snapshot.ts";
import { type Lsn, parseLsn } from "./lsn.ts";
import { ReplicationStream } from "./replication-stream.ts";

/** The publications of the ledger. Updates of inventories are not in them, but come as messages, many rows in one. */
const LEDGER = ["berth_ledger_rows", "berth_inventory_rows"];
/**
 * The publication of removed servers. What is written of servers comes as messages. Only followers that need more than the ledger follow it. The
 * database sends others the bytes of the messages all the same, since it selects none by prefix, and they pass over them unread.
 */
const SERVERS = "berth_server_rows";
/** The publication of servers' moves. */
const MOVES = "berth_moves";
/**
 * Maximum number of rows of one transaction that are kept until its commit. A larger transaction (a whole data centre's first report) is shown in
 * parts.
 */
const TRANSACTION_ROWS_MAX = 50_000;

/**
 * The server answers no question while it reads a large transaction of which nothing is streamed, such as a restore of allocations. It still sends a
 * word of its own after half of this time, before it would pass for silent (see ledger-follower.ts).
 */
const SERVER_PATIENCE_MS = 15_000;

/** The calls of a session to its follower. All are synchronous and in the order of the log. */
export interface SessionHandlers {
  /** Whether servers and their moves are followed, too. */
  readonly servers: boolean;
  /** Called every few seconds before the load, as long as creating the slot waits for these transactions to end. */
  onWaiting?(holders: readonly string[]): void;
  /** Receives a part of the ledger as of the session's start. The process does other work between two parts. */
  onLoading(changes: readonly RowChange[]): void;
  /** The ledger as of the session's start is complete, and replaces the previous state. */
  onLoaded(): void;
  onChanges(changes: readonly RowChange[]): void;
  /** Called when a transaction that changed rows of the view has been passed on completely. */
  onCommitted(xid: number): void;
  /** Called when any transaction has been passed on completely, before `onCommitted`. One that changed no rows of the view tells how far behind the log it is, too. */
  onReached(committedAtMs: number): void;
  /** Called when everything that was committed up to this position has been passed on. */
  onPosition(position: Lsn): void;
  /** Called once, when the session can no longer be used, but not after `close`. */
  onLost(error: Error): void;
}

/**
 * One connection to a cell's database from its beginning to its end. It creates a slot, loads the exported snapshot and follows the slot. A
 * second connection asks questions, one at a time. Any failure ends the session, and a new session loads again.
 */
export class FollowSession {
  position: Lsn;
  readonly #stream: ReplicationStream;
  readonly #questions: pg.Client;
  readonly #turns = new Turns<"questions">();
  readonly #handlers: SessionHandlers;
  readonly #decode: (payload: Buffer) => StreamEvent;
  readonly #translator = new LedgerRowTranslator();
  #rows: LedgerRow[] = [];
  /** Whether the transaction that is being received has changed any row. */
  #concernsView = false;
  #begun: { readonly xid: number; readonly committedAtMs: number } | null = null;
  #heardSinceStatus = true;
  #over = false;
  #pushing: Promise<void> | null = null;
  #positionFunction: "pg_current_wal_flush_lsn" | "pg_current_wal_insert_lsn" = "pg_current_wal_flush_lsn";

  private constructor(stream: ReplicationStream, questions: pg.Client, handlers: SessionHandlers) {
    this.#stream = stream;
    this.#questions = questions;
    this.#handlers = handlers;
    this.#decode = createPgoutputDecoder(handlers);
    this.position = stream.startsAt;
    questions.on("error", (error) => this.#lose(error));
    questions.on("end", () => this.#lose(new Error("the connection was closed")));
  }

  /** Resolves once the ledger is loaded and followed. A failure leaves nothing open. */
  static async open(databaseUrl: string, handlers: SessionHandlers, signal: AbortSignal): Promise<FollowSession> {
    const slotName = `berth_view_${randomBytes(8).toString("hex")}`;
    const stream = await ReplicationStream.open(databaseUrl, slotName, signal, {
      onWaiting: (holders) => handlers.onWaiting?.(holders),
      serverPatienceMs: SERVER_PATIENCE_MS,
    });
    const questions = new PrimaryClient({
      connectionString: databaseUrl,
      application_name: "berth view",
      keepAlive: true,
      connectionTimeoutMillis: 10_000,
    });
    const session = new FollowSession(stream, questions, handlers);
    const cut = (): void => void questions.connection.stream.destroy();
    signal.addEventListener("abort", cut);
    try {
      await questions.connect();
      signal.throwIfAborted();
      await session.#readCommitMode();
      const take = (rows: readonly LedgerRow[]) => handlers.onLoading(session.#translator.translate(rows));
      await loadSnapshot(questions, stream.snapshot, handlers, take);
      handlers.onLoaded();
      const publications = handlers.servers ? [...LEDGER, SERVERS, MOVES] : LEDGER;
      await stream.start(
        { publications, messages: true },
        {
          onPayload: (payload) => session.#receive(session.#decode(payload)),
          onKeepalive: (position, replyWanted) => session.#keepalive(position, replyWanted),
          onEnd: (error) => session.#lose(error),
        },
      );
      return session;
    } catch (error) {
      await session.close();
      throw error;
    } finally {
      signal.removeEventListener("abort", cut);
    }
  }

  /**
   * A position that is not before any commit made so far. Cost: one round trip.
   *
   * A commit is flushed before its client gets the answer, and only flushed log is streamed. Where the database permits asynchronous
   * commits, the position is the end of the written log, and `pushLog` must flush it.
   */
  async askPosition(): Promise<Lsn> {
    // Prepared, so that callers do not wait until the database has planned it again.
    const question = { name: "position", text: `select ${this.#positionFunction}()::text as lsn` };
    const result = await this.#turns.take(["questions"], () => this.#questions.query<{ lsn: string }>(question));
    return parseLsn(result.rows[0]!.lsn);
  }

  async #readCommitMode(): Promise<void> {
    const { rows } = await this.#questions.query<{ synchronous_commit: string }>("show synchronous_commit");
    if (rows[0]!.synchronous_commit === "off") this.#positionFunction = "pg_current_wal_insert_lsn";
    await this.#questions.query("set synchronous_commit to on"); // Needed for `pushLog`.
  }

  /** Makes the server report its position. When no transaction concerned the view, only that report moves the position. */
  askKeepalive(): void {
    this.#stream.sendStatus(this.position, true);
  }

  /**
   * Flushes a record that lies half flushed at the end of a page, as a long transaction in progress may leave one. The server cannot read
   * past such a record, and there may be no other commit for seconds. Any commit that writes something flushes it; the decoder passes over the
   * message that this one writes. A push that is under way serves later callers as well, who push again if it came too early for them, so that pushes
   * to a slow database do not hold up the questions.
   */
  pushLog(): Promise<void> {
    this.#pushing ??= this.#push().finally(() => {
      this.#pushing = null;
    });
    return this.#pushing;
  }

  async #push(): Promise<void> {
    const sql = "select pg_logical_emit_message(true, 'berth_view', '')";
    await this.#turns.take(["questions"], () => this.#questions.query(sql));
  }

  /**
   * Must be called periodically. Lets the server discard old log, and detects silence: returns `false` if nothing was received since the
   * last call, although a reply was requested.
   */
  beat(): boolean {
    const heard = this.#heardSinceStatus;
    this.#heardSinceStatus = false;
    this.#stream.sendStatus(this.position, true);
    return heard;
  }

  /** Frees both connections and the slot. Repeatable. */
  async close(): Promise<void> {
    this.#over = true;
    await Promise.allSettled([this.#stream.close(), this.#questions.end()]);
  }

  #lose(error: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#handlers.onLost(error);
  }

  #receive(event: StreamEvent): void {
    this.#heardSinceStatus = true;
    switch (event.kind) {
      case "begin":
        this.#begun = event;
        this.#concernsView = false;
        return;
      case "rows":
        for (const row of event.rows) this.#rows.push(row);
        this.#concernsView = true;
        if (this.#rows.length >= TRANSACTION_ROWS_MAX) this.#pass();
        return;
      case "commit": {
        const begun = this.#begun;
        if (begun === null) throw new Error("a commit without a begin");
        this.#pass();
        this.#begun = null;
        this.#handlers.onReached(begun.committedAtMs);
        // A transaction without rows is one that pushed the log, of this view or of another one.
        if (this.#concernsView) this.#handlers.onCommitted(begun.xid);
        this.#advance(event.position);
        return;
      }
      case "nothing":
        return;
      default:
        event satisfies never;
    }
  }

  #pass(): void {
    const rows = this.#rows;
    this.#rows = [];
    if (rows.length > 0) this.#handlers.onChanges(this.#translator.translate(rows));
  }

  #keepalive(position: Lsn, replyWanted: boolean): void {
    this.#heardSinceStatus = true;
    this.#advance(position);
    if (replyWanted) this.#stream.sendStatus(this.position, false);
  }

  #advance(position: Lsn): void {
    if (position <= this.position) return;
    this.position = position;
    this.#handlers.onPosition(position);
  }
}
