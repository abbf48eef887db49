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
  readonly store: Pick<RequestsPort, "requests" | "listRequests" | "scanRequests" | "isRareName">;
  readonly cells: Cells;
}
/** Where a list begins: after a server, or after a place, or (both null) at its first server. */
interface Start {
  readonly marker: string | null;
  readonly after: ListPosition | null;
}
type Asked = Pick<ListQuery, "projectId" | "nameContains" | "indexed" | "matches" | "created">;

/** The servers of a project, or with a name, are read one after the other while this share of them pass the filters. */
const PASSING_SHARE_MIN = 0.1;
/** How many servers are read in both ways, at most, before one of them is chosen. */
const TRIED_ROWS = 100;

/**
 * Returns how the servers of a list are found: by an index of one of the filters, or in the order of the list. The list of a project
 * begins with the servers of the project, which may be few, unless the filter is a status. If few of them pass, the indexes of the filters are tried, too, and the way
 * that comes further down the list is gone on with. So is the way by names if few of the servers that an index finds have the name.
 */
export function stretchReader(
  deps: Deps,
  query: Asked,
  order: RequestOrder,
  marker: RequestRecord | null,
): ReadStretch {
  const inOrderFrom = (start: Start) => scanReader(deps, query, order, start);
  const { indexed, projectId, nameContains } = query;
  const atMarker = { marker: marker?.serverUuid ?? null, after: null };
  if (indexed.length === 0 || !isByCreation(order)) return inOrderFrom(atMarker);
  const oldestFirst = order === "oldest-first";
  const byIndexFrom = (after: ListPosition | null) =>
    attributeReader(deps, { indexed, nameContains, projectId, oldestFirst }, after, (from) =>
      inOrderFrom({ marker: null, after: from }),
    );
  const byIndex = byIndexFrom(marker && listPlaceOf(marker));
  // A cell has a list of each status of a project, too.
  const isOfProject = projectId !== null && !indexed.some(({ attribute }) => attribute === "status");
  if (isOfProject) return firstly(inOrderFrom(atMarker), byIndexFrom, query, oldestFirst);
  if (nameContains === null || !isIndexedName(nameContains)) return byIndex;
  return firstly(
    byIndex,
    (after) => inOrderFrom({ marker: null, after }),
    query,
    oldestFirst,
    () => deps.store.isRareName(nameContains),
  );
}

/** Reads servers in one way and, if few of them pass, in the other way, too, to go on with the one that comes further. */
function firstly(
  one: ReadPlaced,
  otherFrom: (end: ListPosition) => ReadPlaced,
  { matches }: Pick<Asked, "matches">,
  oldestFirst: boolean,
  isOtherGood: () => Promise<boolean> = async () => true,
): ReadStretch {
  let read: ReadStretch = async (rows) => {
    const stretch = await one(rows);
    const passing = stretch.known.filter((known) => matches === null || matches(known)).length;
    const { isLast, end } = stretch;
    const isFew = passing < Math.max(1, stretch.known.length * PASSING_SHARE_MIN);
    const isTried = !isLast && end !== null && isFew && (await isOtherGood());
    read = isTried ? furthest(one, otherFrom(end), oldestFirst) : one;
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

/** How many servers of a list are compared with a name, at most, before the index of names is asked, and how many have it if very many do. */
const NAMES_TRIED = 1_000;
const NAMES_MANY = 4;
/** How many servers are compared with a name that many have, at most, for one stretch. */
const NAMES_LOOKED_AT_MAX = 10_000;

/**
 * Reads the list in its order, or those servers of it whose names have the text. A text that some of the first names have is found soon by a look at the names, while
 * the index of names would first collect all that have it.
 */
function scanReader(
  { store, cells }: Deps,
  { projectId, nameContains, created }: Asked,
  order: RequestOrder,
  start: Start,
): ReadPlaced {
  let end = start.after;
  let from = { projectId, order, ...start };
  let byName: "tried" | "looked at" | "indexed" = isIndexedName(nameContains) ? "tried" : "looked at";
  const ofTime = created !== null && isByCreation(order) ? { created } : {};
  const goOnAfter = (marker: string | null) => {
    from = { projectId, order, marker, after: null };
    return marker === null;
  };
  return async (rows) => {
    const records: RequestRecord[] = [];
    let isLast = false;
    if (nameContains === null || byName !== "indexed") {
      const looks = byName === "tried" ? NAMES_TRIED : NAMES_LOOKED_AT_MAX;
      const named = nameContains === null ? {} : { named: { contains: nameContains, limit: rows } };
      const stretch = await store.scanRequests({
        ...from,
        ...ofTime,
        rows: nameContains === null ? rows : looks,
        ...named,
      });
      records.push(...stretch.records);
      isLast = goOnAfter(stretch.resumeAt);
      if (nameContains !== null && byName === "tried") {
        const isCommon = isLast || records.length >= Math.min(NAMES_MANY, rows);
        byName = isCommon || !(await store.isRareName(nameContains)) ? "looked at" : "indexed";
      }
    }
    if (nameContains !== null && byName === "indexed" && !isLast && records.length < rows) {
      const limit = rows - records.length;
      const found = await store.listRequests({ ...from, nameContains, limit });
      records.push(...found);
      isLast = goOnAfter(found.length < limit ? null : (found.at(-1)?.serverUuid ?? null));
    }
    const last = records.at(-1);
    if (last !== undefined) end = listPlaceOf(last);
    return { known: await hydrateServers(records, cells, { withDeleted: false }), end, isLast };
  };
}
