import type { Pool } from "pg";
import type { FlavorRecord } from "../../../core/stores/api/api-store.ts";
import { runStored } from "../client/run-stored.ts";
import { queryRows, queryStored } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";

type ExtraSpecs = Readonly<Record<string, string>>;

interface FlavorRow {
  readonly id: string;
  readonly name: string;
  readonly vcpus: number;
  readonly memory_mib: number;
  readonly disk_gib: number;
  readonly ephemeral_gib: number;
  readonly swap_mib: number;
  readonly rxtx_factor: number;
  readonly is_public: boolean;
  readonly description: string | null;
  readonly extra_specs: Record<string, string>;
}

const COLUMNS =
  "id, name, vcpus, memory_mib, disk_gib, ephemeral_gib, swap_mib, rxtx_factor, is_public, description, extra_specs";

function flavorOf(row: FlavorRow): FlavorRecord {
  return {
    id: row.id,
    name: row.name,
    vcpus: row.vcpus,
    memoryMib: row.memory_mib,
    diskGib: row.disk_gib,
    ephemeralGib: row.ephemeral_gib,
    swapMib: row.swap_mib,
    rxtxFactor: row.rxtx_factor,
    isPublic: row.is_public,
    description: row.description,
    extraSpecs: row.extra_specs,
  };
}

export async function readFlavors(pool: Pool, order?: "creation"): Promise<readonly FlavorRecord[]> {
  const rows = await queryStored<FlavorRow>(pool, {
    name: order === undefined ? "flavors" : "flavors_by_creation",
    text: `select ${COLUMNS} from flavors order by ${order === undefined ? "" : "created_at, "}id collate "C"`,
    values: [],
  });
  return rows.map(flavorOf);
}

export async function readFlavor(pool: Pool, id: string): Promise<FlavorRecord | null> {
  const [row] = await queryStored<FlavorRow>(pool, {
    name: "flavor",
    text: `select ${COLUMNS} from flavors where id = $1`,
    values: [id],
  });
  return row === undefined ? null : flavorOf(row);
}

export async function insertFlavor(pool: Pool, flavor: FlavorRecord): Promise<"created" | "id-taken" | "name-taken"> {
  const created = await queryStored(pool, {
    name: "create_flavor",
    text: `insert into flavors (${COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
      on conflict do nothing returning id`,
    values: [
      flavor.id,
      flavor.name,
      flavor.vcpus,
      flavor.memoryMib,
      flavor.diskGib,
      flavor.ephemeralGib,
      flavor.swapMib,
      flavor.rxtxFactor,
      flavor.isPublic,
      flavor.description,
      JSON.stringify(flavor.extraSpecs),
    ],
  });
  if (created.length > 0) return "created";
  return (await readFlavor(pool, flavor.id)) === null ? "name-taken" : "id-taken";
}

export async function describeFlavor(pool: Pool, id: string, description: string | null): Promise<boolean> {
  const changed = await queryStored(pool, {
    name: "describe_flavor",
    text: "update flavors set description = $2 where id = $1 returning id",
    values: [id, description],
  });
  return changed.length > 0;
}

export async function deleteFlavor(pool: Pool, id: string): Promise<boolean> {
  const deleted = await queryStored(pool, {
    name: "delete_flavor",
    text: "delete from flavors where id = $1 returning id",
    values: [id],
  });
  return deleted.length > 0;
}

/** Cost: a transaction of two statements, under the flavor's row lock. */
export function updateExtraSpecs(
  pool: Pool,
  flavorId: string,
  update: (extraSpecs: ExtraSpecs) => ExtraSpecs,
): Promise<ExtraSpecs | null> {
  return runStored("update_extra_specs", () =>
    inTransaction(pool, async (client) => {
      const [row] = await queryRows<{ extra_specs: Record<string, string> }>(client, {
        name: "lock_extra_specs",
        text: "select extra_specs from flavors where id = $1 for no key update",
        values: [flavorId],
      });
      if (row === undefined) return null;
      const extraSpecs = update(row.extra_specs);
      await queryRows(client, {
        name: "write_extra_specs",
        text: "update flavors set extra_specs = $2 where id = $1",
        values: [flavorId, JSON.stringify(extraSpecs)],
      });
      return extraSpecs;
    }),
  );
}
