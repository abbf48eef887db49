import type { RequestOrder, RequestRecord } from "../../../../core/stores/api/api-store.ts";
import {
  type AttributeValueAsked,
  type ListPosition,
  newestFirst,
} from "../../../../core/stores/cell/listed-servers.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import { type Cells, hydrateServers, type KnownServer, knownServer, livesInCell } from "../../cells/hydrate-servers.ts";
import type { RequestsPort } from "../../ports.ts";
import { isIndexedName } from "./indexed-name.ts";
import type { IndexedFilter } from "./list-filters.ts";
import { isByCreation } from "./list-order.ts";
import type { ListQuery } from "./list-query.ts";

/** Some servers of a list in its order, not all of which pass its filters. */
export interface ListStretch {
  readonly known: readonly KnownServer[];
  /** No server follows. */
  readonly isLast: boolean;
}

/** Reads the next servers of a list. It looks at about `rows` servers. */
export type ReadStretch = (rows: number) => Promise<ListStretch>;

interface Deps {
  readonly store: Pick<RequestsPort, "requests" | "listRequests" | "scanRequests">;
  readonly cells: Cells;
}
type Asked = Pick<ListQuery, "projectId" | "nameContains" | "indexed" | "matches" | "created">;

/** An index of all projects is used when fewer servers of a project pass the filters than this share. */
const PASSING_SHARE_MIN = 0.1;
/** How many servers of all projects a cell looks at for each one of the project that is wanted, and at most. */
const LOOKS_FOR_ONE = 20;
const LOOKS_MAX = 5_000;
/** At most this many different values of an attribute are searched for a text, and at most this many of them are looked for. */
const VALUES_LOOKED_AT_MAX = 1_000;
const VALUES_MAX = 20;

/**
 * Returns how the servers of a list are found: by an index of one of the filters, or in the order of the list. In the list of a project, it
 * begins with the servers of the project, which may be few, and changes to the index of all projects if few of them pass.
 */
export function stretchReader(
  deps: Deps,
  query: Asked,
  order: RequestOrder,
  marker: RequestRecord | null,
): ReadStretch {
  const inOrder = scanReader(deps, query, order, marker?.serverUuid ?? null);
  const { indexed, matches, projectId } = query;
  if (indexed === null || !isByCreation(order) || isIndexedName(query.nameContains)) return inOrder;
  const asked = { ...indexed, projectId, oldestFirst: order === "oldest-first" };
  const byIndexFrom = (after: ListPosition | null) =>
    attributeReader(deps, asked, after, (uuid) => scanReader(deps, query, order, uuid));
  if (projectId === null) return byIndexFrom(marker && positionOf(marker));
  let read: ReadStretch = async (rows) => {
    const stretch = await inOrder(rows);
    const passing = stretch.known.filter((known) => matches === null || matches(known)).length;
    const last = stretch.known.at(-1);
    if (last !== undefined && passing < stretch.known.length * PASSING_SHARE_MIN) read = byIndexFrom(last.server);
    return stretch;
  };
  return (rows) => read(rows);
}

const positionOf = ({ serverUuid, createdAtMs }: RequestRecord): ListPosition => ({ uuid: serverUuid, createdAtMs });

/** Reads the list in its order, or the servers of it whose names have the text if an index finds them. */
function scanReader(
  { store, cells }: Deps,
  { projectId, nameContains, created }: Asked,
  order: RequestOrder,
  start: string | null,
): ReadStretch {
  let marker = start;
  return async (rows) => {
    const from = { projectId, order, marker };
    let records: readonly RequestRecord[];
    if (nameContains !== null && isIndexedName(nameContains)) {
      records = await store.listRequests({ ...from, nameContains, limit: rows });
      marker = records.length < rows ? null : (records.at(-1)?.serverUuid ?? null);
    } else {
      const ofTime = created !== null && isByCreation(order) ? { created } : {};
      ({ records, resumeAt: marker } = await store.scanRequests({ ...from, ...ofTime, rows }));
    }
    return { known: await hydrateServers(records, cells, { withDeleted: false }), isLast: marker === null };
  };
}

/**
 * Reads the servers with the value of an attribute: those of the cells by their indexes, and all requests that are in no cell. When a
 * cell does not answer, the list is read in its order instead, since that cell's servers are known only from their requests.
 */
function attributeReader(
  deps: Deps,
  asked: IndexedFilter & { readonly projectId: string | null; readonly oldestFirst: boolean },
  start: ListPosition | null,
  otherwise: (marker: string | null) => ReadStretch,
): ReadStretch {
  let after = start;
  let values: ReturnType<typeof valuesOf> | null = null;
  // A cell may have servers that the API database does not have, so the place of a cell is no marker there.
  let marker = start?.uuid ?? null;
  let read: ReadStretch = async (rows) => {
    values ??= valuesOf(deps.cells, asked);
    const known = await values;
    const found = known && (await findByAttribute(deps, { ...asked, ...known }, { after, marker }, rows));
    if (found === null) {
      read = otherwise(marker);
      return read(rows);
    }
    after = found.resumeAt;
    marker = found.known.at(-1)?.server.uuid ?? marker;
    return { known: found.known, isLast: after === null };
  };
  return (rows) => read(rows);
}

/** Returns the values to look for. Null when a cell does not answer, or when too many values contain the text. */
async function valuesOf(
  cells: Cells,
  { attribute, value, isPart }: IndexedFilter,
): Promise<Pick<AttributeValueAsked, "value" | "otherValues"> | null> {
  if (!isPart || attribute !== "key") return { value };
  const query = { attribute, contains: value, looksMax: VALUES_LOOKED_AT_MAX };
  const answers = await Promise.all(
    Array.from(cells.values(), (cell) => cell.operations((store) => store.attributeValues(query))),
  );
  const found = new Set<string>();
  for (const answer of answers) {
    if (answer.kind === "unreachable" || answer.value === null) return null;
    for (const one of answer.value) found.add(one);
  }
  if (found.size > VALUES_MAX) return null;
  const [first = value, ...others] = found;
  return { value: first, otherValues: others };
}

/** Returns null when a cell does not answer. */
async function findByAttribute(
  { store, cells }: Deps,
  asked: AttributeValueAsked & { readonly projectId: string | null; readonly oldestFirst: boolean },
  { after, marker }: { readonly after: ListPosition | null; readonly marker: string | null },
  rows: number,
): Promise<{ readonly known: readonly KnownServer[]; readonly resumeAt: ListPosition | null } | null> {
  const { projectId, oldestFirst } = asked;
  const looks = projectId === null ? rows : Math.min(LOOKS_MAX, rows * LOOKS_FOR_ONE);
  const order = oldestFirst ? "oldest-first" : "newest-first";
  const page = { projectId, order, marker, limit: rows } as const;
  const elsewhere = await Promise.all([
    store.listRequests({ ...page, failed: true }),
    store.listRequests({ ...page, open: true }),
  ]);
  // The cells are asked last: a server that leaves the open requests meanwhile is in its cell by then.
  const answers = await Promise.all(
    Array.from(cells.values(), async (cell) => ({
      cell: cell.name,
      answer: await cell.operations((inCell) => inCell.serversByAttribute({ ...asked, after, rows: looks })),
    })),
  );
  const ends = elsewhere.flatMap((records) => (records.length < rows ? [] : records.slice(-1).map(positionOf)));
  const inCells = new Map<string, { readonly cell: string; readonly server: Server }>();
  for (const { cell, answer } of answers) {
    if (answer.kind === "unreachable") return null;
    if (answer.value.resumeAt !== null) ends.push(answer.value.resumeAt);
    for (const server of answer.value.servers) inCells.set(server.uuid, { cell, server });
  }
  const compare = (one: ListPosition, other: ListPosition) => newestFirst(one, other) * (oldestFirst ? -1 : 1);
  // Each part of the list is known up to its own end, so the whole is known up to the first one.
  const [end = null] = ends.sort(compare);
  const isKnown = (place: ListPosition): boolean => end === null || compare(place, end) <= 0;
  const wanted = [...inCells.values()].filter(({ server }) => isKnown(server)).map(({ server }) => server.uuid);
  const ofCells = (await store.requests(wanted)).flatMap((record) => {
    const { cell, server } = inCells.get(record.serverUuid) ?? {};
    const isHere = livesInCell(record) && record.cell === cell && record.state !== "cancelled" && !record.softlyDeleted;
    return isHere && server !== undefined ? [knownServer(record, server, false)] : [];
  });
  const listed = new Set(ofCells.map(({ server }) => server.uuid));
  const others = elsewhere
    .flat()
    .filter((record, at, all) => all.findIndex(({ serverUuid }) => serverUuid === record.serverUuid) === at)
    .filter((record) => isKnown(positionOf(record)) && !listed.has(record.serverUuid));
  const known = [...ofCells, ...(await hydrateServers(others, cells, { withDeleted: false }))];
  return {
    known: known
      .filter(({ server }) => server.status !== "DELETED")
      .sort((one, other) => compare(one.server, other.server)),
    resumeAt: end,
  };
}
