import type { Pool } from "pg";
import type {
  CreateVolumeOutcome,
  MadeVolume,
  NewAttachment,
  NewVolume,
  ReserveOutcome,
  SweepOutcome,
  SweptVolumes,
  VolumeChanges,
  VolumeQuery,
  VolumeRecord,
  VolumeStore,
  VolumeUsage,
} from "../../../core/stores/api/volume-store.ts";
import { runStored } from "../client/run-stored.ts";
import { onlyUuids, queryRows, queryStored } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";
import { recordOfVolume, VOLUME_COLUMNS, type VolumeRow } from "./volume-rows.ts";

const NO_ATTACHMENT = `phase = null, phase_at = null, reserved_at = null, attached_at_ms = null, server_uuid = null, cell = null, attachment_id = null,
  mapping_uuid = null, device = null, tag = null, delete_on_termination = null, task_id = null, making = null, end_holder = null, end_held_until = null`;
const INSERT_VOLUME = `insert into volumes
    (id, project_id, user_id, name, description, size_gib, metadata, availability_zone, is_bootable, in_cinder, making, created_at_ms)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`;
/** The rows of the volumes with these ids: one for each server that has a shared one. */
const OF_VOLUMES = "((id = any ($1::uuid[]) and volume_id is null) or volume_id = any ($1::uuid[]))";
const RESERVE = `update volumes set phase = 'attaching', phase_at = clock_timestamp(), reserved_at = clock_timestamp(), server_uuid = $2, cell = $3,
    attachment_id = $4, mapping_uuid = $5, device = $6, tag = $7, delete_on_termination = $8, task_id = $9
  where id = any ($1::uuid[]) and phase is null returning id`;
const RESERVE_SHARED = `insert into volumes
    (id, project_id, user_id, name, description, size_gib, metadata, availability_zone, is_bootable, in_cinder, making, created_at_ms,
     phase, phase_at, reserved_at, server_uuid, cell, attachment_id, mapping_uuid, device, tag, delete_on_termination, task_id, volume_id)
  select gen_random_uuid(), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'attaching', clock_timestamp(), clock_timestamp(), $13, $14, $15, $16, $17,
    $18, $19, $20, $1::uuid
  where not exists (select from volumes where id = $1::uuid and volume_id is null and server_uuid = $13)
  on conflict (volume_id, server_uuid) where volume_id is not null do nothing returning id`;
/** The attachment of a server that is gone ends. */
const END = `phase = 'detaching', phase_at = clock_timestamp(), task_id = null,
  delete_on_termination = delete_on_termination and (phase = 'attached' or making is not null),
  cell = coalesce(nullif(cell, ''), (select r.cell from requests r where r.server_uuid = volumes.server_uuid), '')`;
const HAS_ENDED = `(v.phase = 'attached' or v.task_id is not null)
  and not exists (select from requests r where r.server_uuid = v.server_uuid and r.state <> 'deleted')
  and (v.task_id is distinct from v.server_uuid or exists (select from requests r where r.server_uuid = v.server_uuid))`;
/** As `isBuiltWith`. */
const IS_BUILT_WITH = "making is not null and phase = 'attaching' and task_id = server_uuid and attached_at_ms is null";
const UNIQUE_VIOLATION = "23505";

/** Volumes in the API database. Each write of an attachment is one statement. Throws `StoreError`. */
export class PostgresVolumeStore implements VolumeStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Projects are locked by number, because a new volume has no row yet by which the use could be kept. */
  createVolume(
    volume: NewVolume,
    limits: VolumeUsage | null,
    attachment?: NewAttachment,
  ): Promise<CreateVolumeOutcome> {
    return runStored("create_volume", () =>
      inTransaction(this.#pool, async (client) => {
        if (limits !== null) {
          await queryRows(client, {
            name: "lock_volumes",
            text: "select pg_advisory_xact_lock(1987013741, hashtext($1))",
            values: [volume.projectId],
          });
          const used = await readUsage(client, volume.projectId);
          if (used.volumes + 1 > limits.volumes) return { kind: "over-limit", limit: "volumes", used: used.volumes };
          if (used.gib + volume.sizeGib > limits.gib) return { kind: "over-limit", limit: "gib", used: used.gib };
        }
        await queryRows(client, { name: "create_volume", text: INSERT_VOLUME, values: valuesOf(volume) });
        if (attachment !== undefined)
          await queryRows(client, { name: "reserve_volume", text: RESERVE, values: reservedBy(volume.id, attachment) });
        return { kind: "created" };
      }),
    );
  }

  async copyVolume(volume: NewVolume): Promise<boolean> {
    const values = valuesOf(volume);
    const rows = await queryStored(this.#pool, {
      name: "copy_volume",
      text: `${INSERT_VOLUME} on conflict (id) do update set project_id = excluded.project_id, name = excluded.name, size_gib = excluded.size_gib,
          availability_zone = excluded.availability_zone, is_bootable = excluded.is_bootable, making = excluded.making
        where volumes.in_cinder and volumes.phase is null returning id`,
      values,
    });
    if (rows.length > 0) return true;
    const [present] = await this.volumes([volume.id]);
    return present?.inCinder ?? false;
  }

  async volumes(ids: readonly string[]): Promise<readonly VolumeRecord[]> {
    return this.#records("volumes", `where ${OF_VOLUMES}`, [onlyUuids(ids)]);
  }

  async listVolumes(query: VolumeQuery): Promise<readonly VolumeRecord[]> {
    const { projectId, name = null, phase = null, after, offset = 0, limit } = query;
    return this.#records(
      `list_volumes${after === undefined ? "" : "_after"}`,
      `where ($1::text is null or project_id = $1) and ($2::text is null or name = $2)
          and ($3::text is null or coalesce(phase, 'available') = $3)
          ${after === undefined ? "" : "and created_at_ms <= $6 and (created_at_ms < $6 or id > $7::uuid)"}
        order by volumes.created_at_ms desc, id limit $4 offset $5`,
      [projectId, name, phase, limit, offset, ...(after === undefined ? [] : [after.createdAtMs, after.id])],
    );
  }

  usage(projectId: string): Promise<VolumeUsage> {
    return runStored("volume_usage", () => readUsage(this.#pool, projectId));
  }

  async updateVolume(
    id: string,
    change: (volume: VolumeRecord) => VolumeChanges,
    nowMs: number,
  ): Promise<VolumeRecord | null> {
    for (;;) {
      const [row] = await this.#rows("volume", "where id = any ($1::uuid[])", [onlyUuids([id])]);
      if (row === undefined) return null;
      const record = recordOfVolume(row);
      const changed = { ...record, ...change(record) };
      const [written] = await queryStored<VolumeRow>(this.#pool, {
        name: "update_volume",
        text: `update volumes set name = $3, description = $4, metadata = $5, is_bootable = $6, updated_at_ms = $7, revision = revision + 1
          where id = $1 and revision = $2 returning ${VOLUME_COLUMNS}`,
        values: [
          ...[id, row.revision, changed.name, changed.description, JSON.stringify(changed.metadata)],
          ...[changed.isBootable, nowMs],
        ],
      });
      if (written !== undefined) return recordOfVolume(written);
    }
  }

  async deleteVolume(id: string): Promise<"deleted" | "taken" | "unknown"> {
    const deleted = await this.#write(
      "delete_volume",
      "delete from volumes where id = any ($1::uuid[]) and phase is null",
      [onlyUuids([id])],
    );
    if (deleted) return "deleted";
    return (await this.volumes([id])).length > 0 ? "taken" : "unknown";
  }

  async volumesOfServers(serverUuids: readonly string[]): Promise<readonly VolumeRecord[]> {
    return this.#records(
      "volumes_of_servers",
      "where server_uuid = any ($1::uuid[]) order by volumes.reserved_at, id",
      [onlyUuids(serverUuids)],
    );
  }

  async reserve(id: string, attachment: NewAttachment): Promise<ReserveOutcome> {
    const outcome = await this.#reserveBy("reserve_volume", RESERVE, reservedBy(id, attachment));
    if (outcome !== "taken") return outcome;
    return (await this.volumes([id])).length > 0 ? "taken" : "unknown";
  }

  reserveShared(volume: NewVolume, attachment: NewAttachment): Promise<Exclude<ReserveOutcome, "unknown">> {
    const values = [...valuesOf({ ...volume, making: null }), ...reservedBy(volume.id, attachment).slice(1)];
    return this.#reserveBy("reserve_shared_volume", RESERVE_SHARED, values);
  }

  #reserveBy(name: string, text: string, values: readonly unknown[]) {
    return runStored(name, async () => {
      try {
        return (await queryRows(this.#pool, { name, text, values })).length > 0 ? "reserved" : "taken";
      } catch (error) {
        if ((error as { readonly code?: unknown }).code === UNIQUE_VIOLATION) return "device-taken";
        throw error;
      }
    });
  }

  async renewReserved(serverUuids: readonly string[]): Promise<void> {
    await queryStored(this.#pool, {
      name: "renew_reserved_volumes",
      text: `update volumes set phase_at = clock_timestamp() where id in (
          select id from volumes where server_uuid = any ($1::uuid[]) and phase = 'attaching' and task_id = server_uuid order by id for update
        )`,
      values: [onlyUuids(serverUuids)],
    });
  }

  setMade(id: string, { id: madeId, sizeGib, availabilityZone, isBootable }: MadeVolume): Promise<boolean> {
    return this.#write(
      "set_made_volume",
      `update volumes set id = $2, size_gib = $3, availability_zone = $4, is_bootable = $5, making = 'made'
        where id = any ($1::uuid[]) and making = 'asked' and not exists (select from volumes other where other.id = $2)`,
      [onlyUuids([id]), madeId, sizeGib, availabilityZone, isBootable],
    );
  }

  beginDetaching(id: string, of: { readonly serverUuid: string; readonly taskId: string }): Promise<boolean> {
    return this.#write(
      "begin_detaching",
      `update volumes set phase = 'detaching', phase_at = clock_timestamp(), task_id = $3, making = null
        where ${OF_VOLUMES} and server_uuid = $2 and phase = 'attached'`,
      [onlyUuids([id]), of.serverUuid, of.taskId],
    );
  }

  confirmAttached(id: string, taskId: string, nowMs: number, cell?: string): Promise<boolean> {
    return this.#write(
      "confirm_attached",
      `update volumes set phase = 'attached', phase_at = clock_timestamp(), task_id = null, attached_at_ms = coalesce(attached_at_ms, $3),
          cell = coalesce($4, cell), making = null
        where ${OF_VOLUMES} and task_id = $2`,
      [onlyUuids([id]), taskId, nowMs, cell ?? null],
    );
  }

  async release(id: string, taskId: string): Promise<boolean> {
    const rows = await queryStored(this.#pool, {
      name: "release_volume",
      text: `with over as (
          select id, ${IS_BUILT_WITH} or volume_id is not null as ends from volumes where ${OF_VOLUMES} and task_id = $2 for update
        ), deleted as (
          delete from volumes v using over where v.id = over.id and over.ends returning v.id
        ), released as (
          update volumes v set ${NO_ATTACHMENT} from over where v.id = over.id and not over.ends returning v.id
        )
        select id from deleted union all select id from released`,
      values: [onlyUuids([id]), taskId],
    });
    return rows.length > 0;
  }

  setAttachmentId(id: string, of: { readonly serverUuid: string; readonly attachmentId: string }): Promise<boolean> {
    return this.#write(
      "set_attachment_id",
      `update volumes set attachment_id = $3 where ${OF_VOLUMES} and server_uuid = $2`,
      [onlyUuids([id]), of.serverUuid, of.attachmentId],
    );
  }

  setDeleteOnTermination(id: string, serverUuid: string, value: boolean): Promise<boolean> {
    return this.#write(
      "set_delete_on_termination",
      `update volumes set delete_on_termination = $3 where ${OF_VOLUMES} and server_uuid = any ($2::uuid[])`,
      [onlyUuids([id]), onlyUuids([serverUuid]), value],
    );
  }

  sweepEnded(range: SweptVolumes): Promise<SweepOutcome> {
    return "servers" in range ? this.#sweepServers(range.servers) : this.#sweepPage(range);
  }

  async #sweepServers(servers: readonly string[]): Promise<SweepOutcome> {
    const rows = await queryStored(this.#pool, {
      name: "sweep_volumes_of_servers",
      text: `update volumes set ${END} where id in (
          select v.id from volumes v where v.server_uuid = any ($1::uuid[]) and ${HAS_ENDED} order by v.id for update
        ) returning id`,
      values: [onlyUuids(servers)],
    });
    return { ended: rows.length, next: null };
  }

  async #sweepPage({ after, limit }: { readonly after: string | null; readonly limit: number }): Promise<SweepOutcome> {
    const [row] = await queryStored<{ ended: number; next: string | null }>(this.#pool, {
      name: "sweep_ended_volumes",
      text: `with page as (
          select id from volumes where phase is not null and ($1::uuid is null or id > $1) order by id limit $2
        ), ended as (
          update volumes set ${END} where id in (
            select v.id from volumes v where v.id in (select id from page) and ${HAS_ENDED} order by v.id for update
          ) returning id
        )
        select (select count(*)::int from ended) as ended,
          case when (select count(*) from page) = $2 then (select id from page order by id desc limit 1) end as next`,
      values: [after, limit],
    });
    return row ?? { ended: 0, next: null };
  }

  async unsettled(after: string | null, limit: number): Promise<readonly VolumeRecord[]> {
    return this.#records(
      "unsettled_volumes",
      `where phase in ('attaching', 'detaching') and ($1::uuid is null or coalesce(volume_id, id) > $1)
        order by coalesce(volume_id, id) fetch first $2 rows with ties`,
      [after, limit],
    );
  }

  holdEnd(id: string, attachmentId: string, { holder, ms }: { readonly holder: string; readonly ms: number }) {
    return this.#write(
      "hold_end_of_attachment",
      `update volumes set end_holder = $3, end_held_until = clock_timestamp() + $4 * interval '1 ms'
        where ${OF_VOLUMES} and attachment_id = $2
          and (end_holder is null or end_holder = $3 or end_held_until < clock_timestamp())`,
      [onlyUuids([id]), attachmentId, holder, ms],
    );
  }

  async endAttachment(id: string, attachmentId: string, neverRan: boolean): Promise<"deleted" | "released" | null> {
    const rows = await queryStored<{ deleted: boolean }>(this.#pool, {
      name: "end_attachment",
      text: `with over as (
          select id, volume_id, delete_on_termination or (making is not null and $3) as ends from volumes
          where ${OF_VOLUMES} and attachment_id = $2 for update
        ), deleted as (
          delete from volumes v using over where v.id = over.id and (over.ends or over.volume_id is not null) returning over.ends as deleted
        ), released as (
          update volumes v set ${NO_ATTACHMENT} from over where v.id = over.id and not over.ends and over.volume_id is null returning false as deleted
        )
        select deleted from deleted union all select deleted from released`,
      values: [onlyUuids([id]), attachmentId, neverRan],
    });
    const [row] = rows;
    if (row === undefined) return null;
    return row.deleted ? "deleted" : "released";
  }

  async #write(name: string, text: string, values: readonly unknown[]): Promise<boolean> {
    return (await queryStored(this.#pool, { name, text: `${text} returning id`, values })).length > 0;
  }

  #rows(name: string, rest: string, values: readonly unknown[]): Promise<readonly VolumeRow[]> {
    return queryStored<VolumeRow>(this.#pool, { name, text: `select ${VOLUME_COLUMNS} from volumes ${rest}`, values });
  }

  async #records(name: string, rest: string, values: readonly unknown[]): Promise<readonly VolumeRecord[]> {
    return (await this.#rows(name, rest, values)).map(recordOfVolume);
  }
}

function valuesOf(volume: NewVolume): readonly unknown[] {
  return [
    ...[volume.id, volume.projectId, volume.userId, volume.name, volume.description, volume.sizeGib],
    ...[JSON.stringify(volume.metadata), volume.availabilityZone, volume.isBootable, volume.inCinder],
    ...[volume.making, volume.createdAtMs],
  ];
}

function reservedBy(id: string, attachment: NewAttachment): readonly unknown[] {
  const { serverUuid, cell, attachmentId, mappingUuid, device, tag, deleteOnTermination, taskId } = attachment;
  return [onlyUuids([id]), serverUuid, cell, attachmentId, mappingUuid, device, tag, deleteOnTermination, taskId];
}

async function readUsage(client: Parameters<typeof queryRows>[0], projectId: string): Promise<VolumeUsage> {
  const [row] = await queryRows<VolumeUsage>(client, {
    name: "volume_usage",
    text: "select count(*)::int as volumes, coalesce(sum(size_gib), 0)::float8 as gib from volumes where project_id = $1",
    values: [projectId],
  });
  return row ?? { volumes: 0, gib: 0 };
}
