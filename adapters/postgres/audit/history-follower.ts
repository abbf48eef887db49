import { randomBytes } from "node:crypto";
import { type Pgoutput, PgoutputPlugin } from "pg-logical-replication";
import type { HistoryRow } from "../../../core/audit/capacity-history.ts";
import { capacityOf } from "../../../core/ledger/model.ts";
import { withClient } from "../client/databases.ts";
import { PrimaryClient } from "../client/primary-client.ts";
import { type Lsn, parseLsn } from "../follower/lsn.ts";
import { ReplicationStream } from "../follower/replication-stream.ts";

/** A committed transaction that touched the ledger. */
export interface HistoryTransaction {
  readonly xid: number;
  readonly committedAtMs: number;
  /** Where the log continues after it, in Postgres's notation. */
  readonly position: string;
  readonly rows: readonly HistoryRow[];
}

/** All handlers are synchronous and called in the order of the log. */
export interface HistoryHandlers {
  /** Receives the ledger as of the beginning of the history. */
  onLoaded(rows: readonly HistoryRow[]): void;
  onTransaction(transaction: HistoryTransaction): void;
  /** Called once, when the follower can no longer be used, but not after `close`. */
  onLost(error: Error): void;
}

const PUBLICATION = "berth_audit";
/** How often the follower reports its position, so that the database can discard old log. */
const STATUS_MS = 1_000;

/**
 * One unbroken piece of the history of a cell's ledger. It has its own replication slot, loads the slot's exported snapshot, and then
 * follows every committed transaction. The slot ends with the connection; to continue, open a new piece.
 */
export class HistoryFollower {
  readonly #databaseUrl: string;
  readonly #stream: ReplicationStream;
  readonly #handlers: HistoryHandlers;
  readonly #plugin = new PgoutputPlugin({ protoVersion: 1, publicationNames: [] });
  #position: Lsn;
  #begun: { readonly xid: number; readonly committedAtMs: number } | null = null;
  #rows: HistoryRow[] = [];
  #over = false;
  #beat: NodeJS.Timeout | null = null;
  readonly #waiters = new Set<{ readonly target: Lsn; readonly resolve: () => void }>();

  private constructor(databaseUrl: string, stream: ReplicationStream, handlers: HistoryHandlers) {
    this.#databaseUrl = databaseUrl;
    this.#stream = stream;
    this.#handlers = handlers;
    this.#position = stream.startsAt;
  }

  /** Resolves once the ledger is loaded and followed. A failure leaves nothing open. Cost: reads two whole tables. */
  static async open(databaseUrl: string, handlers: HistoryHandlers, signal: AbortSignal): Promise<HistoryFollower> {
    const stream = await ReplicationStream.open(databaseUrl, `berth_audit_${randomBytes(8).toString("hex")}`, signal);
    const follower = new HistoryFollower(databaseUrl, stream, handlers);
    try {
      handlers.onLoaded(await loadSnapshot(databaseUrl, stream.snapshot));
      await stream.start(
        { publications: [PUBLICATION], messages: false },
        {
          onPayload: (payload) => follower.#receive(follower.#plugin.parse(payload)),
          onKeepalive: (position, replyWanted) => {
            follower.#advance(position);
            if (replyWanted) stream.sendStatus(follower.#position, false);
          },
          onEnd: (error) => follower.#lose(error),
        },
      );
      follower.#beat = setInterval(() => stream.sendStatus(follower.#position, true), STATUS_MS);
      return follower;
    } catch (error) {
      await follower.close();
      throw error;
    }
  }

  /** Resolves when everything that was committed before the call was handed on, or when the history has ended. */
  async catchUp(): Promise<void> {
    const target = await withClient(this.#databaseUrl, async (client) => {
      // Postgres streams only the part of its log that is flushed to disk. This commit flushes the log. No subscriber reads the message.
      await client.query("select pg_logical_emit_message(true, 'berth_audit', '')");
      const { rows } = await client.query<{ lsn: string }>("select pg_current_wal_flush_lsn()::text as lsn");
      return parseLsn(rows[0]!.lsn);
    });
    if (this.#over || this.#position >= target) return;
    await new Promise<void>((resolve) => {
      this.#waiters.add({ target, resolve });
      this.#stream.sendStatus(this.#position, true);
    });
  }

  /** Frees the connection and the slot. Repeatable. */
  async close(): Promise<void> {
    this.#end();
    await this.#stream.close();
  }

  #lose(error: Error): void {
    if (this.#over) return;
    this.#end();
    this.#handlers.onLost(error);
  }

  #end(): void {
    this.#over = true;
    if (this.#beat !== null) clearInterval(this.#beat);
    for (const waiter of this.#waiters) waiter.resolve();
    this.#waiters.clear();
  }

  #receive(message: Pgoutput.Message): void {
    switch (message.tag) {
      case "begin":
        // The library reads the id as a signed number.
        this.#begun = { xid: message.xid >>> 0, committedAtMs: Number(message.commitTime) / 1000 };
        this.#rows = [];
        return;
      case "insert":
        this.#rows.push(putOf(message.relation.name, message.new));
        return;
      case "update":
        // The row's key changed: an allocation was handed to another consumer.
        if (message.key !== null) this.#rows.push(removedOf(message.relation.name, message.key));
        this.#rows.push(putOf(message.relation.name, message.new));
        return;
      case "delete":
        if (message.key === null) throw new Error(`a row of ${message.relation.name} was removed without its key`);
        this.#rows.push(removedOf(message.relation.name, message.key));
        return;
      case "commit": {
        if (this.#begun === null || message.commitEndLsn === null) throw new Error("a commit without its beginning");
        const transaction = { ...this.#begun, position: message.commitEndLsn, rows: this.#rows };
        this.#begun = null;
        if (transaction.rows.length > 0) this.#handlers.onTransaction(transaction);
        this.#advance(parseLsn(message.commitEndLsn));
        return;
      }
      case "truncate":
        throw new Error("the ledger's tables were truncated");
      case "relation":
      case "type":
      case "origin":
      case "message":
        return;
      default:
        message satisfies never;
    }
  }

  #advance(position: Lsn): void {
    if (position <= this.#position) return;
    this.#position = position;
    for (const waiter of this.#waiters) {
      if (waiter.target > position) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}

type Tuple = Readonly<Record<string, Buffer | null>>;

function putOf(table: string, row: Tuple): HistoryRow {
  const key = keyOf(row);
  if (table === "allocations")
    return { kind: "allocation-put", ...key, consumer: consumerOf(row), amount: big(row, "amount") };
  const capacity = capacityOf({
    total: column(row, "total").readInt32BE(0),
    reserved: column(row, "reserved").readInt32BE(0),
    allocationRatio: column(row, "allocation_ratio").readDoubleBE(0),
  });
  return { kind: "inventory-put", ...key, capacity, used: big(row, "used") };
}

function removedOf(table: string, row: Tuple): HistoryRow {
  const key = keyOf(row);
  return table === "allocations"
    ? { kind: "allocation-removed", ...key, consumer: consumerOf(row) }
    : { kind: "inventory-removed", ...key };
}

const keyOf = (row: Tuple): { readonly providerId: number; readonly classId: number } => ({
  providerId: column(row, "provider_id").readInt32BE(0),
  classId: column(row, "class_id").readInt32BE(0),
});
const big = (row: Tuple, name: string): number => Number(column(row, name).readBigInt64BE(0));
const consumerOf = (row: Tuple): string => column(row, "consumer_uuid").toString("hex");

function column(row: Tuple, name: string): Buffer {
  const value = row[name];
  if (value == null) throw new Error(`the stream contains no value for column ${name}`);
  return value;
}

async function loadSnapshot(databaseUrl: string, snapshot: string): Promise<readonly HistoryRow[]> {
  const client = new PrimaryClient({
    connectionString: databaseUrl,
    application_name: "berth audit",
    connectionTimeoutMillis: 10_000,
  });
  await client.connect();
  try {
    await client.query("begin isolation level repeatable read read only");
    // A utility statement takes no parameters. The name comes from the server itself, and is checked nevertheless.
    if (!/^[0-9A-F-]+$/i.test(snapshot)) throw new Error(`not the name of a snapshot: ${snapshot}`);
    await client.query(`set transaction snapshot '${snapshot}'`);
    const inventories = await client.query<{ p: number; c: number; capacity: string; used: string }>(
      `select provider_id as p, class_id as c, ledger_capacity(total, reserved, allocation_ratio)::text as capacity,
        used::text as used from inventories`,
    );
    const allocations = await client.query<{ p: number; c: number; consumer: string; amount: string }>(
      `select provider_id as p, class_id as c, replace(consumer_uuid::text, '-', '') as consumer, amount::text as amount
        from allocations`,
    );
    return [
      ...inventories.rows.map(({ p, c, capacity, used }): HistoryRow => {
        return { kind: "inventory-put", providerId: p, classId: c, capacity: Number(capacity), used: Number(used) };
      }),
      ...allocations.rows.map(({ p, c, consumer, amount }): HistoryRow => {
        return { kind: "allocation-put", providerId: p, classId: c, consumer, amount: Number(amount) };
      }),
    ];
  } finally {
    await client.end();
  }
}
