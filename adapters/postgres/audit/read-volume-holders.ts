import type { Client } from "pg";
import type { AuditedHolder } from "../../../core/audit/check-cinder.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { withClient } from "../client/databases.ts";

/** How many servers' specs are read at a time. */
const SERVERS_PER_READ = 500;

/** A volume of Cinder that the API database gives to a server. */
export interface NamedVolume {
  readonly volumeId: string;
  readonly serverUuid: string;
  /** Whether an api attaches it, or ends that, at present. */
  readonly isUnderWay: boolean;
}

/** Reads the volumes of Cinder that the API database gives to servers. Memory: one entry for each. */
export function readNamedVolumes(apiUrl: string): Promise<readonly NamedVolume[]> {
  return withClient(apiUrl, async (client) => {
    const { rows } = await client.query<{ id: string; server_uuid: string; phase: string }>(
      "select coalesce(volume_id, id) as id, server_uuid, phase from volumes where in_cinder and phase is not null",
    );
    return rows.map(({ id: volumeId, server_uuid: serverUuid, phase }) => ({
      volumeId,
      serverUuid,
      isUnderWay: phase !== "attached",
    }));
  });
}

/** Which of these servers have a request that has not ended, as far as the API database knows: they may be on their way to a cell. */
export function readOpenRequests(apiUrl: string, servers: readonly string[]): Promise<ReadonlySet<string>> {
  return withClient(apiUrl, async (client) => {
    const { rows } = await client.query<{ server_uuid: string }>(
      `select server_uuid from requests
       where server_uuid = any($1::uuid[]) and state in ('accepted', 'dispatched', 'cancelled')`,
      [servers],
    );
    return new Set(rows.map((row) => row.server_uuid));
  });
}

/**
 * Reads which volumes of Cinder these servers have, and those servers that have one of these volumes, as far as a cell has them. Deleted ones have none. Cost: all servers are
 * searched for each of the volumes.
 */
export function readVolumeHolders(
  { cell, databaseUrl }: { readonly cell: string; readonly databaseUrl: string },
  asked: { readonly servers: readonly string[]; readonly volumes: readonly string[] },
  patienceMs: number,
): Promise<ReadonlyMap<string, AuditedHolder>> {
  return withClient(databaseUrl, async (client) => {
    const servers = [...new Set([...asked.servers, ...(await serversWith(client, asked.volumes))])];
    const holders = new Map<string, AuditedHolder>();
    for (let from = 0; from < servers.length; from += SERVERS_PER_READ) {
      const { rows } = await client.query<HolderRow>(
        `select uuid, status, task_state, host, launched_at is null as never_ran, spec, extract(epoch from now() - updated_at)::float8 * 1000 as unchanged_ms
         from servers where uuid = any($1::uuid[]) and status <> 'CLOSED'`,
        [servers.slice(from, from + SERVERS_PER_READ)],
      );
      for (const row of rows) holders.set(row.uuid, holderOf(row, cell, patienceMs));
    }
    return holders;
  });
}

/** Returns the servers whose specs have one of these ids. */
async function serversWith(client: Client, volumes: readonly string[]): Promise<readonly string[]> {
  if (volumes.length === 0) return [];
  const { rows } = await client.query<{ uuid: string }>(
    `select uuid from servers where status not in ('CLOSED', 'DELETED')
       and exists (select from unnest($1::bytea[]) as v (id) where position(v.id in spec) > 0)`,
    [volumes.map((id) => Buffer.from(id))],
  );
  return rows.map(({ uuid }) => uuid);
}

interface HolderRow {
  readonly uuid: string;
  readonly status: string;
  readonly task_state: string | null;
  readonly host: string | null;
  readonly never_ran: boolean;
  readonly spec: Buffer;
  readonly unchanged_ms: number;
}

/** A server that waits for the confirmation of a resize has attachments of two hosts, and the volumes of one that could not be built are free again, which its spec does not tell. */
function holderOf(row: HolderRow, cell: string, patienceMs: number): AuditedHolder {
  const isUnbuilt = row.status === "ERROR" && row.host === null && row.never_ran;
  const isUnderWay = row.task_state !== null || ["BUILD", "VERIFY_RESIZE"].includes(row.status);
  const isAtRest = !isUnbuilt && !isUnderWay && row.unchanged_ms >= patienceMs;
  const volumes =
    row.status === "DELETED" ? [] : ServerSpec.decode(row.spec).volumes.filter(({ inCinder }) => inCinder);
  const inDoubt = volumes.filter(({ replacedBy }) => replacedBy !== "");
  return {
    cell,
    isAtRest,
    volumes: volumes.filter(({ replacedBy }) => replacedBy === "").map(({ volumeId }) => volumeId),
    inDoubt: inDoubt.flatMap(({ volumeId, replacedBy }) => [volumeId, replacedBy]),
  };
}
