import { type Pgoutput, PgoutputPlugin } from "pg-logical-replication";
import type { HypervisorFacts } from "../../../core/ledger/hypervisor-facts.ts";
import type { LedgerRow } from "./ledger-row-translator.ts";
import { type Lsn, parseLsn } from "./lsn.ts";

/** The events of a slot's stream that matter to a ledger view. */
export type StreamEvent =
  | { readonly kind: "begin"; readonly xid: number; readonly committedAtMs: number }
  | { readonly kind: "rows"; readonly rows: readonly LedgerRow[] }
  /** `position` is where the log continues after this transaction. */
  | { readonly kind: "commit"; readonly position: Lsn }
  | { readonly kind: "nothing" };

/**
 * A row as pgoutput's binary mode sends it, with each column in the binary format of its type. The values are parts of the driver's buffer,
 * which it fills with the next messages, and a row waits for its commit: what is kept of a row must be copied.
 */
type Tuple = Readonly<Record<string, Buffer | null>>;
type RowOf = (tuple: Tuple) => LedgerRow;

const NOTHING: StreamEvent = { kind: "nothing" };

/** The prefix of the messages of the SQL function `announce_inventories`, and the length of each of their rows. */
const INVENTORIES = "berth_inventories";
const INVENTORY_BYTES = 44;
/** The prefix of the messages of the SQL functions `announce_servers` and `announce_spec`, and the number of columns of their rows. */
const SERVERS = "berth_servers";
const SERVER_COLUMNS = 5;

/**
 * Decodes the payloads of one slot's messages, in order. It is stateful, because each table is described only once, before its first row.
 * Throws on messages that cannot occur for the ledger's tables in use (a truncate, a changed key). The caller then has to load again. Messages of
 * servers are passed over unless `servers` are followed.
 */
export function createPgoutputDecoder({ servers }: { readonly servers: boolean }): (payload: Buffer) => StreamEvent {
  const plugin = new PgoutputPlugin({ protoVersion: 1, publicationNames: [] });
  return (payload) => streamEventOf(plugin.parse(payload), servers);
}

function streamEventOf(message: Pgoutput.Message, servers: boolean): StreamEvent {
  switch (message.tag) {
    case "begin":
      // The library reads the id as a signed number.
      return { kind: "begin", xid: message.xid >>> 0, committedAtMs: Number(message.commitTime) / 1000 };
    case "commit":
      if (message.commitEndLsn === null) throw new Error("a commit without a position");
      return { kind: "commit", position: parseLsn(message.commitEndLsn) };
    case "insert":
      return { kind: "rows", rows: [tableOf(message.relation).put(message.new)] };
    case "update":
      if (message.key !== null) throw new Error(`a row of ${message.relation.name} changed its key`);
      return { kind: "rows", rows: [tableOf(message.relation).put(message.new)] };
    case "delete":
      if (message.key === null) throw new Error(`a row of ${message.relation.name} was removed without naming its key`);
      return { kind: "rows", rows: [tableOf(message.relation).removed(message.key)] };
    case "truncate":
      throw new Error(`tables were truncated: ${message.relations.map((relation) => relation.name).join(", ")}`);
    case "message":
      if (message.prefix === INVENTORIES) return { kind: "rows", rows: inventoriesOf(message.content) };
      return servers && message.prefix === SERVERS ? { kind: "rows", rows: serversOf(message.content) } : NOTHING;
    case "relation":
    case "type":
    case "origin":
      return NOTHING;
    default:
      return message satisfies never;
  }
}

/**
 * The servers that one statement has written, as `announce_servers` packs them: records, each with the number of its columns, and each column with its
 * type, its length (-1 for null) and its value.
 */
function serversOf(content: Uint8Array): LedgerRow[] {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.length);
  const rows: LedgerRow[] = [];
  let at = 0;
  const next = (): Buffer | null => {
    const length = bytes.readInt32BE(at + 4);
    at += 8;
    if (length < 0) return null;
    if (at + length > bytes.length) throw new Error("a message of servers ends too early");
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const columns = bytes.readInt32BE(at);
    if (columns !== SERVER_COLUMNS) throw new Error(`a message of servers has rows of ${columns} columns`);
    at += 4;
    const [uuidBytes, status, taskState, host, spec] = [next(), next(), next(), next(), next()];
    if (uuidBytes === null || status === null) throw new Error("a message of servers has a row without a key");
    rows.push({
      table: "server-put",
      uuid: uuidOf(uuidBytes),
      status: status.toString(),
      taskState: taskState === null ? null : taskState.toString(),
      host: host === null ? null : host.toString(),
      spec: spec === null ? null : Buffer.from(spec),
    });
  }
  return rows;
}

/** The inventories that one statement has updated, as `announce_inventories` packs them. */
function inventoriesOf(content: Uint8Array): LedgerRow[] {
  if (content.length % INVENTORY_BYTES !== 0)
    throw new Error(`a message of inventories has ${content.length} bytes, which is no multiple of ${INVENTORY_BYTES}`);
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.length);
  const rows: LedgerRow[] = [];
  for (let at = 0; at < bytes.length; at += INVENTORY_BYTES)
    rows.push({
      table: "inventory-put",
      providerId: bytes.readInt32BE(at),
      classId: bytes.readInt32BE(at + 4),
      inventory: {
        total: bytes.readInt32BE(at + 8),
        reserved: bytes.readInt32BE(at + 12),
        minUnit: bytes.readInt32BE(at + 16),
        maxUnit: bytes.readInt32BE(at + 20),
        stepSize: bytes.readInt32BE(at + 24),
        allocationRatio: bytes.readDoubleBE(at + 28),
      },
      used: Number(bytes.readBigInt64BE(at + 36)),
    });
  return rows;
}

function tableOf(relation: Pgoutput.MessageRelation): { readonly put: RowOf; readonly removed: RowOf } {
  const table = TABLES[relation.name];
  if (table === undefined) throw new Error(`the publication contains a table that no view knows: ${relation.name}`);
  return table;
}

const TABLES: Readonly<Record<string, { readonly put: RowOf; readonly removed: RowOf }>> = {
  resource_classes: {
    put: (row) => ({ table: "class-put", id: int(row, "id"), name: text(row, "name") }),
    removed: (key) => ({ table: "class-removed", id: int(key, "id") }),
  },
  traits: {
    put: (row) => ({ table: "trait-put", id: int(row, "id"), name: text(row, "name") }),
    removed: (key) => ({ table: "trait-removed", id: int(key, "id") }),
  },
  resource_providers: {
    put: (row) => ({
      table: "provider-put",
      id: int(row, "id"),
      uuid: uuid(row, "uuid"),
      name: text(row, "name"),
      parentId: row.parent_id == null ? null : int(row, "parent_id"),
      rootId: int(row, "root_id"),
      generation: int(row, "generation"),
    }),
    removed: (key) => ({ table: "provider-removed", id: int(key, "id") }),
  },
  inventories: {
    put: (row) => ({
      table: "inventory-put",
      providerId: int(row, "provider_id"),
      classId: int(row, "class_id"),
      inventory: {
        total: int(row, "total"),
        reserved: int(row, "reserved"),
        minUnit: int(row, "min_unit"),
        maxUnit: int(row, "max_unit"),
        stepSize: int(row, "step_size"),
        allocationRatio: column(row, "allocation_ratio").readDoubleBE(0),
      },
      used: Number(column(row, "used").readBigInt64BE(0)),
    }),
    removed: (key) => ({
      table: "inventory-removed",
      providerId: int(key, "provider_id"),
      classId: int(key, "class_id"),
    }),
  },
  provider_traits: {
    put: (row) => ({ table: "provider-trait-put", providerId: int(row, "provider_id"), traitId: int(row, "trait_id") }),
    removed: (key) => ({
      table: "provider-trait-removed",
      providerId: int(key, "provider_id"),
      traitId: int(key, "trait_id"),
    }),
  },
  provider_aggregates: {
    put: (row) => ({ table: "aggregate-put", providerId: int(row, "provider_id"), aggregate: uuid(row, "aggregate") }),
    removed: (key) => ({
      table: "aggregate-removed",
      providerId: int(key, "provider_id"),
      aggregate: uuid(key, "aggregate"),
    }),
  },
  hosts: {
    put: (row) => ({
      table: "host-put",
      name: text(row, "name"),
      rootProvider: uuid(row, "root_provider"),
      up: bool(row, "up"),
      disabled: bool(row, "disabled"),
      hypervisor: json(row, "hypervisor"),
    }),
    removed: (key) => ({ table: "host-removed", name: text(key, "name") }),
  },
  servers: {
    put: (row) => ({
      table: "server-put",
      uuid: uuid(row, "uuid"),
      status: text(row, "status"),
      taskState: row.task_state == null ? null : text(row, "task_state"),
      host: row.host == null ? null : text(row, "host"),
      spec: row.spec == null ? null : Buffer.from(row.spec),
    }),
    removed: (key) => ({ table: "server-removed", uuid: uuid(key, "uuid") }),
  },
  migrations: {
    put: (row) => ({
      table: "move-put",
      uuid: uuid(row, "uuid"),
      serverUuid: uuid(row, "server_uuid"),
      sourceHost: row.source_host == null ? null : text(row, "source_host"),
      destHost: text(row, "dest_host"),
      ended: bool(row, "ended"),
    }),
    removed: (key) => ({ table: "move-removed", uuid: uuid(key, "uuid") }),
  },
};

function column(tuple: Tuple, name: string): Buffer {
  const value = tuple[name];
  if (value == null) throw new Error(`the stream contains no value for column ${name}`);
  return value;
}

function int(tuple: Tuple, name: string): number {
  return column(tuple, name).readInt32BE(0);
}

function bool(tuple: Tuple, name: string): boolean {
  return column(tuple, name)[0] === 1;
}

function text(tuple: Tuple, name: string): string {
  return column(tuple, name).toString("utf8");
}

/** A jsonb value is a byte with the format's version, followed by the text. */
function json(tuple: Tuple, name: string): Partial<HypervisorFacts> {
  return JSON.parse(column(tuple, name).toString("utf8", 1));
}

const uuid = (tuple: Tuple, name: string): string => uuidOf(column(tuple, name));

function uuidOf(bytes: Buffer): string {
  const hex = bytes.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
