import type { Pool } from "pg";
import type { TransferProgress } from "../../../core/agent/transfer-progress.ts";
import { assert } from "../../../core/assert.ts";
import { release } from "../../../core/ledger/allocation-change.ts";
import type { Holding } from "../../../core/ledger/holding.ts";
import { consumerUuid, providerUuid, resourceClass } from "../../../core/ledger/ids.ts";
import { CONSUMER_TYPE_MIGRATION } from "../../../core/ledger/model.ts";
import { type ComparedHost, isHeldFor, type MigrationQuery } from "../../../core/stores/cell/operation-store.ts";
import type { Migration } from "../../../core/tasks/migration.ts";
import type { OperationKind } from "../../../core/tasks/operation-kinds.ts";
import { migrationWith } from "../../../core/tasks/operation-record.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { runStored } from "../client/run-stored.ts";
import { onlyUuids, queryRows, queryStored, selectMs } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";
import { encodeChanges } from "../ledger/encode-changes.ts";
import { LEAST_UUID } from "./read-servers.ts";
import { taskOf } from "./take-tasks.ts";

interface MigrationRow {
  readonly uuid: string;
  readonly server_uuid: string;
  readonly kind: OperationKind;
  readonly status: string;
  readonly source_host: string | null;
  readonly source_attempt_id: string | null;
  readonly dest_host: string;
  readonly dest_attempt_id: string;
  readonly ended: boolean;
  readonly holds_source: boolean;
  readonly note: string;
  readonly created_at_ms: number;
  readonly updated_at_ms: number;
  readonly payload: Buffer;
  /** Total, processed and remaining bytes of the memory, then of the disks. Null when nothing was reported. */
  readonly transferred: readonly number[] | null;
}

const SELECT = `select m.created_at as ordered_at, m.uuid, m.server_uuid, m.kind, m.status, m.source_host, m.source_attempt_id, m.dest_host,
    m.dest_attempt_id, m.ended, m.holds_source, m.note, ${selectMs("created_at", "m.")}, ${selectMs("updated_at", "m.")}, t.payload,
    case when p.migration_uuid is not null then array[p.memory_total, p.memory_processed, p.memory_remaining, p.disk_total,
      p.disk_processed, p.disk_remaining]::float8[] end as transferred
  from migrations m join tasks t on t.id = m.uuid left join transfer_progress p on p.migration_uuid = m.uuid`;

/**
 * The statement has only the conditions of this query, since a kept plan for a prepared `$1 is null or …` would walk through all migrations. Cost: one round trip, and a look at
 * no more than `limit` entries of an index, or twice as many with a host.
 */
export async function readMigrations(pool: Pool, query: MigrationQuery): Promise<readonly Migration[]> {
  const { serverUuid, uuids, host, inFlightOnly = false, after, untilMs, limit } = query;
  if (serverUuid !== undefined && onlyUuids([serverUuid]).length === 0) return [];
  const values: unknown[] = [limit];
  const conditions: string[] = [];
  let name = "migrations_in_order";
  const where = (asked: string, condition: string): void => {
    name += `_${asked}`;
    conditions.push(condition);
  };
  if (serverUuid !== undefined) where("server", `server_uuid = $${values.push(serverUuid)}::uuid`);
  if (uuids !== undefined) where("uuids", `uuid = any ($${values.push(textArrayLiteral(onlyUuids(uuids)))}::uuid[])`);
  if (inFlightOnly) where("flying", "not ended");
  if (after !== undefined) {
    const marker = `(select %s from migrations where uuid = $${values.push(after)})`;
    const [at, uuid] = [marker.replace("%s", "created_at"), marker.replace("%s", "uuid")];
    // Only this first condition bounds the index scan.
    where("after", `created_at <= ${at} and (created_at < ${at} or uuid > ${uuid})`);
  }
  // A migration's time in milliseconds is rounded down, so everything within that millisecond counts.
  if (untilMs !== undefined) where("until", `created_at < to_timestamp(($${values.push(untilMs)}::float8 + 1) / 1000)`);
  const found = (...others: readonly string[]) =>
    `(select uuid, created_at from migrations where ${[...others, ...conditions].join(" and ") || "true"}
        order by created_at desc, uuid limit $1)`;
  const isAt = `$${values.length + 1}::text`;
  const wanted =
    host === undefined ? found() : `${found(`source_host = ${isAt}`)} union ${found(`dest_host = ${isAt}`)}`;
  const rows = await queryStored<MigrationRow>(pool, {
    name: host === undefined ? name : `${name}_host`,
    // With "offset 0", each migration and its task are read by their keys.
    text: `with wanted as materialized (${wanted})
      select r.* from (select uuid from wanted order by created_at desc, uuid limit $1) w
      cross join lateral (${SELECT} where m.uuid = w.uuid offset 0) r
      order by r.ordered_at desc, r.uuid`,
    values: host === undefined ? values : [...values, host],
  });
  return rows.map(migrationOf);
}

export async function readUnconfirmed(
  pool: Pool,
  waitedMs: number,
  limit: number,
  after: string | null,
): Promise<readonly Migration[]> {
  const rows = await queryStored<MigrationRow>(pool, {
    name: "unconfirmed_migrations_after",
    text: `${SELECT}
      where not m.ended and m.status = 'finished' and m.updated_at <= now() - $1::float8 * interval '1 ms' and m.server_uuid > $3::uuid
      order by m.server_uuid limit $2`,
    values: [waitedMs, limit, after ?? LEAST_UUID],
  });
  return rows.map(migrationOf);
}

function progressOf(transferred: readonly number[]): TransferProgress {
  const at = (from: number) => {
    const [total = 0, processed = 0, remaining = 0] = transferred.slice(from, from + 3);
    return { total, processed, remaining };
  };
  return { memory: at(0), disks: at(3) };
}

function migrationOf(row: MigrationRow): Migration {
  const columns = {
    uuid: row.uuid,
    serverUuid: row.server_uuid,
    kind: row.kind,
    status: row.status,
    sourceHost: row.source_host,
    sourceAttemptId: row.source_attempt_id,
    destHost: row.dest_host,
    destAttemptId: row.dest_attempt_id,
    ended: row.ended,
    holdsSource: row.holds_source,
    note: row.note,
    progress: row.transferred === null ? null : progressOf(row.transferred),
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
  };
  return migrationWith(columns, taskOf({ id: row.uuid, payload: row.payload }));
}

interface HeldRow {
  readonly uuid: string;
  readonly source_host: string;
  readonly server_uuid: string;
  readonly source_attempt_id: string | null;
  readonly claimed_attempt_ids: readonly (string | null)[];
}

function readHeld(pool: Pool, hosts: readonly string[]): Promise<readonly HeldRow[]> {
  return queryStored<HeldRow>(pool, {
    name: "held_for_guests",
    text: `select m.uuid, m.source_host, m.server_uuid, m.source_attempt_id,
        array[s.attempt_id, o.source_attempt_id, o.dest_attempt_id] as claimed_attempt_ids
      from migrations m left join servers s on s.uuid = m.server_uuid
      left join migrations o on o.server_uuid = m.server_uuid and not o.ended
      where m.source_host = any ($1) and m.holds_source`,
    values: [textArrayLiteral(hosts)],
  });
}

/**
 * Releases the allocations of these hosts' migrations, except for guests that remain there. Lock order: migrations, then the locks of
 * ledger_apply. Cost: one round trip when there is nothing to release, as is nearly always the case, otherwise five.
 */
export async function releaseEvacuated(
  pool: Pool,
  compared: readonly ComparedHost[],
): Promise<readonly (readonly string[])[]> {
  const hosts = compared.map(({ host }) => host);
  const byHost = new Map(compared.map((one) => [one.host, one]));
  const gone = (await readHeld(pool, hosts)).filter((row) => {
    const { remaining, held } = byHost.get(row.source_host)!;
    if (held !== undefined && !held.includes(row.uuid)) return false;
    const { server_uuid: serverUuid, source_attempt_id: attemptId, claimed_attempt_ids: claimedAttemptIds } = row;
    return !isHeldFor({ serverUuid, attemptId, claimedAttemptIds }, remaining);
  });
  if (gone.length === 0) return hosts.map(() => []);
  const released = await runStored("release_evacuated", () =>
    inTransaction(pool, async (client) => {
      const rows = await queryRows<{ uuid: string; source_host: string }>(client, {
        name: "release_evacuated",
        text: `update migrations set holds_source = false where uuid = any ($1) and holds_source
          returning uuid, source_host`,
        values: [textArrayLiteral(gone.map((row) => row.uuid))],
      });
      const sorted = rows.toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1));
      await releaseMigrations(
        client,
        sorted.map((row) => row.uuid),
      );
      return Map.groupBy(sorted, (row) => row.source_host);
    }),
  );
  return hosts.map((host) => (released.get(host) ?? []).map((row) => row.uuid));
}

/** Must run within a transaction. */
export async function releaseMigrations(client: Parameters<typeof queryRows>[0], uuids: readonly string[]) {
  if (uuids.length === 0) return;
  const nobody = { projectId: "", userId: "", type: CONSUMER_TYPE_MIGRATION };
  const rows = await queryRows<{ kind: string }>(client, {
    name: "release_migrations",
    text: "select kind from ledger_apply($1::ledger_batch)",
    values: [encodeChanges(uuids.map((uuid) => release(consumerUuid(uuid), nobody)))],
  });
  assert(
    rows.every((row) => row.kind === "committed"),
    "the ledger refused a release",
  );
}

export async function readHoldings(pool: Pool, consumerUuids: readonly string[]): Promise<readonly (Holding | null)[]> {
  const rows = await queryStored<{ uuid: string; generation: number; provider: string; class: string; amount: string }>(
    pool,
    {
      name: "holdings",
      text: `select c.uuid, c.generation, p.uuid as provider, r.name as class, a.amount
        from consumers c join allocations a on a.consumer_uuid = c.uuid
        join resource_providers p on p.id = a.provider_id join resource_classes r on r.id = a.class_id
        where c.uuid = any ($1) order by p.uuid, r.name collate "C"`,
      values: [textArrayLiteral(onlyUuids(consumerUuids))],
    },
  );
  return consumerUuids.map((uuid) => {
    const held = rows.filter((row) => row.uuid === uuid);
    if (held[0] === undefined) return null;
    const items = held.map((row) => ({
      provider: providerUuid(row.provider),
      resourceClass: resourceClass(row.class),
      amount: Number(row.amount),
    }));
    return { generation: held[0].generation, items };
  });
}
