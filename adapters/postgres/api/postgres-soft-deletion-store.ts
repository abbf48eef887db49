import type { Pool, PoolClient } from "pg";
import type { ClassAmounts, ServerAmounts } from "../../../core/stores/api/quota-limits.ts";
import {
  DOUBLINGS_MAX,
  type RestoreOutcome,
  type SoftDeletion,
  type SoftDeletionAim,
  type SoftDeletionStore,
} from "../../../core/stores/api/soft-deletion-store.ts";
import type { ListPosition } from "../../../core/stores/cell/listed-servers.ts";
import type { Caller } from "../../../proto/gen/berth/cell.ts";
import { runStored } from "../client/run-stored.ts";
import { onlyUuids, queryRows, queryStored, type StoreQuery, selectMs } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";
import { classesWithCharge, jsonOfClasses, noteForSettling } from "./class-amounts.ts";
import { CLASSES_ASIDE, countClasses, countUsage } from "./count-usage.ts";
import { lockQuotas, readQuota } from "./read-quotas.ts";

interface DeletionRow {
  readonly server_uuid: string;
  readonly aim: SoftDeletionAim;
  readonly version: number;
  readonly asked_by: Caller;
  readonly tries: number;
}

interface OwnerRow {
  readonly project_id: string;
  readonly user_id: string;
  readonly cores: number;
  readonly ram: number;
  readonly classes: Readonly<Record<string, number>> | null;
  /** What was charged for a resize, if that is not settled. */
  readonly charged: Readonly<Record<string, number>> | null;
  readonly spec: Buffer;
}

type Version = Pick<SoftDeletion, "serverUuid" | "version">;

const COLUMNS = "d.server_uuid, d.aim, d.version, d.asked_by, d.tries";

/** Soft deletions in the API database. Lock order: the quotas of a project, the request, its usage, its soft deletion. */
export class PostgresSoftDeletionStore implements SoftDeletionStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async deleteSoftly(serverUuid: string, askedBy: Caller): Promise<SoftDeletion | null> {
    if (onlyUuids([serverUuid]).length === 0) return null;
    return this.#first({
      name: "delete_softly",
      text: `with marked as (
          update requests set gone = true, updated_at = now(), ${CLASSES_ASIDE} where server_uuid = $1 and state = 'dispatched' and not gone
          returning server_uuid, project_id, user_id, cores, ram_mib, classes
        ), ${countUsage("given_back", "marked", -1)}, ${countClasses("classes_given_back", "marked", -1)}
        insert into soft_deletions as d (server_uuid, aim, asked_by, deleted_at, looked_at)
        select server_uuid, 'deleted', $2::jsonb, clock_timestamp(), clock_timestamp() from marked
        on conflict (server_uuid) do update set aim = 'deleted', version = d.version + 1, asked_by = excluded.asked_by,
          deleted_at = excluded.deleted_at, looked_at = excluded.looked_at, tries = 0, settled = false
        returning ${COLUMNS}`,
      values: [serverUuid, JSON.stringify(askedBy)],
    });
  }

  async restore(
    serverUuid: string,
    { askedBy, defaults, stated }: Parameters<SoftDeletionStore["restore"]>[1],
  ): Promise<RestoreOutcome> {
    if (onlyUuids([serverUuid]).length === 0) return { kind: "not-deleted" };
    return runStored("restore_server", () =>
      inTransaction(this.#pool, async (client): Promise<RestoreOutcome> => {
        const found = await ownerOf(client, serverUuid, false);
        if (found === null) return { kind: "not-deleted" };
        const { project_id: project } = found;
        if (defaults !== null) await lockQuotas(client, [project]);
        // It is read before the server is locked, because it may lock the project's servers, in their order.
        const quota =
          defaults === null ? null : await readQuota(client, project, { defaults, stated, next: serverUuid });
        const owner = await ownerOf(client, serverUuid, true);
        if (owner === null) return { kind: "not-deleted" };
        const classes = stated === undefined ? undefined : classesWithCharge(owner);
        const excess = quota?.admit(owner.user_id, amountsOf(owner, classes)) ?? null;
        if (excess !== null) return { kind: "over-quota", excess };
        const [row] = await queryRows<DeletionRow>(client, {
          name: "aim_at_restoring",
          text: `with restored as (
              update soft_deletions d set aim = 'restored', version = version + 1, asked_by = $2::jsonb, tries = 0, settled = false,
                looked_at = clock_timestamp()
              where server_uuid = $1 and aim = 'deleted' returning ${COLUMNS}
            ), listed as (
              update requests r set gone = false, updated_at = now(), classes_aside = null, classes = coalesce(r.classes, $3::jsonb)
              from restored d where r.server_uuid = d.server_uuid
              returning r.project_id, r.user_id, r.cores, r.ram_mib, r.classes
            ), ${countUsage("counted", "listed", 1)}, ${countClasses("classes_counted", "listed", 1)}
            select * from restored`,
          values: [serverUuid, JSON.stringify(askedBy), classes === undefined ? null : jsonOfClasses(classes)],
        });
        if (row !== undefined && owner.classes === null && classes !== undefined)
          await noteForSettling(client, [serverUuid]);
        return row === undefined ? { kind: "not-deleted" } : { kind: "restoring", deletion: deletionOf(row) };
      }),
    );
  }

  async softDeletion(serverUuid: string): Promise<SoftDeletion | null> {
    if (onlyUuids([serverUuid]).length === 0) return null;
    return this.#first({
      name: "soft_deletion",
      text: `select ${COLUMNS} from soft_deletions d where server_uuid = $1`,
      values: [serverUuid],
    });
  }

  async softlyDeleted(projectId: string | null, limit: number): Promise<readonly ListPosition[]> {
    const rows = await queryStored<{ server_uuid: string; created_at_ms: number }>(this.#pool, {
      name: `softly_deleted${projectId === null ? "" : "_of_project"}`,
      text: `select d.server_uuid, ${selectMs("created_at", "r.")} from soft_deletions d join requests r on r.server_uuid = d.server_uuid
        where d.aim = 'deleted' and r.state = 'dispatched' ${projectId === null ? "" : "and r.project_id = $2"}
        order by d.deleted_at desc limit $1`,
      values: [limit, ...(projectId === null ? [] : [projectId])],
    });
    return rows.map((row) => ({ uuid: row.server_uuid, createdAtMs: row.created_at_ms }));
  }

  async due(untouchedMs: number, limit: number): Promise<readonly SoftDeletion[]> {
    const rows = await queryStored<DeletionRow>(this.#pool, {
      name: "due_soft_deletions",
      text: `with due as (
          select server_uuid from soft_deletions
          where not settled
            and looked_at <= clock_timestamp() - $1::float8 * pow(2, least(tries, ${DOUBLINGS_MAX})) * interval '1 ms'
          order by looked_at limit $2 for update skip locked
        )
        update soft_deletions d set looked_at = clock_timestamp() from due where d.server_uuid = due.server_uuid returning ${COLUMNS}`,
      values: [untouchedMs, limit],
    });
    return rows.map(deletionOf);
  }

  async noteTry({ serverUuid, version }: Version): Promise<boolean> {
    const rows = await queryStored(this.#pool, {
      name: "try_soft_deletion",
      text: `update soft_deletions set tries = tries + 1, looked_at = clock_timestamp() where server_uuid = $1 and version = $2
        returning server_uuid`,
      values: [serverUuid, version],
    });
    return rows.length > 0;
  }

  async settle({ serverUuid, version }: Version): Promise<void> {
    await queryStored(this.#pool, {
      name: "settle_soft_deletion",
      text: `with kept as (
          update soft_deletions d set settled = true from requests r
          where d.server_uuid = $1 and d.version = $2 and d.aim = 'deleted' and r.server_uuid = d.server_uuid and r.state = 'dispatched'
          returning d.server_uuid
        )
        delete from soft_deletions d where server_uuid = $1 and version = $2 and not exists (select from kept)`,
      values: [serverUuid, version],
    });
  }

  async abandonRestore({ serverUuid, version }: Version): Promise<void> {
    await runStored("abandon_restore", () =>
      inTransaction(this.#pool, async (client) => {
        // The aim is read after the request is locked, since a client may delete and restore the server meanwhile.
        await queryRows(client, {
          name: "lock_restoring",
          text: "select from requests where server_uuid = $1 for no key update",
          values: [serverUuid],
        });
        await queryRows(client, {
          name: "abandon_restore",
          text: `with kept as (
              update soft_deletions set aim = 'deleted', version = version + 1, tries = 0, settled = false,
                deleted_at = clock_timestamp(), looked_at = clock_timestamp()
              where server_uuid = $1 and version = $2 and aim = 'restored' returning server_uuid
            ), marked as (
              update requests r set gone = true, updated_at = now(), ${CLASSES_ASIDE} from kept k
              where r.server_uuid = k.server_uuid and r.state = 'dispatched' and not r.gone
              returning r.project_id, r.user_id, r.cores, r.ram_mib, r.classes
            ), ${countUsage("given_back", "marked", -1)}, ${countClasses("classes_given_back", "marked", -1)}
            select from kept`,
          values: [serverUuid, version],
        });
      }),
    );
  }

  async reclaim(which: Version | { readonly olderThanMs: number; readonly limit: number }): Promise<number> {
    const isOne = "version" in which;
    const found = isOne
      ? "select server_uuid from soft_deletions where server_uuid = $1 and version = $2 and aim = 'deleted' for update"
      : `select server_uuid from soft_deletions where aim = 'deleted' and deleted_at <= clock_timestamp() - $1::float8 * interval '1 ms'
          order by deleted_at limit $2 for update skip locked`;
    const rows = await queryStored(this.#pool, {
      name: isOne ? "reclaim_server" : "reclaim_servers",
      text: `with found as (${found})
        update soft_deletions d set aim = 'reclaimed', version = version + 1, tries = 0, settled = false, looked_at = '-infinity'
        from found where d.server_uuid = found.server_uuid returning d.server_uuid`,
      values: isOne ? [which.serverUuid, which.version] : [which.olderThanMs, which.limit],
    });
    return rows.length;
  }

  async #first(query: StoreQuery): Promise<SoftDeletion | null> {
    const [row] = await queryStored<DeletionRow>(this.#pool, query);
    return row === undefined ? null : deletionOf(row);
  }
}

function deletionOf(row: DeletionRow): SoftDeletion {
  const { server_uuid: serverUuid, aim, version, asked_by: askedBy, tries } = row;
  return { serverUuid, aim, version, askedBy, tries };
}

/** The owner and the amounts of a server that is deleted softly. */
async function ownerOf(client: PoolClient, serverUuid: string, locks: boolean): Promise<OwnerRow | null> {
  const [row] = await queryRows<OwnerRow>(client, {
    name: locks ? "lock_softly_deleted" : "softly_deleted_owner",
    text: `select r.project_id, r.user_id, r.cores, r.ram_mib as ram, r.classes, c.classes as charged, r.spec
      from requests r left join charged_resizes c on c.server_uuid = r.server_uuid
      where r.server_uuid = $1 and r.state = 'dispatched' and r.gone
      ${locks ? "for no key update of r" : ""}`,
    values: [serverUuid],
  });
  return row ?? null;
}

function amountsOf({ cores, ram }: OwnerRow, classes: ClassAmounts | undefined): ServerAmounts {
  return { instances: 1, cores, ram, ...(classes !== undefined && { classes }) };
}
