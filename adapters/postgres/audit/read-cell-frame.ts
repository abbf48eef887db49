import type { ClientBase } from "pg";
import type { AuditedMove, CellFrame, VolumeInDoubt } from "../../../core/audit/facts.ts";
import { type ProviderUuid, providerUuid, type ResourceClass, resourceClass } from "../../../core/ledger/ids.ts";
import type { KeptOffer } from "../../../core/ledger/merge-report.ts";
import type { AllocationItem } from "../../../core/ledger/model.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { readProviders } from "../ledger/read-ledger.ts";

/** The names of the database's own numbers. No foreign key ties allocations to other tables, so a number may have no name. */
export interface LedgerNames {
  readonly provider: (id: number) => ProviderUuid;
  readonly class: (id: number) => ResourceClass;
}

/** Reads what all servers of a cell share. Memory and cost: one entry for each provider, inventory, host and unsettled move, and one look at each allocation. */
export async function readCellFrame(
  client: ClientBase,
  cell: string,
): Promise<{ readonly frame: CellFrame; readonly names: LedgerNames }> {
  const names = await readNames(client);
  const frame = {
    cell,
    providers: await readProviders(client),
    allocated: await readSums(client, names),
    kept: await readKept(client),
    volumesInDoubt: await readVolumesInDoubt(client),
    moves: await readMoves(client),
    ...(await readHosts(client)),
  };
  return { frame, names };
}

async function readNames(client: ClientBase): Promise<LedgerNames> {
  const namesOf = async <Name>(query: string, name: (text: string) => Name, unknown: string) => {
    const { rows } = await client.query<{ id: number; name: string }>(query);
    const byId = new Map(rows.map((row) => [row.id, name(row.name)]));
    return (id: number): Name => byId.get(id) ?? name(`${unknown} ${id}`);
  };
  return {
    provider: await namesOf("select id, uuid as name from resource_providers", providerUuid, "number"),
    class: await namesOf("select id, name from resource_classes", resourceClass, "class"),
  };
}

async function readSums(client: ClientBase, names: LedgerNames): Promise<readonly AllocationItem[]> {
  const { rows } = await client.query<{ provider_id: number; class_id: number; amount: number }>(
    "select provider_id, class_id, sum(amount)::float8 as amount from allocations group by provider_id, class_id",
  );
  return rows.map((row) => ({
    provider: names.provider(row.provider_id),
    resourceClass: names.class(row.class_id),
    amount: row.amount,
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

/** A volume comes into doubt only by a replacement that has failed, so that few specs are read (index `tasks_failed_replacements`). */
async function readVolumesInDoubt(client: ClientBase): Promise<readonly VolumeInDoubt[]> {
  const { rows } = await client.query<{ uuid: string; host: string | null; spec: Buffer }>(
    `select uuid, host, spec from servers
     where status not in ('DELETED', 'CLOSED') and task_state is null
       and uuid in (select server_uuid from tasks where operation in ('swap-volume', 'swap-volume-unconfirmed') and outcome = 'error')`,
  );
  return rows.flatMap(({ uuid: serverUuid, host, spec }) =>
    ServerSpec.decode(spec)
      .volumes.filter(({ replacedBy }) => replacedBy !== "")
      .map(({ volumeId, replacedBy }) => ({ serverUuid, host, volumeId, replacedBy })),
  );
}

async function readKept(client: ClientBase): Promise<readonly KeptOffer[]> {
  const { rows } = await client.query<{ kept: readonly KeptOffer[] }>(
    "select kept from reported_trees where kept <> '[]'",
  );
  return rows.flatMap(({ kept }) => kept);
}

/** A host whose row was written since it came up counts as up since that write. */
async function readHosts(client: ClientBase): Promise<Pick<CellFrame, "hosts" | "upMs">> {
  const { rows } = await client.query<{ name: string; root_provider: string; up: boolean; unchanged_ms: number }>(
    `select name, root_provider, up, extract(epoch from now() - updated_at)::float8 * 1000 as unchanged_ms from hosts`,
  );
  return {
    hosts: new Map(rows.map((row) => [row.name, providerUuid(row.root_provider)])),
    upMs: new Map(rows.filter((row) => row.up).map((row) => [row.name, row.unchanged_ms])),
  };
}
