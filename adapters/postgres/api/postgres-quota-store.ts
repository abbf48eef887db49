import type { Pool, PoolClient } from "pg";
import {
  amountsChange,
  type ClassAmounts,
  increaseOf,
  NO_SERVERS,
  NO_SET_LIMITS,
  NO_USAGE,
  type QuotaExcess,
  type QuotaLimits,
  type QuotaResource,
  type ServerAmounts,
  type ServerUsage,
  type SetLimits,
  type StatedLimits,
  sumOf,
} from "../../../core/stores/api/quota-limits.ts";
import type {
  ChargedResize,
  QuotaScope,
  QuotaStore,
  ResizeCharge,
  SeenCharge,
} from "../../../core/stores/api/quota-store.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { runStored } from "../client/run-stored.ts";
import { onlyUuids, queryRows, queryStored } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";
import { jsonOfClasses, readClasses } from "./class-amounts.ts";
import { limitsOfRows, lockQuotas, readQuota, readSetLimits, readUsages, withClasses } from "./read-quotas.ts";

interface CountedRow {
  readonly project_id: string;
  readonly user_id: string;
  readonly cores: number;
  readonly ram: number;
  /** Null while it is not counted by class. */
  readonly classes: Readonly<Record<string, number>> | null;
}

/** Quotas in the API database. Lock order: the quotas of a project, the request, its usage, its note. */
export class PostgresQuotaStore implements QuotaStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async setLimits({ projectId, userId }: QuotaScope, limits: Partial<QuotaLimits>): Promise<void> {
    await queryStored(this.#pool, {
      name: "set_quotas",
      text: `insert into quotas (project_id, user_id, resource, hard_limit)
        select $1, $2, l.resource, l.hard_limit from unnest($3::text[], $4::int[]) as l (resource, hard_limit) order by l.resource
        on conflict (project_id, user_id, resource) do update set hard_limit = excluded.hard_limit`,
      values: [projectId, userId ?? "", ...columnsOf(limits)],
    });
  }

  async limits(projectId: string): Promise<SetLimits> {
    const limits = await runStored("set_limits", () => readSetLimits(this.#pool, [projectId]));
    return limits.get(projectId) ?? NO_SET_LIMITS;
  }

  async forgetLimits({ projectId, userId }: QuotaScope): Promise<void> {
    await queryStored(this.#pool, {
      name: "forget_quotas",
      text: "delete from quotas where project_id = $1 and ($2::text is null or user_id = $2)",
      values: [projectId, userId],
    });
  }

  async setClassLimits(className: string, limits: Partial<QuotaLimits>): Promise<void> {
    await queryStored(this.#pool, {
      name: "set_quota_class",
      text: `insert into quota_classes (class, resource, hard_limit)
        select $1, l.resource, l.hard_limit from unnest($2::text[], $3::int[]) as l (resource, hard_limit) order by l.resource
        on conflict (class, resource) do update set hard_limit = excluded.hard_limit`,
      values: [className, ...columnsOf(limits)],
    });
  }

  async classLimits(className: string): Promise<Partial<QuotaLimits>> {
    const rows = await queryStored<{ resource: QuotaResource; hard_limit: number }>(this.#pool, {
      name: "quota_class",
      text: "select resource, hard_limit from quota_classes where class = $1",
      values: [className],
    });
    return limitsOfRows(rows);
  }

  async usage(
    projectId: string,
    { withClasses: hasClasses }: { readonly withClasses: boolean } = { withClasses: false },
  ): Promise<ServerUsage> {
    return runStored("quota_usages", async () => {
      const usage = (await readUsages(this.#pool, [projectId])).get(projectId) ?? NO_USAGE;
      return hasClasses ? withClasses(usage, (await readClasses(this.#pool, [projectId])).get(projectId)) : usage;
    });
  }

  async chargeResize(
    { serverUuid, amounts }: ResizeCharge,
    defaults: QuotaLimits,
    stated?: StatedLimits,
  ): Promise<QuotaExcess | null> {
    if (onlyUuids([serverUuid]).length === 0) return null;
    return this.#write("charge_resize", async (client) => {
      const owner = await counted(client, serverUuid, false);
      if (owner === null) return null;
      await lockQuotas(client, [owner.project_id]);
      // It is read before the server, because it may be what counts the server by class.
      const quota = await readQuota(client, owner.project_id, { defaults, stated });
      const now = await counted(client, serverUuid, true);
      if (now === null) return null;
      const more = increaseOf(amountsOfRow(now), amounts);
      const excess = quota.admit(now.user_id, more);
      if (excess !== null) return excess;
      await count(client, { serverUuid, owner: now, more });
      await queryRows(client, {
        name: "note_charged_resize",
        text: `insert into charged_resizes as c (server_uuid, version, looked_at, classes) values ($1, 1, clock_timestamp(), $2)
          on conflict (server_uuid) do update set version = c.version + 1, looked_at = clock_timestamp(), classes = (
            select jsonb_object_agg(most.key, most.amount) from (
              select b.key, max(b.value::bigint) as amount
              from (select * from jsonb_each_text(c.classes) union all select * from jsonb_each_text(excluded.classes)) b group by b.key
            ) most
          )`,
        values: [serverUuid, jsonOfClasses(amounts.classes ?? NO_CLASSES)],
      });
      return null;
    });
  }

  async chargedResizes(untouchedMs: number, limit: number): Promise<readonly ChargedResize[]> {
    const rows = await queryStored<{ server_uuid: string; version: number }>(this.#pool, {
      name: "charged_resizes",
      text: `with due as (
          select server_uuid from charged_resizes where looked_at <= clock_timestamp() - $1::float8 * interval '1 ms'
          order by looked_at limit $2 for update skip locked
        )
        update charged_resizes c set looked_at = clock_timestamp() from due
        where c.server_uuid = due.server_uuid returning c.server_uuid, c.version::float8`,
      values: [untouchedMs, limit],
    });
    return rows.map((row) => ({ serverUuid: row.server_uuid, version: row.version }));
  }

  async soleCharge(serverUuid: string): Promise<SeenCharge | null> {
    const [seen] = await queryStored<{ touched: string }>(this.#pool, {
      name: "sole_charge",
      text: "select extract(epoch from looked_at)::text as touched from charged_resizes where server_uuid = any ($1::uuid[]) and version = 1",
      values: [onlyUuids([serverUuid])],
    });
    return seen === undefined ? null : { serverUuid, version: 1, touched: seen.touched };
  }

  async settleResize(resize: ChargedResize | SeenCharge, amounts: ServerAmounts): Promise<void> {
    const { serverUuid, version } = resize;
    const touched = "touched" in resize ? resize.touched : null;
    await this.#write("settle_resize", async (client) => {
      const now = await counted(client, serverUuid, true);
      // A server that is deleted softly is not counted, and its charge is needed after it is restored. It may have been restored since it was read.
      const settled = await queryRows(client, {
        name: now === null ? "settle_charge_of_gone" : "settle_charged_resize",
        text: `update charged_resizes set settles_classes = true where server_uuid = $1 and version = $2
          and ($3::numeric is null or extract(epoch from looked_at) = $3::numeric)
          ${now === null ? "and not exists (select from requests where server_uuid = $1 and state = 'dispatched')" : ""} returning server_uuid`,
        values: [serverUuid, version, touched],
      });
      if (settled.length === 0) return;
      await queryRows(client, {
        name: "drop_charged_resize",
        text: "delete from charged_resizes where server_uuid = $1",
        values: [serverUuid],
      });
      if (now === null) return;
      const more = amountsChange(amountsOfRow(now), amounts);
      await count(client, { serverUuid, owner: now, more });
    });
  }

  #write<Outcome>(operation: string, write: (client: PoolClient) => Promise<Outcome>): Promise<Outcome> {
    return runStored(operation, () => inTransaction(this.#pool, write));
  }
}

/** The amounts of a living server, with its project and user. Null when it is unknown or deleted. */
async function counted(client: PoolClient, serverUuid: string, locks: boolean): Promise<CountedRow | null> {
  const [row] = await queryRows<CountedRow>(client, {
    name: locks ? "lock_counted_server" : "counted_server",
    text: `select project_id, user_id, cores, ram_mib as ram, classes from requests where server_uuid = $1 and not gone
      ${locks ? "for no key update" : ""}`,
    values: [serverUuid],
  });
  return row ?? null;
}

const amountsOfRow = ({ cores, ram, classes }: CountedRow): ServerAmounts => ({
  ...{ instances: 1, cores, ram },
  ...(classes !== null && { classes: new Map(Object.entries(classes)) }),
});

/** Changes the amounts of a server. They may also become smaller. */
async function count(
  client: PoolClient,
  {
    serverUuid,
    owner,
    more,
  }: { readonly serverUuid: string; readonly owner: CountedRow; readonly more: ServerAmounts },
): Promise<void> {
  if (owner.classes !== null && more.classes !== undefined)
    await countClassesOf(client, { serverUuid, owner, more: more.classes });
  if (more.cores === 0 && more.ram === 0) return;
  await queryRows(client, {
    name: "count_resize",
    text: "update requests set cores = cores + $2, ram_mib = ram_mib + $3 where server_uuid = $1",
    values: [serverUuid, more.cores, more.ram],
  });
  await queryRows(client, {
    name: "count_resized",
    text: `insert into quota_usages as u (project_id, user_id, shard, instances, cores, ram_mib) values ($1, $2, 0, 0, $3, $4)
      on conflict (project_id, user_id, shard) do update set cores = u.cores + excluded.cores, ram_mib = u.ram_mib + excluded.ram_mib`,
    values: [owner.project_id, owner.user_id, more.cores, more.ram],
  });
}

/** Changes what a server counts for of each resource class. */
async function countClassesOf(
  client: PoolClient,
  { serverUuid, owner, more }: { readonly serverUuid: string; readonly owner: CountedRow; readonly more: ClassAmounts },
): Promise<void> {
  const changed = [...more].filter(([, amount]) => amount !== 0);
  if (changed.length === 0) return;
  const { classes = NO_CLASSES } = sumOf(amountsOfRow(owner), { ...NO_SERVERS, classes: new Map(changed) });
  const left = new Map([...classes].filter(([, amount]) => amount !== 0));
  await queryRows(client, {
    name: "count_classes_of_resize",
    text: "update requests set classes = $2::jsonb where server_uuid = $1",
    values: [serverUuid, jsonOfClasses(left)],
  });
  await queryRows(client, {
    name: "count_classes_of_resized",
    text: `insert into quota_class_usages as u (project_id, class, shard, amount)
      select $1, c.class, 0, c.amount from unnest($2::text[], $3::float8[]) as c (class, amount) order by c.class
      on conflict (project_id, class, shard) do update set amount = u.amount + excluded.amount`,
    values: [
      owner.project_id,
      textArrayLiteral(changed.map(([name]) => name)),
      arrayLiteral(changed.map(([, by]) => by)),
    ],
  });
}

const NO_CLASSES: ClassAmounts = new Map();

function columnsOf(limits: Partial<QuotaLimits>): readonly [string, string] {
  const entries = Object.entries(limits);
  return [textArrayLiteral(entries.map(([resource]) => resource)), arrayLiteral(entries.map(([, limit]) => limit))];
}
