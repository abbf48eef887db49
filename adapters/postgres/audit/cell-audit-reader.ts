import type { Client } from "pg";
import type { AuditedConsumer, AuditedServer, AuditedTask, CellFrame, CellSlice } from "../../../core/audit/facts.ts";
import { consumerUuid } from "../../../core/ledger/ids.ts";
import { CONSUMER_TYPE_INSTANCE } from "../../../core/ledger/model.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { openClient } from "../client/databases.ts";
import { type LedgerNames, readCellFrame } from "./read-cell-frame.ts";
import { READ_ALL, SortedRows } from "./sorted-rows.ts";
import { StatementQueue } from "./statement-queue.ts";

interface ServerRow {
  readonly uuid: string;
  readonly status: AuditedServer["status"] | "CLOSED";
  readonly task_state: string | null;
  readonly host: string | null;
  readonly attempt_id: string | null;
  readonly unchanged_ms: number;
}

interface MemberRow extends ServerRow {
  readonly group_uuid: string;
  readonly spec: Buffer;
}

interface ConsumerRow {
  readonly uuid: string;
}

interface TypeRow {
  readonly uuid: string;
  readonly type: string;
}

/** The numbers of the providers of one consumer's allocations, in order, as the text of an array. */
interface HoldingRow {
  readonly uuid: string;
  readonly held: string;
}

interface TaskRow {
  readonly id: string;
  readonly server_uuid: string;
  readonly kind: AuditedTask["kind"];
  readonly operation: string | null;
  readonly stage: string | null;
  readonly unattended_ms: number;
}

// `date_part` returns a number with which the database calculates much faster than with that of `extract`.
const SERVER_COLUMNS = `s.uuid, s.status, s.task_state, s.host, s.attempt_id,
  floor(date_part('epoch', now() - s.updated_at) * 1000) as unchanged_ms`;
const SERVERS = `select ${SERVER_COLUMNS} from servers s order by s.uuid`;
// Only members of groups with hard rules are recorded there, and only their specs are read.
const MEMBERS = `select m.group_uuid, s.spec, ${SERVER_COLUMNS}
  from group_members m join servers s on s.uuid = m.server_uuid
  where s.status not in ('CLOSED', 'DELETED') order by m.group_uuid`;
// These two read only indexes, in their order, and no table. Few consumers are of another type than INSTANCE.
const CONSUMERS = "select uuid from consumers order by uuid";
const HOLDINGS = `select consumer_uuid as uuid, array_agg(provider_id)::text as held
  from allocations group by consumer_uuid order by consumer_uuid`;
const OTHER_TYPES = `select uuid, type from consumers where type <> '${CONSUMER_TYPE_INSTANCE}' order by uuid`;
// A task is attended while its owner's lease lasts, by the database's clock, as for leases.
const TASKS = `select t.id, t.server_uuid, t.kind, t.operation, t.stage,
    greatest(0, extract(epoch from now() - coalesce(c.lease_expires_at, t.created_at)) * 1000)::float8 as unattended_ms
  from tasks t left join conductors c on c.id = t.owner
  where t.outcome is null order by t.server_uuid`;
/** Rows of group members carry the specs of their servers, so fewer are held. */
const MEMBER_PAGE_ROWS = 500;

/** The sources of one cell that are sorted by the UUID of the server or consumer. */
interface CellRows {
  readonly servers: SortedRows<ServerRow>;
  readonly consumers: SortedRows<ConsumerRow>;
  readonly otherTypes: SortedRows<TypeRow>;
  readonly holdings: SortedRows<HoldingRow>;
  readonly tasks: SortedRows<TaskRow>;
}

/**
 * Reads the facts of one cell's database that an audit needs, all from one snapshot: what all servers share as a whole, and everything that belongs
 * to one server in slices, sorted by its UUID. Memory: the frame, and two pages of each table.
 */
export class CellAuditReader {
  readonly frame: CellFrame;
  readonly #client: Client;
  readonly #statements: StatementQueue;
  readonly #names: LedgerNames;
  readonly #rows: CellRows;
  readonly #pageRows: number;

  private constructor(
    client: Client,
    statements: StatementQueue,
    { frame, names }: { readonly frame: CellFrame; readonly names: LedgerNames },
    { rows, pageRows }: { readonly rows: CellRows; readonly pageRows: number },
  ) {
    this.frame = frame;
    this.#client = client;
    this.#statements = statements;
    this.#names = names;
    this.#rows = rows;
    this.#pageRows = pageRows;
  }

  static async open(cell: string, databaseUrl: string, pageRows: number): Promise<CellAuditReader> {
    const client = await openClient(databaseUrl);
    // The next statement fails after the connection is lost, so nothing has to be done about it here.
    client.on("error", () => undefined);
    try {
      await client.query("begin isolation level repeatable read read only");
      await client.query(READ_ALL);
      const framed = await readCellFrame(client, cell);
      const statements = new StatementQueue(client);
      const source = <Row extends { readonly uuid: string }>(cursor: string, query: string) =>
        SortedRows.open<Row>(statements, { cursor, query, pageRows }, (row) => row.uuid);
      const rows = {
        servers: await source<ServerRow>("audited_servers", SERVERS),
        consumers: await source<ConsumerRow>("audited_consumers", CONSUMERS),
        otherTypes: await source<TypeRow>("audited_types", OTHER_TYPES),
        holdings: await source<HoldingRow>("audited_holdings", HOLDINGS),
        tasks: await SortedRows.open<TaskRow>(
          statements,
          { cursor: "audited_tasks", query: TASKS, pageRows },
          (row) => row.server_uuid,
        ),
      };
      return new CellAuditReader(client, statements, framed, { rows, pageRows });
    } catch (error) {
      await client.end();
      throw error;
    }
  }

  /** The UUIDs below which all rows of a table have been read, for each table that was not read to its end. */
  get bounds(): readonly string[] {
    return Object.values(this.#rows).flatMap(({ bound }) => bound ?? []);
  }

  async fill(): Promise<void> {
    for (const rows of Object.values(this.#rows)) await rows.fill();
  }

  /** Removes and returns what belongs to servers and consumers below this UUID, or everything with null. */
  take(below: string | null): CellSlice {
    const servers: AuditedServer[] = [];
    const closed = new Set<string>();
    for (const row of this.#rows.servers.take(below)) {
      if (row.status === "CLOSED") closed.add(row.uuid);
      else servers.push(serverOf(row, row.status));
    }
    const openTasks = this.#rows.tasks.take(below).map((row) => ({
      ...{ id: row.id, serverUuid: row.server_uuid, kind: row.kind },
      ...{ operation: row.operation, stage: row.stage, unattendedMs: row.unattended_ms },
    }));
    return { servers, closed, consumers: this.#takeConsumers(below), openTasks };
  }

  /** Yields the servers of the hard server groups. All members of a group are in the same list. */
  async *groupMembers(): AsyncGenerator<readonly AuditedServer[]> {
    const shape = {
      ...{ cursor: "audited_members", query: MEMBERS },
      pageRows: Math.min(MEMBER_PAGE_ROWS, this.#pageRows),
    };
    const rows = await SortedRows.open<MemberRow>(this.#statements, shape, (row) => row.group_uuid);
    for (let below: string | null = ""; below !== null; ) {
      await rows.fill();
      below = rows.bound;
      yield rows
        .take(below)
        .flatMap((row) =>
          row.status === "CLOSED"
            ? []
            : { ...serverOf(row, row.status), group: ServerSpec.decode(row.spec).group ?? null },
        );
    }
  }

  async close(): Promise<void> {
    await this.#client.end();
  }

  /**
   * Every consumer that has a row or holds something. An allocation without a consumer counts as an instance's, so that it shows up as an
   * orphan.
   */
  #takeConsumers(below: string | null): CellSlice["consumers"] {
    const types = new Map(this.#rows.otherTypes.take(below).map(({ uuid, type }) => [uuid, type]));
    const holdings = this.#rows.holdings.take(below);
    const consumers: AuditedConsumer[] = [];
    const add = (uuid: string, held: string | null) =>
      consumers.push({
        ...{ uuid: consumerUuid(uuid), type: types.get(uuid) ?? CONSUMER_TYPE_INSTANCE },
        items: held === null ? [] : this.#itemsOf(held),
      });
    let at = 0;
    for (const { uuid } of this.#rows.consumers.take(below)) {
      for (; at < holdings.length && holdings[at]!.uuid < uuid; at += 1) add(holdings[at]!.uuid, holdings[at]!.held);
      const holding = holdings[at]?.uuid === uuid ? holdings[at]! : null;
      if (holding !== null) at += 1;
      add(uuid, holding?.held ?? null);
    }
    for (; at < holdings.length; at += 1) add(holdings[at]!.uuid, holdings[at]!.held);
    return consumers;
  }

  /** One item for each provider. */
  #itemsOf(held: string): AuditedConsumer["items"] {
    const items: AuditedConsumer["items"][number][] = [];
    let last = "";
    for (const id of held.slice(1, -1).split(",")) {
      if (id !== last) items.push({ provider: this.#names.provider(Number(id)) });
      last = id;
    }
    return items;
  }
}

function serverOf(row: ServerRow, status: AuditedServer["status"]): AuditedServer {
  const { uuid, task_state: taskState, host, attempt_id: attemptId, unchanged_ms: unchangedMs } = row;
  return { uuid, status, taskState, host, attemptId, unchangedMs, group: null };
}
