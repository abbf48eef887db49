import type { ApiFacts, AuditedRequest } from "../../../core/audit/facts.ts";
import { withClient } from "../client/databases.ts";

/** The accepted requests that have not ended as far as the API database knows. Requests in a cell are checked with the cell's facts. */
export async function readApiFacts(databaseUrl: string): Promise<ApiFacts> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{
      server_uuid: string;
      state: AuditedRequest["state"];
      cell: string | null;
      untouched_ms: number;
      pending_ms: number;
    }>(`
      select server_uuid, state, cell,
        greatest(0, extract(epoch from now() - updated_at) * 1000)::float8 as untouched_ms,
        greatest(0, extract(epoch from now() - coalesce(cancelled_at, created_at)) * 1000)::float8 as pending_ms
      from requests where state in ('accepted', 'dispatched', 'cancelled')`);
    const requests = rows.map((row) => ({
      serverUuid: row.server_uuid,
      state: row.state,
      cell: row.cell,
      untouchedMs: row.untouched_ms,
      pendingMs: row.pending_ms,
    }));
    return { requests };
  });
}
