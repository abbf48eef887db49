import type { Pool } from "pg";
import type {
  ImageData,
  ImageQuery,
  ImageRecord,
  ImageStore,
  ImageUpload,
  ImageVisibility,
} from "../../../core/stores/api/image-store.ts";
import { runStored } from "../client/run-stored.ts";
import { onlyUuids, queryRows, queryStored } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";

interface ImageRow {
  id: string;
  name: string | null;
  owner: string;
  visibility: ImageVisibility;
  disk_format: string | null;
  container_format: string | null;
  min_disk_gib: number;
  min_ram_mib: number;
  is_protected: boolean;
  tags: string[];
  properties: Record<string, string>;
  created_at_ms: number;
  updated_at_ms: number;
  upload: ImageUpload | null;
  shelved_server: string | null;
  unshelve_asked_at_ms: number | null;
  data: ImageData | "awaited" | null;
  version: number;
}

const COLUMNS = `id, name, owner, visibility, disk_format, container_format, min_disk_gib, min_ram_mib, is_protected,
  tags, properties, created_at_ms::float8, updated_at_ms::float8, upload, shelved_server,
  unshelve_asked_at_ms::float8, data, version::float8`;

/** The row of a deleted image stays, without what its owner wrote into it. */
const DELETED = (at: string): string =>
  `deleted_at_ms = ${at}, name = null, tags = '[]', properties = '{}', upload = null, data = null, version = version + 1`;

/** Images in the API database. A change is a compare-and-set. Throws `StoreError`. */
export class PostgresImageStore implements ImageStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Owners are locked by number, because a new image has no row yet by which the count could be kept. */
  createImage(image: ImageRecord, ownedMax: number | null): Promise<"created" | "id-taken" | "too-many"> {
    return runStored("create_image", () =>
      inTransaction(this.#pool, async (client) => {
        await queryRows(client, {
          name: "lock_images",
          text: "select pg_advisory_xact_lock(1768777063, hashtext($1))",
          values: [image.owner],
        });
        const [room] = await queryRows<{ enough: boolean }>(client, {
          name: "count_images",
          text: `select $2::int is null or count(*) < $2::int as enough from images
            where owner = $1 and deleted_at_ms is null`,
          values: [image.owner, ownedMax],
        });
        if (!room?.enough) return "too-many";
        const rows = await queryRows(client, {
          name: "create_image",
          text: `insert into images (id, name, owner, visibility, disk_format, container_format, min_disk_gib,
              min_ram_mib, is_protected, tags, properties, created_at_ms, updated_at_ms, upload, data, shelved_server)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
            on conflict (id) do nothing returning id`,
          values: [...valuesOf(image), image.shelvedServer ?? null],
        });
        return rows.length > 0 ? "created" : "id-taken";
      }),
    );
  }

  async image(id: string): Promise<ImageRecord | null> {
    const row = await this.#row(id);
    return row ? recordOf(row) : null;
  }

  async deletedImages(ids: readonly string[]): Promise<readonly string[]> {
    const rows = await queryStored<{ id: string }>(this.#pool, {
      name: "deleted_images",
      text: "select id from images where id = any($1::uuid[]) and deleted_at_ms is not null",
      values: [onlyUuids(ids)],
    });
    return rows.map(({ id }) => id);
  }

  async images(query: ImageQuery): Promise<readonly ImageRecord[]> {
    const { visibleTo, name, visibility = null, communityOf = null, properties = {}, marker, limit } = query;
    const last = marker === null ? undefined : await this.#row(marker);
    const rows = await queryStored<ImageRow>(this.#pool, {
      name: "images",
      text: `select ${COLUMNS} from images
        where deleted_at_ms is null and ($1::text is null or owner = $1 or visibility in ('public', 'community'))
          and ($2::text is null or name = $2) and ($6::text is null or visibility = $6) and properties @> $7::jsonb
          and ($8::text is null or visibility <> 'community' or owner = $8)
          and ($3::bigint is null or created_at_ms < $3 or (created_at_ms = $3 and id > $4))
        order by images.created_at_ms desc, id limit $5`,
      values: [
        visibleTo,
        name,
        last?.created_at_ms ?? null,
        last?.id ?? null,
        limit,
        visibility,
        JSON.stringify(properties),
        communityOf,
      ],
    });
    return rows.map(recordOf);
  }

  async uploads(after: string | null, limit: number): Promise<readonly ImageRecord[]> {
    const rows = await queryStored<ImageRow>(this.#pool, {
      name: "image_uploads",
      text: `select ${COLUMNS} from images
        where upload is not null and deleted_at_ms is null and ($1::uuid is null or id > $1) order by id limit $2`,
      values: [after, limit],
    });
    return rows.map(recordOf);
  }

  async updateImage(id: string, change: (image: ImageRecord) => ImageRecord): Promise<ImageRecord | null> {
    while (true) {
      const row = await this.#row(id);
      if (!row) return null;
      const changed = change(recordOf(row));
      const rows = await queryStored(this.#pool, {
        name: "update_image",
        text: `update images set name = $2, owner = $3, visibility = $4, disk_format = $5, container_format = $6,
            min_disk_gib = $7, min_ram_mib = $8, is_protected = $9, tags = $10, properties = $11, created_at_ms = $12,
            updated_at_ms = $13, upload = $14, data = $15, unshelve_asked_at_ms = $16, version = version + 1
          where id = $1 and version = $17 and deleted_at_ms is null returning id`,
        values: [...valuesOf(changed), changed.unshelveAskedAtMs ?? null, row.version],
      });
      // Each failed try means that another caller's change succeeded, so all callers finish in the end.
      if (rows.length > 0) return changed;
    }
  }

  async deleteImage(id: string, atMs: number): Promise<boolean> {
    const rows = await queryStored(this.#pool, {
      name: "delete_image",
      text: `update images set ${DELETED("$2")} where id = any($1::uuid[]) and deleted_at_ms is null returning id`,
      values: [onlyUuids([id]), atMs],
    });
    return rows.length > 0;
  }

  async endedShelved(after: string | null, limit: number): Promise<readonly string[]> {
    const rows = await queryStored<{ id: string }>(this.#pool, {
      name: "ended_shelved_images",
      text: `select i.id from images i where i.shelved_server is not null and i.deleted_at_ms is null and i.upload is null and not i.is_protected
          and ($1::uuid is null or i.id > $1)
          and (not exists (select from requests r where r.server_uuid = i.shelved_server and r.state <> 'deleted')
            or exists (select from images n where n.shelved_server = i.shelved_server and n.deleted_at_ms is null and n.upload is null
              and (n.created_at_ms, n.id) > (i.created_at_ms, i.id)))
        order by i.id limit $2`,
      values: [after, limit],
    });
    return rows.map(({ id }) => id);
  }

  async unshelveAsked(after: string | null, limit: number): Promise<readonly ImageRecord[]> {
    const rows = await queryStored<ImageRow>(this.#pool, {
      name: "unshelve_asked_images",
      text: `select ${COLUMNS} from images where unshelve_asked_at_ms is not null and deleted_at_ms is null
          and ($1::uuid is null or id > $1) order by id limit $2`,
      values: [after, limit],
    });
    return rows.map(recordOf);
  }

  async #row(id: string): Promise<ImageRow | undefined> {
    const [row] = await queryStored<ImageRow>(this.#pool, {
      name: "image",
      text: `select ${COLUMNS} from images where id = any($1::uuid[]) and deleted_at_ms is null`,
      values: [onlyUuids([id])],
    });
    return row;
  }
}

function valuesOf(image: ImageRecord): unknown[] {
  const { id, name, owner, visibility, diskFormat, containerFormat, minDiskGib, minRamMib, isProtected } = image;
  const documents = [JSON.stringify(image.tags), JSON.stringify(image.properties)];
  const times = [image.createdAtMs, image.updatedAtMs];
  return [
    ...[id, name, owner, visibility, diskFormat, containerFormat, minDiskGib, minRamMib, isProtected],
    ...documents,
    ...times,
    image.upload === undefined ? null : JSON.stringify(image.upload),
    image.data === undefined ? null : JSON.stringify(image.data),
  ];
}

function recordOf(row: ImageRow): ImageRecord {
  return {
    id: row.id,
    name: row.name,
    owner: row.owner,
    visibility: row.visibility,
    diskFormat: row.disk_format,
    containerFormat: row.container_format,
    minDiskGib: row.min_disk_gib,
    minRamMib: row.min_ram_mib,
    isProtected: row.is_protected,
    tags: row.tags,
    properties: row.properties,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    ...(row.upload !== null && { upload: row.upload }),
    ...(row.shelved_server !== null && { shelvedServer: row.shelved_server }),
    ...(row.unshelve_asked_at_ms !== null && { unshelveAskedAtMs: row.unshelve_asked_at_ms }),
    ...(row.data !== null && { data: row.data }),
  };
}
