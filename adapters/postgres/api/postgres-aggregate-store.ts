import type { Pool, PoolClient } from "pg";
import { type AggregateRecord, ZONE_KEY } from "../../../core/scheduling/aggregate-record.ts";
import {
  type AddHostOutcome,
  type AggregateChange,
  type AggregateStore,
  type AggregateWritten,
  type CreateAggregateOutcome,
  changedMetadata,
  type DeleteAggregateOutcome,
  type NewAggregate,
  type RemoveHostOutcome,
  type SetMetadataOutcome,
  type UpdateAggregateOutcome,
  type ZoneConflict,
  zoneOfMetadata,
} from "../../../core/stores/api/aggregate-store.ts";
import { runStored } from "../client/run-stored.ts";
import { queryRows, queryStored } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";
import { selectAggregate, selectAggregates } from "./read-aggregates.ts";

const ID_MAX = 2_147_483_647;
const UNKNOWN = { kind: "unknown" } as const;

/**
 * Aggregates in the API database. Lock order: the row of `aggregate_changes` comes first. It serialises all writers, so the rows that a
 * writer has read are still unchanged when it commits.
 */
export class PostgresAggregateStore implements AggregateStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async version(): Promise<number> {
    const [row] = await queryStored<{ version: number }>(this.#pool, {
      name: "aggregate_version",
      text: "select version from aggregate_changes",
      values: [],
    });
    return row?.version ?? 0;
  }

  aggregates(): Promise<readonly AggregateRecord[]> {
    return runStored("aggregates", () => selectAggregates(this.#pool));
  }

  aggregate(id: number): Promise<AggregateRecord | null> {
    if (id > ID_MAX) return Promise.resolve(null);
    return runStored("aggregate", () => selectAggregate(this.#pool, id));
  }

  create(aggregate: NewAggregate): Promise<CreateAggregateOutcome> {
    return this.#write("create_aggregate", async (client) => {
      const metadata = aggregate.zone === null ? {} : { [ZONE_KEY]: aggregate.zone };
      const [row] = await queryRows<{ id: number }>(client, {
        name: "insert_aggregate",
        text: `insert into aggregates (uuid, name, metadata) values ($1, $2, $3)
          on conflict (name) do nothing returning id`,
        values: [aggregate.uuid, aggregate.name, JSON.stringify(metadata)],
      });
      return row === undefined ? { kind: "name-taken" } : written(client, row.id);
    });
  }

  update(id: number, { name, zone }: AggregateChange): Promise<UpdateAggregateOutcome> {
    return this.#writeOne("update_aggregate", id, async (client, aggregate) => {
      if (name !== undefined && (await isNameTaken(client, id, name))) return { kind: "name-taken" };
      return writeMetadata(client, aggregate, zone === undefined ? {} : { [ZONE_KEY]: zone }, name);
    });
  }

  setMetadata(id: number, metadata: Readonly<Record<string, string | null>>): Promise<SetMetadataOutcome> {
    return this.#writeOne("set_aggregate_metadata", id, (client, aggregate) =>
      writeMetadata(client, aggregate, metadata),
    );
  }

  delete(id: number): Promise<DeleteAggregateOutcome> {
    return this.#writeOne("delete_aggregate", id, async (client, { uuid, hosts }) => {
      if (hosts.length > 0) return { kind: "has-hosts" };
      await queryRows(client, { name: "drop_aggregate", text: "delete from aggregates where id = $1", values: [id] });
      await queryRows(client, {
        name: "remember_aggregate",
        text: "insert into former_aggregates (uuid) values ($1) on conflict do nothing",
        values: [uuid],
      });
      return { kind: "deleted", uuid };
    });
  }

  addHost(id: number, host: string): Promise<AddHostOutcome> {
    return this.#writeOne("add_aggregate_host", id, async (client, { hosts, metadata }) => {
      if (hosts.includes(host)) return { kind: "host-present" };
      const zone = zoneOfMetadata(metadata);
      const conflict = zone === null ? null : await findConflict(client, { id, hosts: [host], zone });
      if (conflict !== null) return conflict;
      await queryRows(client, {
        name: "insert_aggregate_host",
        text: "insert into aggregate_hosts (aggregate_id, host) values ($1, $2)",
        values: [id, host],
      });
      return touched(client, id);
    });
  }

  removeHost(id: number, host: string): Promise<RemoveHostOutcome> {
    return this.#writeOne("remove_aggregate_host", id, async (client, { hosts }) => {
      if (!hosts.includes(host)) return { kind: "host-absent" };
      await queryRows(client, {
        name: "delete_aggregate_host",
        text: "delete from aggregate_hosts where aggregate_id = $1 and host = $2",
        values: [id, host],
      });
      return touched(client, id);
    });
  }

  async formerUuids(): Promise<readonly string[]> {
    const rows = await queryStored<{ uuid: string }>(this.#pool, {
      name: "former_aggregates",
      text: "select uuid from former_aggregates order by uuid",
      values: [],
    });
    return rows.map((row) => row.uuid);
  }

  #writeOne<Outcome>(
    operation: string,
    id: number,
    write: (client: PoolClient, aggregate: AggregateRecord) => Promise<Outcome>,
  ): Promise<Outcome | typeof UNKNOWN> {
    if (id > ID_MAX) return Promise.resolve(UNKNOWN);
    return this.#write<Outcome | typeof UNKNOWN>(operation, async (client) => {
      const aggregate = await selectAggregate(client, id);
      return aggregate === null ? UNKNOWN : write(client, aggregate);
    });
  }

  #write<Outcome>(operation: string, write: (client: PoolClient) => Promise<Outcome>): Promise<Outcome> {
    return runStored(operation, () =>
      inTransaction(this.#pool, async (client) => {
        await raiseVersion(client);
        return write(client);
      }),
    );
  }
}

/**
 * Must be the first statement of each transaction that writes aggregates or ratios. It locks out the other writers until the transaction
 * ends.
 */
export async function raiseVersion(client: PoolClient): Promise<void> {
  await queryRows(client, {
    name: "raise_aggregate_version",
    text: "update aggregate_changes set version = version + 1",
    values: [],
  });
}

async function isNameTaken(client: PoolClient, id: number, name: string): Promise<boolean> {
  const rows = await queryRows(client, {
    name: "aggregate_name_taken",
    text: "select id from aggregates where name = $1 and id <> $2",
    values: [name, id],
  });
  return rows.length > 0;
}

/** Finds a host that would be in two zones if these hosts of the aggregate were in `zone`. */
async function findConflict(
  client: PoolClient,
  { id, hosts, zone }: { readonly id: number; readonly hosts: readonly string[]; readonly zone: string },
): Promise<ZoneConflict | null> {
  const [row] = await queryRows<{ host: string; zone: string }>(client, {
    name: "aggregate_zone_conflict",
    text: `select h.host, a.metadata ->> '${ZONE_KEY}' as zone
      from aggregate_hosts h join aggregates a on a.id = h.aggregate_id
      where h.host = any ($1) and a.id <> $2 and a.metadata ->> '${ZONE_KEY}' <> $3
      order by h.host collate "C", a.id limit 1`,
    values: [hosts, id, zone],
  });
  return row === undefined ? null : { kind: "zone-conflict", host: row.host, zone: row.zone };
}

async function writeMetadata(
  client: PoolClient,
  { id, hosts, metadata, name: oldName }: AggregateRecord,
  changes: Readonly<Record<string, string | null>>,
  name = oldName,
): Promise<AggregateWritten | ZoneConflict> {
  const zone = changes[ZONE_KEY] ?? null;
  const conflict = zone === null ? null : await findConflict(client, { id, hosts, zone });
  if (conflict !== null) return conflict;
  await queryRows(client, {
    name: "write_aggregate",
    text: "update aggregates set name = $2, metadata = $3, updated_at = now() where id = $1",
    values: [id, name, JSON.stringify(changedMetadata(metadata, changes))],
  });
  return written(client, id);
}

async function touched(client: PoolClient, id: number): Promise<AggregateWritten> {
  await queryRows(client, {
    name: "touch_aggregate",
    text: "update aggregates set updated_at = now() where id = $1",
    values: [id],
  });
  return written(client, id);
}

async function written(client: PoolClient, id: number): Promise<AggregateWritten> {
  const aggregate = await selectAggregate(client, id);
  if (aggregate === null) throw new Error(`aggregate ${id} went while its row was locked`);
  return { kind: "written", aggregate };
}
