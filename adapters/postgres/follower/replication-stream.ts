import type pg from "pg";
import { describeBlocker, watchBlockers } from "../client/lock-blockers.ts";
import { PrimaryClient } from "../client/primary-client.ts";
import { formatLsn, type Lsn, lsnOf, parseLsn } from "./lsn.ts";

/** The parts of node-pg's connection that replication needs and that its published types omit. */
interface CopyConnection {
  on(event: "copyData", handler: (message: { readonly chunk: Buffer }) => void): void;
  once(event: "replicationStart", handler: () => void): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

export interface StreamHandlers {
  /** Receives a message of the output plugin. Synchronous, so that a slow reader slows the socket instead of filling a queue. */
  onPayload(payload: Buffer): void;
  /** The server has sent everything that was committed up to this position. With `replyWanted` it asks for a status update at once. */
  onKeepalive(position: Lsn, replyWanted: boolean): void;
  /** Called once, when the connection is lost or a handler threw, but not after `close`. */
  onEnd(error: Error): void;
}

const XLOG_DATA = 0x77;
const KEEPALIVE = 0x6b;
const STATUS_UPDATE = 0x72;
/** The beginning of 2000-01-01, where the protocol's clock starts. */
const POSTGRES_EPOCH_MS = 946_684_800_000;
/** How long creating a slot may take. It waits until every transaction of the server has ended that was open when it began. */
const SLOT_MS_MAX = 120_000;
/** After this time the transactions that it waits for are reported, and again after each further interval. */
const SLOT_LOOK_MS = 3_000;
/** How long the server may take to end the stream in order, before the socket is cut. */
const GOODBYE_MS = 2_000;

/**
 * One logical replication connection with a slot of its own, which the server drops with the connection. It goes through `open` → `start` →
 * `close` once.
 *
 * The service of pg-logical-replication starts streaming as soon as it has connected, but a temporary slot must be created, and its
 * snapshot loaded, on that same connection first. So this class holds the connection, and the library only decodes.
 */
export class ReplicationStream {
  /** The name of the database state at which the stream begins. Usable until `start`. */
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
   * Connects and creates the slot `slotName` (letters, digits, underscores). Waits for all transactions that are writing now, in any
   * database of the server, because the slot begins at a state in which none of them is half done. When that takes long, `onWaiting` is
   * called with those transactions, described for people. Rejects after two minutes, or `slotMsMax`, with an error that names them.
   * `signal` cancels the wait. After half of `serverPatienceMs` without a word from us, the server sends one of its own, and after all of it
   * the server ends the stream. Without it, the server's `wal_sender_timeout` counts, which is a minute by default.
   */
  static async open(
    databaseUrl: string,
    slotName: string,
    signal: AbortSignal,
    waiting: {
      readonly onWaiting?: (holders: readonly string[]) => void;
      readonly slotMsMax?: number;
      readonly serverPatienceMs?: number;
    } = {},
  ): Promise<ReplicationStream> {
    if (!/^[a-z0-9_]{1,63}$/.test(slotName)) throw new Error(`not a slot name: ${slotName}`);
    // `replication` is an option of node-pg that its types omit.
    const config = {
      connectionString: databaseUrl,
      replication: "database",
      application_name: "berth view stream",
      ...(waiting.serverPatienceMs !== undefined && {
        addedOptions: `-c wal_sender_timeout=${waiting.serverPatienceMs}`,
      }),
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

  /**
   * Streams the publications' changes from the snapshot onwards, and with `messages` also what `pg_logical_emit_message` writes in this database.
   * The snapshot ends with this call.
   */
  async start(
    { publications, messages }: { readonly publications: readonly string[]; readonly messages: boolean },
    handlers: StreamHandlers,
  ): Promise<void> {
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
      `(proto_version '1', publication_names '${publications.join()}', binary 'true', messages '${messages}')`;
    const finished = this.#client.query(sql);
    this.#finished = finished.then(
      () => end(new Error("the server ended the stream")),
      (error: Error) => end(error),
    );
    this.#client.on("error", end);
    this.#client.on("end", () => end(new Error("the connection was closed")));
    await Promise.race([started, finished]);
  }

  /** Reports our position to the server, so that it may discard the log before it. `replyNow` requests the server's own position. */
  sendStatus(position: Lsn, replyNow: boolean): void {
    if (!this.#ended) this.#connection.sendCopyFromChunk(statusUpdate(position, replyNow));
  }

  /** Ends the stream and the connection. Resolves when the server has dropped the slot, if the server still answers. Repeatable. */
  close(): Promise<void> {
    this.#ended = true;
    this.#closing ??= this.#sayGoodbye();
    return this.#closing;
  }

  async #sayGoodbye(): Promise<void> {
    const timer = setTimeout(() => this.#client.connection.stream.destroy(), GOODBYE_MS);
    try {
      // The copy mode is ended first, because node-pg cuts the socket of a busy connection, and the slot would remain for a moment.
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
  // node-pg's types omit the process id that the server sends when a client connects.
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
    const who = holders.length === 0 ? "they could not be listed" : holders.join("; ");
    throw new Error(
      `Postgres created no replication slot within ${slotMsMax / 1_000} s, because it first waits for all older transactions in any of its databases. It waits for ${who}: end these if they stay open`,
      { cause: error },
    );
  } finally {
    clearTimeout(deadline);
  }
}

function receive(chunk: Buffer, handlers: StreamHandlers): void {
  switch (chunk[0]) {
    case XLOG_DATA: // The fields are tag, position (8), end of log (8), clock (8), payload.
      handlers.onPayload(chunk.subarray(25));
      return;
    case KEEPALIVE: // The fields are tag, end of log (8), clock (8), reply wanted (1).
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
