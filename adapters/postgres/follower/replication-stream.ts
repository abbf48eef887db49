import type pg from "pg";
import { describeBlocker, watchBlockers } from "../client/lock-blockers.ts";
import { PrimaryClient } from "../client/primary-client.ts";
import { formatLsn, type Lsn, lsnOf, parseLsn } from "./lsn.ts";

/** The parts of node-pg's connection that replication needs and its published types leave out. */
interface CopyConnection {
  on(event: "copyData", handler: (message: { readonly chunk: Buffer }) => void): void;
  once(event: "replicationStart", handler: () => void): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

export interface StreamHandlers {
  /** A message of the output plugin; synchronous, so that a slow reader slows the socket instead of filling a queue. */
  onPayload(payload: Buffer): void;
  /** The server has sent all that was committed up to here; `replyWanted`: it asks for a status update at once. */
  onKeepalive(position: Lsn, replyWanted: boolean): void;
  /** Once, when the connection is lost or a handler threw; not after `close`. */
  onEnd(error: Error): void;
}

const XLOG_DATA = 0x77;
const KEEPALIVE = 0x6b;
const STATUS_UPDATE = 0x72;
/** Microseconds of 2000-01-01, where the protocol's clock starts. */
const POSTGRES_EPOCH_MS = 946_684_800_000;
/** How long a slot may take to be made: until every transaction of the server has ended that was open when it began. */
const SLOT_MS_MAX = 120_000;
/** After how long the transactions that it waits for are named, and how often from then on. */
const SLOT_LOOK_MS = 3_000;
/** How long the server may take to end the stream in order before the socket is cut. */
const GOODBYE_MS = 2_000;

/**
 * One logical replication connection with a slot of its own, which the server drops with the connection. Goes through
 * `open` → `start` → `close`, once.
 *
 * pg-logical-replication's service starts streaming as soon as it has connected; a temporary slot has to be made, and its
 * snapshot loaded, on that same connection first. So the connection is kept here, and the library decodes.
 */
export class ReplicationStream {
  /** Names the state of the database from where the stream goes on; usable until `start`. */
  readonly snapshot: string;
  readonly startsAt: Lsn;
  readonly #client: pg.Client;
  readonly #slot: string;
  #ended = false;
  #finished: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | null = null;

  private constructor(
    client: pg.Client,
    slot: { readonly name: string; readonly snapshot: string; readonly startsAt: Lsn },
  ) {
    this.#client = client;
    this.#slot = slot.name;
    this.snapshot = slot.snapshot;
    this.startsAt = slot.startsAt;
  }

  /**
   * Connects and creates the slot `slotName` (letters, digits, underscores). Waits for transactions that are writing just now, in any database
   * of the server: the slot begins at a state in which none of them is half done. `onWaiting` is called with those transactions, described for people,
   * when that takes long. Rejects after two minutes, or `slotMsMax`, with an error that names them. `signal` cuts it short.
   */
  static async open(
    databaseUrl: string,
    slotName: string,
    signal: AbortSignal,
    waiting: { readonly onWaiting?: (holders: readonly string[]) => void; readonly slotMsMax?: number } = {},
  ): Promise<ReplicationStream> {
    if (!/^[a-z0-9_]{1,63}$/.test(slotName)) throw new Error(`not a slot name: ${slotName}`);
    // `replication` is a setting of node-pg that its types leave out.
    const config = {
      connectionString: databaseUrl,
      replication: "database",
      application_name: "berth view stream",
      keepAlive: true,
      connectionTimeoutMillis: 10_000,
    };
    const client = new PrimaryClient(config);
    const cut = (): void => void client.connection.stream.destroy();
    signal.addEventListener("abort", cut);
    try {
      signal.throwIfAborted();
      await client.connect();
      signal.throwIfAborted();
      const slot = await createSlot(client, slotName, { databaseUrl, ...waiting });
      return new ReplicationStream(client, {
        name: slotName,
        snapshot: slot.snapshot_name,
        startsAt: parseLsn(slot.consistent_point),
      });
    } catch (error) {
      await client.end();
      throw error;
    } finally {
      signal.removeEventListener("abort", cut);
    }
  }

  get #connection(): CopyConnection {
    return this.#client.connection as unknown as CopyConnection;
  }

  /** Streams the publications' changes from the snapshot on. The snapshot is gone after this. */
  async start(publications: readonly string[], handlers: StreamHandlers): Promise<void> {
    const end = (error: Error): void => {
      if (this.#ended) return;
      this.#ended = true;
      handlers.onEnd(error);
    };
    this.#connection.on("copyData", ({ chunk }) => {
      if (this.#ended) return;
      try {
        receive(chunk, handlers);
      } catch (error) {
        end(error as Error);
      }
    });
    const started = new Promise<void>((resolve) => this.#connection.once("replicationStart", resolve));
    const sql =
      `START_REPLICATION SLOT "${this.#slot}" LOGICAL ${formatLsn(this.startsAt)} ` +
      `(proto_version '1', publication_names '${publications.join()}', binary 'true')`;
    const finished = this.#client.query(sql);
    this.#finished = finished.then(
      () => end(new Error("the server ended the stream")),
      (error: Error) => end(error),
    );
    this.#client.on("error", end);
    this.#client.on("end", () => end(new Error("the connection was closed")));
    await Promise.race([started, finished]);
  }

  /** Tell the server how far we are, so that it may forget the log before that; `replyNow` makes it say where it is. */
  sendStatus(position: Lsn, replyNow: boolean): void {
    if (!this.#ended) this.#connection.sendCopyFromChunk(statusUpdate(position, replyNow));
  }

  /** Ends the stream and the connection; resolves when the server has dropped the slot, if it still answers. Repeatable. */
  close(): Promise<void> {
    this.#ended = true;
    this.#closing ??= this.#sayGoodbye();
    return this.#closing;
  }

  async #sayGoodbye(): Promise<void> {
    const timer = setTimeout(() => this.#client.connection.stream.destroy(), GOODBYE_MS);
    try {
      // Out of the copy mode first: node-pg cuts the socket of a busy connection, and the slot would live on for a moment.
      this.#connection.endCopyFrom();
      await this.#finished;
      await this.#client.end();
    } finally {
      clearTimeout(timer);
    }
  }
}

interface CreatedSlot {
  readonly consistent_point: string;
  readonly snapshot_name: string;
}

async function createSlot(
  client: pg.Client,
  slotName: string,
  waiting: {
    readonly databaseUrl: string;
    readonly onWaiting?: (holders: readonly string[]) => void;
    readonly slotMsMax?: number;
  },
): Promise<CreatedSlot> {
  const { databaseUrl, onWaiting, slotMsMax = SLOT_MS_MAX } = waiting;
  // node-pg's types leave out what the server said when it connected.
  const { processID } = client as unknown as { readonly processID: number };
  let holders: readonly string[] = [];
  let tooLate = false;
  const deadline = setTimeout(() => {
    tooLate = true;
    client.connection.stream.destroy();
  }, slotMsMax);
  const session = { url: databaseUrl, pid: processID, lookEveryMs: Math.min(SLOT_LOOK_MS, slotMsMax / 4) };
  const create = () =>
    client.query<CreatedSlot>(`CREATE_REPLICATION_SLOT "${slotName}" TEMPORARY LOGICAL pgoutput (SNAPSHOT 'export')`);
  try {
    const { rows } = await watchBlockers(session, create, (blockers) => {
      holders = blockers.map(describeBlocker);
      onWaiting?.(holders);
    });
    return rows[0]!;
  } catch (error) {
    if (!tooLate) throw error;
    const who = holders.length === 0 ? "nobody could say which" : holders.join("; ");
    throw new Error(
      `no replication slot within ${slotMsMax / 1_000} s: the server makes one when all transactions have ended that were open before, in any of its databases. It waits for ${who}`,
      { cause: error },
    );
  } finally {
    clearTimeout(deadline);
  }
}

function receive(chunk: Buffer, handlers: StreamHandlers): void {
  switch (chunk[0]) {
    case XLOG_DATA: // tag, position (8), end of log (8), clock (8), payload
      handlers.onPayload(chunk.subarray(25));
      return;
    case KEEPALIVE: // tag, end of log (8), clock (8), reply wanted (1)
      handlers.onKeepalive(lsnOf(chunk.readUInt32BE(1), chunk.readUInt32BE(5)), chunk[17] === 1);
      return;
    default:
      throw new Error(`unknown replication message ${chunk[0]}`);
  }
}

function statusUpdate(position: Lsn, replyNow: boolean): Buffer {
  const message = Buffer.allocUnsafe(34);
  message[0] = STATUS_UPDATE;
  const lsn = BigInt(position);
  message.writeBigUInt64BE(lsn, 1); // written
  message.writeBigUInt64BE(lsn, 9); // flushed
  message.writeBigUInt64BE(lsn, 17); // applied
  message.writeBigInt64BE(BigInt(Date.now() - POSTGRES_EPOCH_MS) * 1000n, 25);
  message[33] = replyNow ? 1 : 0;
  return message;
}
