import type { RequestOrder, RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { ListPosition } from "../../../../core/stores/cell/listed-servers.ts";
import { type Cells, hydrateServers } from "../../cells/hydrate-servers.ts";
import type { RequestsPort } from "../../ports.ts";
import { attributeReader, isFurther, listPlaceOf } from "./attribute-stretches.ts";
import { isIndexedName } from "./indexed-name.ts";
import { isByCreation } from "./list-order.ts";
import type { ListQuery } from "./list-query.ts";
import type { ReadPlaced, ReadStretch } from "./list-stretch.ts";

interface Deps {
  readonly store: Pick<RequestsPort, "requests" | "listRequests" | "scanRequests">;
  readonly cells: Cells;
}
type Asked = Pick<ListQuery, "projectId" | "nameContains" | "indexed" | "matches" | "created">;

/** The servers of a project, or with a name, are read one after the other while this share of them pass the filters. */
const PASSING_SHARE_MIN = 0.1;
/** How many servers are read in both ways, at most, before one of them is chosen. */
const TRIED_ROWS = 100;

/**
 * Returns how the servers of a list are found: by an index of one of the filters, or in the order of the list. In the list of a project or of a name, it
 * begins with the servers of the project or with the name, which may be few. If few of them pass, the indexes of the filters are tried, too, and the way
 * that comes further down the list is gone on with.
 */
export function stretchReader(
  deps: Deps,
  query: Asked,
  order: RequestOrder,
  marker: RequestRecord | null,
): ReadStretch {
  const inOrder = scanReader(deps, query, order, marker?.serverUuid ?? null);
  const { indexed, matches, projectId } = query;
  if (indexed.length === 0 || !isByCreation(order)) return inOrder;
  const oldestFirst = order === "oldest-first";
  const byIndexFrom = (after: ListPosition | null) =>
    attributeReader(deps, { indexed, projectId, oldestFirst }, after, (uuid) => scanReader(deps, query, order, uuid));
  if (projectId === null && !isIndexedName(query.nameContains)) return byIndexFrom(marker && listPlaceOf(marker));
  let read: ReadStretch = async (rows) => {
    const stretch = await inOrder(rows);
    const passing = stretch.known.filter((known) => matches === null || matches(known)).length;
    if (!stretch.isLast && stretch.end !== null && passing < stretch.known.length * PASSING_SHARE_MIN)
      read = furthest(inOrder, byIndexFrom(stretch.end), oldestFirst);
    return stretch;
  };
  return (rows) => read(rows);
}

/** Reads the first stretch in both ways, and then goes on with the one that has come further. */
function furthest(one: ReadPlaced, other: ReadPlaced, oldestFirst: boolean): ReadStretch {
  let read: ReadStretch = async (rows) => {
    const tried = Math.min(rows, TRIED_ROWS);
    const [first, second] = await Promise.all([one(tried), other(tried)]);
    const isSecond = first.isLast ? false : second.isLast || isFurther(second.end, first.end, oldestFirst);
    read = isSecond ? other : one;
    return isSecond ? second : first;
  };
  return (rows) => read(rows);
}

/** Reads the list in its order, or the servers of it whose names have the text if an index finds them. */
function scanReader(
  { store, cells }: Deps,
  { projectId, nameContains, created }: Asked,
  order: RequestOrder,
  start: string | null,
): ReadPlaced {
  let marker = start;
  let end: ListPosition | null = null;
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
    const last = records.at(-1);
    if (last !== undefined) end = listPlaceOf(last);
    const known = await hydrateServers(records, cells, { withDeleted: false });
    return { known, end, isLast: marker === null };
  };
}
