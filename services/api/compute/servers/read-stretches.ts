import type { RequestOrder, RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { IndexedAttribute, ListPosition } from "../../../../core/stores/cell/listed-servers.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { type Cells, hydrateServers } from "../../cells/hydrate-servers.ts";
import type { RequestsPort } from "../../ports.ts";
import { attributeReader, isFurther } from "./attribute-stretches.ts";
import { isIndexedName } from "./indexed-name.ts";
import type { IndexedFilter } from "./list-filters.ts";
import { isByCreation, listPlaceOf } from "./list-order.ts";
import type { ListQuery } from "./list-query.ts";
import type { ListStretch, PlacedStretch, ReadPlaced, ReadStretch } from "./list-stretch.ts";
import { passingServers } from "./passing-servers.ts";

interface Deps {
  readonly store: Pick<RequestsPort, "requests" | "listRequests" | "scanRequests" | "isRareName">;
  readonly cells: Cells;
}
/** Where a list begins: after a server, or after a place, or (both null) at its first server. */
interface Start {
  readonly marker: string | null;
  readonly after: ListPosition | null;
}
/** Reads the next requests of a list. */
type ReadRecords = (
  rows: number,
) => Promise<Omit<PlacedStretch, "known"> & { readonly records: readonly RequestRecord[] }>;
type Asked = Pick<ListQuery, "projectId" | "nameContains" | "indexed" | "matches" | "rest" | "created">;

/** The servers of a project, or with a name, are read one after the other while this share of them pass the filters. */
const PASSING_SHARE_MIN = 0.1;
/** A stretch of a project's servers, for which cells are asked, costs as much as this many stretches of an index, each of which looks at ten times as many servers. */
const STRETCHES_OF_INDEX = 1.5;
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
  const start = { marker: marker?.serverUuid ?? null, after: null };
  if (indexed.length === 0 || !isByCreation(order)) return inOrderFrom(start);
  const oldestFirst = order === "oldest-first";
  const byIndexFrom = (after: ListPosition | null) =>
    attributeReader(deps, { indexed, nameContains, projectId, oldestFirst }, after, (from) =>
      inOrderFrom({ marker: null, after: from }),
    );
  const place = marker && listPlaceOf(marker);
  const byIndex = byIndexFrom(place);
  // A cell has a list of each status of a project, too.
  const isOfProject = projectId !== null && !indexed.some(({ attribute }) => attribute === "status");
  if (isOfProject) {
    const records = recordReader(deps, query, order, start);
    return projectReader(deps, query, records, place, { byIndex, byIndexFrom, oldestFirst });
  }
  if (nameContains === null || !isIndexedName(nameContains)) return byIndex;
  return firstly(
    byIndex,
    (after) => inOrderFrom({ marker: null, after }),
    query,
    oldestFirst,
    () => deps.store.isRareName(nameContains),
  );
}

interface Ways {
  readonly byIndex: ReadPlaced;
  readonly byIndexFrom: (after: ListPosition | null) => ReadPlaced;
  readonly oldestFirst: boolean;
}

/**
 * Reads the servers of a project one after the other. If the first requests show that few of them can pass the filters, the index is tried before any cell is asked about
 * these servers, and is read on if it comes further at the same cost.
 */
function projectReader(
  { cells }: Deps,
  query: Asked,
  readRecords: ReadRecords,
  start: ListPosition | null,
  { byIndex, byIndexFrom, oldestFirst }: Ways,
): ReadStretch {
  let read: ReadStretch = async (rows) => {
    // One more shows whether these are all, so that nothing else has to be asked about a project whose servers fit on the page.
    const { records, end, isLast } = await readRecords(rows + 1);
    const [first] = records;
    const mayPass = () => records.filter(({ spec }) => hasValues(spec, query.indexed)).length;
    const isFew = !isLast && end !== null && first !== undefined && isFewOf(mayPass(), records.length);
    if (isFew) {
      const from = start ?? listPlaceOf(first);
      const reach = (place: ListPosition) => Math.abs(place.createdAtMs - from.createdAtMs);
      const tried = Math.min(rows, TRIED_ROWS);
      const found = await byIndex(tried);
      const share = (STRETCHES_OF_INDEX * records.length) / tried;
      if (found.isLast || (found.end !== null && reach(found.end) * share >= reach(end))) {
        read = byIndex;
        return found;
      }
    }
    const stretch = { known: await hydrateServers(records, cells, { withDeleted: false }), end, isLast };
    // The same reader goes on: it may have looked at many servers after the last one that has the name.
    const inOrder = hydrated(readRecords, cells);
    const isTried = !isLast && !isFew && end !== null && (await isFewPassing(stretch, query));
    read = isTried ? furthest(inOrder, byIndexFrom(end), oldestFirst) : inOrder;
    return stretch;
  };
  return (rows) => read(rows);
}

/** Whether a server that was made by this spec, and not changed since then, has the values of the filters, as far as the spec tells. */
function hasValues(spec: ServerSpec, filters: readonly IndexedFilter[]): boolean {
  return filters.every(({ attribute, value, otherValues = [], isPart }) => {
    const own = specValueOf(spec, attribute);
    return own === null || own === value || otherValues.includes(own) || (isPart && own.includes(value));
  });
}

function specValueOf({ flavor, imageRef, userId, keyName }: ServerSpec, attribute: IndexedAttribute): string | null {
  const values: Partial<Record<IndexedAttribute, string>> = { image: imageRef, user: userId, key: keyName };
  return attribute === "flavor" ? (flavor?.id ?? "") : (values[attribute] ?? null);
}

/** Reads servers in one way and, if few of them pass, in the other way, too, to go on with the one that comes further. */
function firstly(
  one: ReadPlaced,
  otherFrom: (end: ListPosition) => ReadPlaced,
  query: Pick<Asked, "matches" | "rest">,
  oldestFirst: boolean,
  isOtherGood: () => Promise<boolean> = async () => true,
): ReadStretch {
  let read: ReadStretch = async (rows) => {
    const stretch = await one(rows);
    const { isLast, end } = stretch;
    const isTried = !isLast && end !== null && (await isFewPassing(stretch, query)) && (await isOtherGood());
    read = isTried ? furthest(one, otherFrom(end), oldestFirst) : one;
    return stretch;
  };
  return (rows) => read(rows);
}

const isFewOf = (passing: number, all: number): boolean => passing < Math.max(1, all * PASSING_SHARE_MIN);

async function isFewPassing({ known }: ListStretch, query: Pick<Asked, "matches" | "rest">): Promise<boolean> {
  return isFewOf((await passingServers(known, query)).length, known.length);
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

/** Reads the servers of the requests that `recordReader` reads. */
function scanReader(deps: Deps, query: Asked, order: RequestOrder, start: Start): ReadPlaced {
  return hydrated(recordReader(deps, query, order, start), deps.cells);
}

function hydrated(read: ReadRecords, cells: Cells): ReadPlaced {
  return async (rows) => {
    const { records, ...stretch } = await read(rows);
    return { ...stretch, known: await hydrateServers(records, cells, { withDeleted: false }) };
  };
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
function recordReader(
  { store }: Pick<Deps, "store">,
  { projectId, nameContains, created }: Asked,
  order: RequestOrder,
  start: Start,
): ReadRecords {
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
    return { records, end, isLast };
  };
}
