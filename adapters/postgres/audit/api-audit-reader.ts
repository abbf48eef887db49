import type { Client } from "pg";
import type { AuditedRequest } from "../../../core/audit/facts.ts";
import { openClient } from "../client/databases.ts";
import { READ_ALL, SortedRows } from "./sorted-rows.ts";
import { StatementQueue } from "./statement-queue.ts";

interface RequestRow {
  readonly server_uuid: string;
  readonly state: AuditedRequest["state"];
  readonly cell: string | null;
  readonly untouched_ms: number;
  /** Null for a dispatched request, which may stay one for ever. */
  readonly pending_ms: number | null;
}

// `date_part` returns a number with which the database calculates much faster than with that of `extract`.
const REQUESTS = `select server_uuid, state, cell,
    greatest(0, floor(date_part('epoch', now() - updated_at) * 1000)) as untouched_ms,
    case when state <> 'dispatched' then greatest(0, floor(date_part('epoch', now() - coalesce(cancelled_at, created_at)) * 1000)) end as pending_ms
  from requests where state in ('accepted', 'dispatched', 'cancelled') order by server_uuid`;

/**
 * Reads, from one snapshot and sorted by the UUID of the server, the accepted requests that have not ended as far as the API database knows.
 * Memory: two pages.
 */
export class ApiAuditReader {
  readonly #client: Client;
  readonly #requests: SortedRows<RequestRow>;

  private constructor(client: Client, requests: SortedRows<RequestRow>) {
    this.#client = client;
    this.#requests = requests;
  }

  static async open(databaseUrl: string, pageRows: number): Promise<ApiAuditReader> {
    const client = await openClient(databaseUrl);
    // The next statement fails after the connection is lost, so nothing has to be done about it here.
    client.on("error", () => undefined);
    try {
      await client.query("begin isolation level repeatable read read only");
      await client.query(READ_ALL);
      const shape = { cursor: "audited_requests", query: REQUESTS, pageRows };
      const requests = await SortedRows.open<RequestRow>(new StatementQueue(client), shape, (row) => row.server_uuid);
      return new ApiAuditReader(client, requests);
    } catch (error) {
      await client.end();
      throw error;
    }
  }

  get bound(): string | null {
    return this.#requests.bound;
  }

  fill(): Promise<void> {
    return this.#requests.fill();
  }

  take(below: string | null): readonly AuditedRequest[] {
    return this.#requests.take(below).map((row) => ({
      serverUuid: row.server_uuid,
      state: row.state,
      cell: row.cell,
      untouchedMs: row.untouched_ms,
      pendingMs: row.pending_ms ?? 0,
    }));
  }

  async close(): Promise<void> {
    await this.#client.end();
  }
}
