import type { MigrationQuery } from "../../../../core/stores/cell/operation-store.ts";
import type { Migration } from "../../../../core/tasks/migration.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import { type KnownCall, requireRule } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import { badRequest, unavailable } from "../../http/fault.ts";
import { type QueryParameters, QueryReader } from "../../http/query-reader.ts";
import { type ShownMigration, shownMigration } from "./migration-view.ts";

const PAGES_FROM_MINOR = 59;
const BEFORE_FROM_MINOR = 66;
const OWNER_FROM_MINOR = 80;
/** Most and fewest migrations that are read from a cell at a time. The first time, as many as the page may have. */
const STRETCH_ROWS = 500;
const STRETCH_ROWS_MIN = 50;
/** Maximum number of migrations that one call searches to fill a filtered page. The next page continues from there. */
const SCANNED_MAX = 20_000;
/** How long a search continues without finding a migration. An empty page is answered only when none follows. */
const SEARCH_MS_MAX = 15_000;
/** Maximum number of migrations in one answer before the microversion with pages. */
const UNPAGED_MAX = 10_000;

const PARAMETERS: QueryParameters = {
  ...{ hidden: 1, host: 1, instance_uuid: 1, migration_type: 1, source_compute: 1, status: 1 },
  ...{ limit: PAGES_FROM_MINOR, marker: PAGES_FROM_MINOR, "changes-since": PAGES_FROM_MINOR },
  ...{ "changes-before": BEFORE_FROM_MINOR, user_id: OWNER_FROM_MINOR, project_id: OWNER_FROM_MINOR },
};
/** The query of `GET /os-migrations`, which has no other parameters from the microversion with pages on. */
export const MIGRATION_QUERY = { query: PARAMETERS, queryStrictFrom: PAGES_FROM_MINOR } as const;

/** The query of the list. */
export interface MigrationListQuery {
  readonly serverUuid?: string | undefined;
  readonly host?: string | undefined;
  readonly keeps: (shown: ShownMigration) => boolean;
  readonly marker?: string | undefined;
  /** Maximum number of migrations on a page, or null for no limit. */
  readonly limit: number | null;
}

/**
 * Reads the query of `GET /os-migrations`. Refuses malformed parameters and those that the microversion does not have, and callers whom the policy
 * does not let list the migrations of all projects unless they filter by their own.
 */
export function readMigrationQuery(
  raw: Readonly<Record<string, string | string[]>>,
  call: KnownCall,
  pageMax: number,
): MigrationListQuery {
  const { minor } = call;
  const query = new QueryReader({ ...raw });
  // Without a filter for the caller's own project, the list is one of all projects.
  const isOwn = query.text("project_id") === call.identity.projectId;
  if (!isOwn) requireRule(call, "os-migrations:index:all_projects");
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
    project: owner || isOwn ? query.text("project_id") : undefined,
  };
  const is = (want: string | undefined, value: string | null) => want === undefined || want === value;
  return {
    serverUuid: uuid === undefined ? undefined : (canonicalUuid(uuid) ?? uuid),
    host: query.text("host"),
    keeps: ({ migration, type }) =>
      is(wanted.type, type) &&
      is(wanted.status, migration.status) &&
      is(wanted.source, migration.sourceHost) &&
      is(wanted.user, migration.server?.userId ?? null) &&
      is(wanted.project, migration.server?.projectId ?? null) &&
      (since === undefined || migration.updatedAtMs >= since) &&
      (before === undefined || migration.updatedAtMs <= before),
    marker: pages ? query.text("marker") : undefined,
    limit: pages ? query.limit(pageMax) : null,
  };
}

export interface MigrationPage {
  readonly migrations: readonly ShownMigration[];
  /** The marker of the next page, or null on the last page. */
  readonly nextMarker: string | null;
}

/**
 * Lists the moves of all cells, newest first. A page is empty only when nothing follows. Throws 503 when a cell does not answer, because
 * some moves would be missing.
 *
 * Cost: one question to each cell for a batch of its moves, and further ones until the page is full.
 */
export async function listMigrations(
  deps: { readonly cells: Cells; readonly clock: Pick<Clock, "monotonic"> },
  query: MigrationListQuery,
): Promise<MigrationPage> {
  const limit = query.limit ?? UNPAGED_MAX;
  const marker = query.marker === undefined ? null : await findMarker(deps.cells, query.marker);
  if (limit === 0) return { migrations: [], nextMarker: null };
  const merged = new MergedMigrations(deps.cells, query, marker);
  const endMs = deps.clock.monotonic() + SEARCH_MS_MAX;
  const found: ShownMigration[] = [];
  let last: Migration | null = null;
  for (;;) {
    const next = await merged.next();
    if (next === null) return { migrations: found, nextMarker: null };
    const shown = shownMigration(next);
    // One migration more than the page holds tells whether another page follows.
    if (shown !== null && query.keeps(shown)) {
      if (found.length === limit) return { migrations: found, nextMarker: found.at(-1)?.migration.uuid ?? null };
      found.push(shown);
    }
    last = next;
    const isLate = deps.clock.monotonic() > endMs;
    if ((isLate || merged.scanned >= SCANNED_MAX) && found.length > 0)
      return { migrations: found, nextMarker: last.uuid };
    if (isLate) throw unavailable("None of the youngest migrations matches, and searching the others takes too long.");
  }
}

async function findMarker(cells: Cells, uuid: string): Promise<Migration> {
  const canonical = canonicalUuid(uuid);
  const uuids = canonical === null ? [] : [canonical];
  const answers = await Promise.all(Array.from(cells.values(), (cell) => askCell(cell, { uuids, limit: 1 })));
  const [found] = answers.flat();
  if (found === undefined) throw badRequest(`Marker ${uuid.slice(0, 100)} could not be found.`);
  return found;
}

async function askCell(cell: CellClient, query: MigrationQuery): Promise<readonly Migration[]> {
  const answer = await cell.operations((store) => store.migrations(query));
  if (answer.kind === "unreachable") throw unavailable(`Cell ${cell.name} does not answer.`);
  return answer.value;
}

/** The known part of one cell's list. */
interface CellStretch {
  readonly cell: CellClient;
  after: string | undefined;
  isRead: boolean;
}

/** The migrations of all cells in one order, by millisecond and uuid, read from each cell a stretch at a time. */
class MergedMigrations {
  /** Number of migrations that were read from cells. */
  scanned = 0;
  readonly #query: Pick<MigrationListQuery, "serverUuid" | "host">;
  readonly #start: Migration | null;
  readonly #stretches: readonly CellStretch[];
  /** Migrations that nothing unread can precede, with the next one at the end. */
  #ready: Migration[] = [];
  #waiting: Migration[] = [];
  #rows: number;

  constructor(cells: Cells, query: Omit<MigrationListQuery, "keeps" | "marker">, start: Migration | null) {
    this.#rows = Math.min(STRETCH_ROWS, Math.max(STRETCH_ROWS_MIN, (query.limit ?? STRETCH_ROWS) + 1));
    this.#query = query;
    this.#start = start;
    this.#stretches = Array.from(cells.values(), (cell) => ({ cell, after: undefined, isRead: false }));
  }

  /** Returns the next migration, or null at the end. */
  async next(): Promise<Migration | null> {
    while (this.#ready.length === 0) {
      const unread = this.#stretches.filter(({ isRead }) => !isRead);
      if (unread.length === 0) return null;
      await this.#readOn(unread);
    }
    return this.#ready.pop() ?? null;
  }

  /**
   * Reads on in the given cells. Cells order migrations within one millisecond by a finer clock, so those are used only when the whole
   * millisecond has been read.
   */
  async #readOn(unread: readonly CellStretch[]): Promise<void> {
    const rows = this.#rows;
    this.#rows = STRETCH_ROWS;
    const ends = await Promise.all(unread.map((stretch) => this.#readStretch(stretch, rows)));
    const readDownToMs = Math.max(...ends);
    const ready = this.#waiting.filter(({ createdAtMs }) => createdAtMs > readDownToMs);
    this.#waiting = this.#waiting.filter(({ createdAtMs }) => createdAtMs <= readDownToMs);
    this.#ready = ready.sort((a, b) => youngestFirst(b, a));
  }

  /** Returns the time of the last migration that was read, or minus infinity at the end of the cell's list. */
  async #readStretch(stretch: CellStretch, rows: number): Promise<number> {
    const { serverUuid, host } = this.#query;
    const start = this.#start;
    const untilMs = start?.createdAtMs;
    const query = { serverUuid, host, after: stretch.after, untilMs, limit: rows };
    const read = await askCell(stretch.cell, query);
    this.scanned += read.length;
    this.#waiting.push(...read.filter((one) => start === null || youngestFirst(start, one) < 0));
    const last = read.at(-1);
    stretch.after = last?.uuid;
    stretch.isRead = read.length < rows;
    return stretch.isRead || last === undefined ? Number.NEGATIVE_INFINITY : last.createdAtMs;
  }
}

function youngestFirst(a: Migration, b: Migration): number {
  if (a.uuid === b.uuid) return 0;
  return b.createdAtMs - a.createdAtMs || (a.uuid < b.uuid ? -1 : 1);
}
