import type { KnownCall } from "../http/call.ts";
import { badRequest, unavailable } from "../http/fault.ts";
import { QueryReader } from "../http/query-reader.ts";
import { canonicalUuid } from "../servers/find-server.ts";
import type { Cells } from "../servers/hydrate-servers.ts";
import { type ShownMigration, shownMigration } from "./migration-view.ts";

const PAGES_FROM_MINOR = 59;
const BEFORE_FROM_MINOR = 66;
const OWNER_FROM_MINOR = 80;
/** Migrations of one cell that are looked through; the youngest. */
const LOOKED_THROUGH_MAX = 10_000;

const PARAMETERS: ReadonlySet<string> = new Set([
  ...["hidden", "host", "instance_uuid", "migration_type", "source_compute", "status"],
  ...["limit", "marker", "changes-since", "changes-before", "user_id", "project_id"],
]);

/** What is asked of the list. */
export interface MigrationListQuery {
  readonly serverUuid?: string | undefined;
  readonly host?: string | undefined;
  readonly keeps: (shown: ShownMigration) => boolean;
  readonly marker?: string | undefined;
  /** Null: all. */
  readonly limit: number | null;
}

/** Reads the query of `GET /os-migrations`; refuses what is malformed, or not of the microversion. */
export function readMigrationQuery(
  raw: Readonly<Record<string, string | string[]>>,
  { minor }: Pick<KnownCall, "minor">,
  pageMax: number,
): MigrationListQuery {
  const query = new QueryReader({ ...raw });
  query.refuseOthers({ known: PARAMETERS, unsupported: new Set(), minor });
  const pages = minor >= PAGES_FROM_MINOR;
  const uuid = query.text("instance_uuid");
  const time = (name: string, from: number) => (minor >= from ? query.time(name) : undefined);
  const [since, before] = [time("changes-since", PAGES_FROM_MINOR), time("changes-before", BEFORE_FROM_MINOR)];
  if (since !== undefined && before !== undefined && before < since)
    throw badRequest("The value of changes-since must be less than or equal to changes-before.");
  const owner = minor >= OWNER_FROM_MINOR;
  const wanted = {
    type: query.text("migration_type"),
    status: query.text("status"),
    source: query.text("source_compute"),
    user: owner ? query.text("user_id") : undefined,
    project: owner ? query.text("project_id") : undefined,
  };
  const is = (want: string | undefined, value: string | null) => want === undefined || want === value;
  return {
    serverUuid: uuid === undefined ? undefined : (canonicalUuid(uuid) ?? uuid),
    host: query.text("host"),
    keeps: ({ migration, type }) =>
      is(wanted.type, type) &&
      is(wanted.status, migration.status) &&
      is(wanted.source, migration.sourceHost) &&
      is(wanted.user, migration.server.userId) &&
      is(wanted.project, migration.server.projectId) &&
      (since === undefined || migration.updatedAtMs >= since) &&
      (before === undefined || migration.updatedAtMs <= before),
    marker: pages ? query.text("marker") : undefined,
    limit: pages ? query.limit(pageMax) : null,
  };
}

/** The moves of all cells, the youngest first. Throws 503 when a cell does not answer: some would be missing. */
export async function listMigrations(
  cells: Cells,
  query: MigrationListQuery,
): Promise<{ readonly migrations: readonly ShownMigration[]; readonly hasMore: boolean }> {
  const { serverUuid, host } = query;
  const answers = await Promise.all(
    Array.from(cells.values(), async (cell) => ({
      cell,
      answer: await cell.operations((store) => store.migrations({ serverUuid, host, limit: LOOKED_THROUGH_MAX })),
    })),
  );
  const found: ShownMigration[] = [];
  for (const { cell, answer } of answers) {
    if (answer.kind === "unreachable") throw unavailable(`Cell ${cell.name} does not answer.`);
    found.push(...answer.value.flatMap((migration) => shownMigration(migration) ?? []));
  }
  const kept = found
    .filter(query.keeps)
    .sort(
      ({ migration: some }, { migration: other }) =>
        other.createdAtMs - some.createdAtMs || (some.uuid < other.uuid ? -1 : 1),
    );
  const start = query.marker === undefined ? 0 : kept.findIndex(({ migration }) => migration.uuid === query.marker) + 1;
  if (query.marker !== undefined && start === 0)
    throw badRequest(`Marker ${query.marker.slice(0, 100)} could not be found.`);
  const end = query.limit === null ? kept.length : start + query.limit;
  return { migrations: kept.slice(start, end), hasMore: end < kept.length };
}
