import { randomBytes } from "node:crypto";
import type pg from "pg";
import type { RowChange } from "../../../core/ledger/row-change.ts";
import { PrimaryClient } from "../client/primary-client.ts";
import { createPgoutputDecoder, type StreamEvent } from "./decode-pgoutput.ts";
import { type LedgerRow, LedgerRowTranslator } from "./ledger-row-translator.ts";
import { loadSnapshot } from "./load-snapshot.ts";
import { type Lsn, parseLsn } from "./lsn.ts";
import { ReplicationStream } from "./replication-stream.ts";

const LEDGER = "berth_ledger";
/** Where the cell's servers are: for those who look beyond the ledger; each boot is some rows more to them. */
const SERVERS = "berth_servers";
/** Where they are moving. */
const MOVES = "berth_moves";
/** Rows of one transaction kept until its commit; a larger one (a whole data centre's first report) is shown in parts. */
const TRANSACTION_ROWS_MAX = 50_000;

/** What a session tells its follower; all synchronous, in the order of the log. */
export interface SessionHandlers {
  /** Servers and their moves are followed, too. */
  readonly servers: boolean;
  /** Before that: the slot is not made until these transactions have ended. Called every few seconds. */
  onWaiting?(holders: readonly string[]): void;
  /** The whole ledger as of the session's start: replaces what was known. */
  onLoaded(changes: readonly RowChange[]): void;
  onChanges(changes: readonly RowChange[]): void;
  /** A transaction has been passed on completely. */
  onCommitted(xid: number, committedAtMs: number): void;
  /** Everything committed up to here has been passed on. */
  onPosition(position: Lsn): void;
  /** Once, when it is of no use any more; not after `close`. */
  onLost(error: Error): void;
}

/**
 * One life of a connection to a cell's database: a slot with its exported snapshot, loaded, then followed; and a second
 * connection for questions. Whatever goes wrong ends it, and a new session loads anew.
 */
export class FollowSession {
  position: Lsn;
  readonly #stream: ReplicationStream;
  readonly #questions: pg.Client;
  readonly #handlers: SessionHandlers;
  readonly #decode = createPgoutputDecoder();
  readonly #translator = new LedgerRowTranslator();
  #rows: LedgerRow[] = [];
  #begun: { readonly xid: number; readonly committedAtMs: number } | null = null;
  #heardSinceStatus = true;
  #over = false;
  #positionFunction: "pg_current_wal_flush_lsn" | "pg_current_wal_insert_lsn" = "pg_current_wal_flush_lsn";

  private constructor(stream: ReplicationStream, questions: pg.Client, handlers: SessionHandlers) {
    this.#stream = stream;
    this.#questions = questions;
    this.#handlers = handlers;
    this.position = stream.startsAt;
    questions.on("error", (error) => this.#lose(error));
    questions.on("end", () => this.#lose(new Error("the connection was closed")));
  }

  /** Resolves once loaded and following. A failure leaves nothing open. */
  static async open(databaseUrl: string, handlers: SessionHandlers, signal: AbortSignal): Promise<FollowSession> {
    const slotName = `berth_view_${randomBytes(8).toString("hex")}`;
    const stream = await ReplicationStream.open(databaseUrl, slotName, signal, {
      onWaiting: (holders) => handlers.onWaiting?.(holders),
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
      const rows = await loadSnapshot(questions, stream.snapshot, handlers);
      // In one turn: no reader sees the view between the old state and the new.
      handlers.onLoaded(session.#translator.translate(rows));
      await stream.start(handlers.servers ? [LEDGER, SERVERS, MOVES] : [LEDGER], {
        onPayload: (payload) => session.#receive(session.#decode(payload)),
        onKeepalive: (position, replyWanted) => session.#keepalive(position, replyWanted),
        onEnd: (error) => session.#lose(error),
      });
      return session;
    } catch (error) {
      await session.close();
      throw error;
    } finally {
      signal.removeEventListener("abort", cut);
    }
  }

  /**
   * The position that everything committed so far lies before. Cost: one round trip.
   * A commit is flushed before its client hears of it, and only what is flushed is ever streamed; where the database lets
   * commits be asynchronous it is the end of what is written, and somebody has to push the log.
   */
  async askPosition(): Promise<Lsn> {
    const result = await this.#questions.query<{ lsn: string }>(`select ${this.#positionFunction}()::text as lsn`);
    return parseLsn(result.rows[0]!.lsn);
  }

  async #readCommitMode(): Promise<void> {
    const { rows } = await this.#questions.query<{ synchronous_commit: string }>("show synchronous_commit");
    if (rows[0]!.synchronous_commit === "off") this.#positionFunction = "pg_current_wal_insert_lsn";
    await this.#questions.query("set synchronous_commit to on"); // for `pushLog`
  }

  /** Have the server say where it is: when nothing that concerns the view was written, only that moves the position. */
  askKeepalive(): void {
    this.#stream.sendStatus(this.position, true);
  }

  /**
   * Push a record out that lies half flushed at a page's end (a long transaction in progress leaves such): the server cannot
   * read past it, and nobody may commit for seconds. Any commit that wrote something does it; the message itself goes nowhere.
   */
  async pushLog(): Promise<void> {
    await this.#questions.query("select pg_logical_emit_message(true, 'berth_view', '')");
  }

  /**
   * To be called every so often: lets the server forget old log, and notices when it went silent: `false` if nothing was
   * heard since the last call, though a reply was asked for.
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
        return;
      case "row":
        this.#rows.push(event.row);
        if (this.#rows.length >= TRANSACTION_ROWS_MAX) this.#pass();
        return;
      case "commit": {
        const begun = this.#begun;
        if (begun === null) throw new Error("a commit without a begin");
        this.#pass();
        this.#begun = null;
        this.#handlers.onCommitted(begun.xid, begun.committedAtMs);
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
