import type { ClientBase } from "pg";
import type { AuditedMove, AuditedServer, AuditedTask, CellReading } from "../../../core/audit/facts.ts";
import { consumerUuid, providerUuid, resourceClass } from "../../../core/ledger/ids.ts";
import type { LedgerDump } from "../../../core/ledger/ledger-dump.ts";
import type { KeptOffer } from "../../../core/ledger/merge-report.ts";
import { type AllocationItem, CONSUMER_TYPE_INSTANCE } from "../../../core/ledger/model.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { withClient } from "../client/databases.ts";
import { readProviders } from "../ledger/read-ledger.ts";

/**
 * The facts of one cell's database that an audit needs, all from one snapshot. The database does not know which guests run, so
 * `runningGuests` and `copies` are empty. Cost: reads whole tables.
 */
export async function readCellFacts(cell: string, databaseUrl: string): Promise<CellReading> {
  return withClient(databaseUrl, async (client) => {
    await client.query("begin isolation level repeatable read read only");
    const { servers, closed } = await readServers(client);
    return {
      cell,
      ledger: { providers: await readProviders(client), consumers: await readConsumers(client) },
      kept: await readKept(client),
      servers,
      closed,
      openTasks: await readOpenTasks(client),
      moves: await readMoves(client),
      ...(await readHosts(client)),
      runningGuests: new Map(),
      copies: new Map(),
    };
  });
}

/**
 * Every consumer that has a row or holds something. No foreign key ties allocations to other tables: an allocation without a consumer
 * counts as an instance's, so that it shows up as an orphan, and one without a provider or class names the number.
 */
async function readConsumers(client: ClientBase): Promise<LedgerDump["consumers"]> {
  const { rows } = await client.query<{
    uuid: string;
    generation: number | null;
    project_id: string | null;
    user_id: string | null;
    type: string | null;
    items: { provider: string; class: string; amount: number }[];
  }>(`
    select coalesce(c.uuid, held.consumer_uuid) as uuid, c.generation, c.project_id, c.user_id, c.type,
      coalesce(held.items, '[]') as items
    from consumers c
    full join (
      select a.consumer_uuid,
        jsonb_agg(jsonb_build_object('provider', coalesce(p.uuid::text, 'number ' || a.provider_id),
          'class', coalesce(rc.name, 'class ' || a.class_id), 'amount', a.amount)) as items
      from allocations a
      left join resource_providers p on p.id = a.provider_id
      left join resource_classes rc on rc.id = a.class_id
      group by a.consumer_uuid
    ) held on held.consumer_uuid = c.uuid`);
  return rows.map((row) => ({
    uuid: consumerUuid(row.uuid),
    generation: row.generation ?? 0,
    projectId: row.project_id ?? "",
    userId: row.user_id ?? "",
    type: row.type ?? CONSUMER_TYPE_INSTANCE,
    items: row.items.map(
      (item): AllocationItem => ({
        provider: providerUuid(item.provider),
        resourceClass: resourceClass(item.class),
        amount: item.amount,
      }),
    ),
  }));
}

async function readServers(client: ClientBase): Promise<Pick<CellReading, "servers" | "closed">> {
  const { rows } = await client.query<{
    uuid: string;
    status: AuditedServer["status"] | "CLOSED";
    task_state: string | null;
    host: string | null;
    attempt_id: string | null;
    unchanged_ms: number;
    spec: Buffer | null;
  }>(`select s.uuid, s.status, s.task_state, s.host, s.attempt_id,
      extract(epoch from now() - s.updated_at)::float8 * 1000 as unchanged_ms,
      case when m.group_uuid is not null then s.spec end as spec
    from servers s left join group_members m on m.server_uuid = s.uuid`);
  const servers: AuditedServer[] = [];
  const closed = new Set<string>();
  for (const { uuid, status, task_state, host, attempt_id, unchanged_ms, spec } of rows) {
    if (status === "CLOSED") closed.add(uuid);
    else {
      // Only members of groups with hard rules are recorded there, and only their specs are read.
      const group = spec === null ? null : (ServerSpec.decode(spec).group ?? null);
      const shown = { uuid, status, taskState: task_state, host, attemptId: attempt_id };
      servers.push({ ...shown, unchangedMs: unchanged_ms, group });
    }
  }
  return { servers, closed };
}

/** A task is attended while its owner's lease lasts, by the database's clock, as for leases. */
async function readOpenTasks(client: ClientBase): Promise<AuditedTask[]> {
  const { rows } = await client.query<{
    id: string;
    server_uuid: string;
    kind: AuditedTask["kind"];
    operation: string | null;
    stage: string | null;
    unattended_ms: number;
  }>(`
    select t.id, t.server_uuid, t.kind, t.operation, t.stage,
      greatest(0, extract(epoch from now() - coalesce(c.lease_expires_at, t.created_at)) * 1000)::float8 as unattended_ms
    from tasks t left join conductors c on c.id = t.owner
    where t.outcome is null`);
  return rows.map((row) => ({
    id: row.id,
    serverUuid: row.server_uuid,
    kind: row.kind,
    operation: row.operation,
    stage: row.stage,
    unattendedMs: row.unattended_ms,
  }));
}

async function readMoves(client: ClientBase): Promise<AuditedMove[]> {
  const { rows } = await client.query<{
    uuid: string;
    server_uuid: string;
    source_host: string | null;
    source_attempt_id: string | null;
    dest_host: string;
    dest_attempt_id: string;
    ended: boolean;
    note: string;
  }>(`select uuid, server_uuid, source_host, source_attempt_id, dest_host, dest_attempt_id, ended, note
    from migrations where not ended or holds_source`);
  return rows.map((row) => ({
    uuid: row.uuid,
    serverUuid: row.server_uuid,
    sourceHost: row.source_host,
    sourceAttemptId: row.source_attempt_id,
    destHost: row.dest_host,
    destAttemptId: row.dest_attempt_id,
    inFlight: !row.ended,
    isWaitShown: row.note !== "",
  }));
}

async function readKept(client: ClientBase): Promise<readonly KeptOffer[]> {
  const { rows } = await client.query<{ kept: readonly KeptOffer[] }>(
    "select kept from reported_trees where kept <> '[]'",
  );
  return rows.flatMap(({ kept }) => kept);
}

/** A host whose row was written since it came up counts as up since that write. */
async function readHosts(client: ClientBase): Promise<Pick<CellReading, "hosts" | "upMs">> {
  const { rows } = await client.query<{ name: string; root_provider: string; up: boolean; unchanged_ms: number }>(
    `select name, root_provider, up, extract(epoch from now() - updated_at)::float8 * 1000 as unchanged_ms from hosts`,
  );
  return {
    hosts: new Map(rows.map((row) => [row.name, providerUuid(row.root_provider)])),
    upMs: new Map(rows.filter((row) => row.up).map((row) => [row.name, row.unchanged_ms])),
  };
}
