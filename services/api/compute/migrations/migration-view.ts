import { NO_AMOUNTS } from "../../../../core/agent/transfer-progress.ts";
import type { Migration } from "../../../../core/tasks/migration.ts";
import { isMove, type MoveKind, operationKind } from "../../../../core/tasks/operation-kinds.ts";
import { isoMicroseconds } from "../../http/times.ts";

const TYPE_FROM_MINOR = 23;
const UUID_FROM_MINOR = 59;
const USER_FROM_MINOR = 80;

/** Nova's `migration_type` for each kind of move. Null when Nova stores no migration for such a move. */
const TYPES: Readonly<Record<MoveKind, string | null>> = {
  resize: "resize",
  migrate: "migration",
  "live-migrate": "live-migration",
  "live-migrate-paused": "live-migration",
  evacuate: "evacuation",
  unshelve: null,
  rebuild: null,
  reimage: null,
};

/** A migration with the names that the Compute API has for it. */
export interface ShownMigration {
  readonly migration: Migration;
  readonly type: string;
}

/** Returns null for a migration that the Compute API does not show. */
export function shownMigration(migration: Migration): ShownMigration | null {
  const kind = operationKind(migration.kind);
  const type = kind !== null && isMove(kind) ? TYPES[kind] : null;
  return type === null ? null : { migration, type };
}

/** Returns a number for a migration, as clients of Nova expect. It is derived from the uuid, which is the real id. */
export function migrationNumber(uuid: string): number {
  return Number.parseInt(uuid.slice(0, 8), 16) >>> 1;
}

const IN_PROGRESS: ReadonlySet<string> = new Set(["queued", "preparing", "running", "post-migrating"]);

/** A live migration that is under way. */
export function isLiveInProgress({ migration, type }: ShownMigration): boolean {
  return type === "live-migration" && !migration.ended && IN_PROGRESS.has(migration.status);
}

/** The caller to whom a migration is shown. The policy may hide the hosts, which are then null, as in Nova. */
export interface MigrationViewer {
  readonly minor: number;
  readonly showsHosts: boolean;
}

/** The format of `GET /os-migrations`. */
export function migrationView(
  shown: ShownMigration,
  { minor, showsHosts }: MigrationViewer,
  links: readonly unknown[],
) {
  const { migration, type } = shown;
  const flavors = {
    old_instance_type_id: numberOfFlavor(migration.operation?.before?.flavor?.id),
    new_instance_type_id: numberOfFlavor(migration.server?.flavor?.id),
  };
  return {
    ...common(migration, { minor, showsHosts }),
    instance_uuid: migration.serverUuid,
    ...flavors,
    ...(minor >= TYPE_FROM_MINOR && { migration_type: type }),
    ...(minor >= TYPE_FROM_MINOR && isLiveInProgress(shown) && { links }),
  };
}

/** Returns a migration as `GET /servers/{id}/migrations` shows it. Amounts that the host's driver does not report are 0. */
export function serverMigrationView({ migration }: ShownMigration, viewer: MigrationViewer) {
  const { memory, disks } = migration.progress ?? { memory: NO_AMOUNTS, disks: NO_AMOUNTS };
  return {
    ...common(migration, viewer),
    server_uuid: migration.serverUuid,
    disk_processed_bytes: disks.processed,
    disk_remaining_bytes: disks.remaining,
    disk_total_bytes: disks.total,
    memory_processed_bytes: memory.processed,
    memory_remaining_bytes: memory.remaining,
    memory_total_bytes: memory.total,
  };
}

function common(migration: Migration, { minor, showsHosts }: MigrationViewer) {
  const { uuid, status, sourceHost, destHost, server } = migration;
  const dest = destHost === "" || !showsHosts ? null : destHost;
  const source = showsHosts ? sourceHost : null;
  return {
    id: migrationNumber(uuid),
    status,
    source_compute: source,
    source_node: source,
    dest_compute: dest,
    dest_node: dest,
    dest_host: dest,
    created_at: isoMicroseconds(migration.createdAtMs),
    updated_at: isoMicroseconds(migration.updatedAtMs),
    ...(minor >= UUID_FROM_MINOR && { uuid }),
    ...(minor >= USER_FROM_MINOR && { user_id: server?.userId ?? null, project_id: server?.projectId ?? null }),
  };
}

/** Flavors have no numbers here, so a number is made from the id. */
function numberOfFlavor(id: string | undefined): number {
  if (id !== undefined && /^[0-9]{1,9}$/.test(id)) return Number(id);
  let number = 0;
  for (const character of id ?? "") number = (number * 31 + (character.codePointAt(0) ?? 0)) % 0x7fff_ffff;
  return number;
}
