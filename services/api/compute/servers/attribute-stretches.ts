import { isDeepStrictEqual } from "node:util";
import type { RequestQuery, RequestRecord } from "../../../../core/stores/api/api-store.ts";
import {
  type AttributeStretch,
  type AttributeValueAsked,
  type ListPosition,
  newestFirst,
} from "../../../../core/stores/cell/listed-servers.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import {
  type Cells,
  hydrateServers,
  type KnownServer,
  keyInCell,
  knownServer,
  livesInCell,
} from "../../cells/hydrate-servers.ts";
import type { RequestsPort } from "../../ports.ts";
import type { IndexedFilter } from "./list-filters.ts";
import { listPlaceOf } from "./list-order.ts";
import type { ReadPlaced } from "./list-stretch.ts";

interface Deps {
  readonly store: Pick<RequestsPort, "requests" | "listRequests">;
  readonly cells: Cells;
}

interface Asked {
  readonly indexed: readonly IndexedFilter[];
  readonly nameContains: string | null;
  readonly projectId: string | null;
  readonly oldestFirst: boolean;
}

/** Maximum number of servers of one list at which a cell looks for one stretch. */
const LOOKS_MAX = 5_000;
/** The next stretch looks at up to this many times as many servers as the one before. */
const LOOKS_GROWTH = 50;
/** In a single list, this many servers are looked at for each that is to be found. Those that pass end the stretch earlier. */
const LOOKS_OF_ONE = 10;
/** At most this many different values of an attribute are searched for a text, and at most this many of them are looked for. */
const VALUES_LOOKED_AT_MAX = 10_000;
const VALUES_MAX = 300;

/**
 * Reads the servers with the values of attributes: those of the cells by their indexes, and all requests that are in no cell, or perhaps have another name there. When a cell does not
 * answer, the list is read in its order instead, since that cell's servers are known only from their requests.
 */
export function attributeReader(
  deps: Deps,
  asked: Asked,
  start: ListPosition | null,
  otherwise: (after: ListPosition | null) => ReadPlaced,
): ReadPlaced {
  let after = start;
  const reader = new AttributeReader(deps, asked);
  let read: ReadPlaced = async (rows) => {
    const found = await reader.next(after, rows);
    if (found === null) {
      read = otherwise(after);
      return read(rows);
    }
    after = found.resumeAt ?? after;
    return { known: found.known, end: after, isLast: found.resumeAt === null };
  };
  return (rows) => read(rows);
}

/**
 * Returns the values to look for: none when no server of any cell has a value that contains the text of a filter. Null when a cell does not answer, or when too many
 * values contain the text of the only filter.
 */
async function valuesOf(
  cells: Cells,
  filters: readonly IndexedFilter[],
): Promise<readonly AttributeValueAsked[] | null> {
  const found: AttributeValueAsked[] = [];
  for (const { isPart, ...filter } of filters) {
    const { attribute, value } = filter;
    if (!isPart || attribute !== "key") {
      found.push(filter);
      continue;
    }
    const values = await valuesContaining(cells, value);
    if (values === null) return null;
    const [first, ...otherValues] = values;
    if (first === undefined) return [];
    if (values.size <= VALUES_MAX) found.push({ attribute, value: first, otherValues });
  }
  return found.length === 0 ? null : found;
}

async function valuesContaining(cells: Cells, contains: string): Promise<ReadonlySet<string> | null> {
  const query = { attribute: "key", contains, looksMax: VALUES_LOOKED_AT_MAX } as const;
  const answers = await Promise.all(
    Array.from(cells.values(), (cell) => cell.operations((store) => store.attributeValues(query))),
  );
  const found = new Set<string>();
  for (const answer of answers) {
    if (answer.kind === "unreachable" || answer.value === null) return null;
    for (const one of answer.value) found.add(one);
  }
  return found;
}

/**
 * Reads the servers that have several values. Each value has its list in each cell. The first time, a cell looks at the same number of servers of each list,
 * and the list that comes furthest is read on alone: it has the fewest servers. From then on it looks at many of them, until enough have the other values.
 */
class AttributeReader {
  readonly #deps: Deps;
  readonly #asked: Asked;
  /** Null until the first stretch. */
  #values: readonly AttributeValueAsked[] | null = null;
  /** Null if none of them may pass. */
  readonly #elsewhere: RequestsElsewhere | null;
  /** Null if names do not matter. */
  readonly #changed: RequestsElsewhere | null;
  /** The value whose list is read on, by cell. */
  readonly #leading = new Map<string, AttributeValueAsked>();
  /** The list has servers with a status at rest: those of a cell that does not answer have the status UNKNOWN, and those that no cell has yet BUILD, so none of them passes. */
  readonly #mayLeaveOut: boolean;
  #looks = 0;

  constructor(deps: Deps, asked: Asked) {
    this.#deps = deps;
    this.#asked = asked;
    const kind = elsewhereWith(asked.indexed);
    this.#mayLeaveOut = kind?.open !== true;
    this.#elsewhere = kind && new RequestsElsewhere(deps.store, asked, kind);
    // A cell does not know the new names of its servers.
    this.#changed = asked.nameContains === null ? null : new RequestsElsewhere(deps.store, asked, { changed: true });
  }

  /** Returns null when a cell does not answer, or when too many values contain the text of the only filter. */
  async next(
    after: ListPosition | null,
    rows: number,
  ): Promise<{ readonly known: readonly KnownServer[]; readonly resumeAt: ListPosition | null } | null> {
    const { cells } = this.#deps;
    const { oldestFirst } = this.#asked;
    // What an open request may become is asked after the open ones, and again with each further page of them: a server that has left them meanwhile is in its
    // cell by then, and so is the value that it has.
    const mayHaveLeft = this.#elsewhere?.areAllRead === false;
    const inNoCell = (await this.#elsewhere?.next(after, rows)) ?? [];
    const changed = (await this.#changed?.next(after, rows, mayHaveLeft)) ?? [];
    const elsewhere = [inNoCell, changed];
    const values = await this.#valuesNow(mayHaveLeft);
    if (values === null) return null;
    const [only, ...furtherValues] = values;
    const isOne = only !== undefined && furtherValues.length === 0 && isOneList(only);
    const looks = Math.min(LOOKS_MAX, Math.max(isOne ? rows * LOOKS_OF_ONE : rows, this.#looks));
    const asked = only === undefined ? [] : Array.from(cells.values());
    const answers = await Promise.all(asked.map((cell) => this.#furthestOf(cell, values, after, rows, looks)));
    this.#looks = looks * LOOKS_GROWTH;
    const ends = elsewhere.flatMap((records) => (records.length < rows ? [] : records.slice(-1).map(listPlaceOf)));
    const inCells = new Map<string, Server>();
    for (const answer of answers) {
      if (answer === null) return null;
      if (answer.stretch.resumeAt !== null) ends.push(answer.stretch.resumeAt);
      for (const server of answer.stretch.servers) inCells.set(keyInCell(answer.cell, server.uuid), server);
    }
    // Each part of the list is known up to its own end, so the whole is known up to the first one.
    const end = ends.reduce<ListPosition | null>(
      (first, one) => (first === null || isFurther(first, one, oldestFirst) ? one : first),
      null,
    );
    const isKnown = (place: ListPosition): boolean => end === null || !isFurther(place, end, oldestFirst);
    return { known: await this.#known(elsewhere.flat(), inCells, isKnown), resumeAt: end };
  }

  /** Reads the values again if servers with new ones may have come into cells. If there are any, the lists are chosen again. */
  async #valuesNow(mayBeNew: boolean): Promise<readonly AttributeValueAsked[] | null> {
    const { indexed } = this.#asked;
    if (this.#values !== null && !(mayBeNew && indexed.some(({ isPart }) => isPart))) return this.#values;
    const values = await valuesOf(this.#deps.cells, indexed);
    if (!isDeepStrictEqual(values, this.#values)) {
      this.#values = values;
      this.#leading.clear();
    }
    return this.#values;
  }

  /** Asks the cell for a stretch of each list that it still reads, and goes on with the list that comes furthest. */
  async #furthestOf(
    cell: CellClient,
    values: readonly AttributeValueAsked[],
    after: ListPosition | null,
    limit: number,
    looks: number,
  ): Promise<{ readonly cell: string; readonly stretch: AttributeStretch } | null> {
    const { projectId, oldestFirst, nameContains } = this.#asked;
    const named = nameContains === null ? {} : { nameContains };
    const leading = this.#leading.get(cell.name);
    let best: { readonly value: AttributeValueAsked; readonly stretch: AttributeStretch } | null = null;
    const answers = await Promise.all(
      (leading === undefined ? values : [leading]).map(async (value) => {
        const others = values.filter((other) => other !== value);
        // A single list is looked at only until the page is full. Of several lists, each is looked at.
        const looksMax = leading !== undefined && isOneList(leading) ? LOOKS_MAX : looks;
        const query = { ...value, others, ...named, projectId, oldestFirst, after, limit, looksMax };
        return { value, answer: await cell.operations((inCell) => inCell.serversByAttribute(query)) };
      }),
    );
    for (const { value, answer } of answers) {
      if (answer.kind === "unreachable")
        return this.#mayLeaveOut ? { cell: cell.name, stretch: { servers: [], resumeAt: null } } : null;
      const stretch = answer.value;
      const isBest =
        best === null ||
        (best.stretch.resumeAt !== null &&
          (stretch.resumeAt === null || isFurther(stretch.resumeAt, best.stretch.resumeAt, oldestFirst)));
      if (isBest) best = { value, stretch };
    }
    if (best === null) return null;
    this.#leading.set(cell.name, best.value);
    return { cell: cell.name, stretch: best.stretch };
  }

  /** The servers that the cells have found and those that are in none of them, in the order of the list, as far as it is known. */
  async #known(
    elsewhere: readonly RequestRecord[],
    inCells: ReadonlyMap<string, Server>,
    isKnown: (place: ListPosition) => boolean,
  ): Promise<readonly KnownServer[]> {
    const { store, cells } = this.#deps;
    const wanted = new Set([...inCells.values()].filter((server) => isKnown(server)).map(({ uuid }) => uuid));
    const ofCells = (await store.requests([...wanted])).flatMap((record) => {
      const server = inCells.get(keyInCell(record.cell, record.serverUuid));
      const isHere = livesInCell(record) && record.state !== "cancelled" && !record.softlyDeleted;
      return isHere && server !== undefined ? [knownServer(record, server, false)] : [];
    });
    const listed = new Set(ofCells.map(({ server }) => server.uuid));
    const others = elsewhere
      .filter((record, at, all) => all.findIndex(({ serverUuid }) => serverUuid === record.serverUuid) === at)
      .filter((record) => isKnown(listPlaceOf(record)) && !listed.has(record.serverUuid));
    const known = [...ofCells, ...(await hydrateServers(others, cells, { withDeleted: false }))];
    const direction = this.#asked.oldestFirst ? -1 : 1;
    return known
      .filter(({ server }) => server.status !== "DELETED")
      .sort((one, other) => newestFirst(one.server, other.server) * direction);
  }
}

/**
 * Says which servers that are in no cell may pass the filters; null for none. Those that wait for a host have the status BUILD, by which no filter is indexed. Those whose
 * build failed before they came into a cell have the status ERROR.
 */
export function elsewhereWith(indexed: readonly IndexedFilter[]): Pick<RequestQuery, "open" | "failed"> | null {
  const statuses = indexed.filter(({ attribute }) => attribute === "status");
  if (statuses.length === 0) return { open: true, failed: true };
  return statuses.every(({ value, otherValues = [] }) => [value, ...otherValues].includes("ERROR"))
    ? { failed: true }
    : null;
}

type RequestKind = Pick<RequestQuery, "failed" | "open" | "changed">;

/** The requests of one kind that may be in no cell, or have another name there. */
class RequestsElsewhere {
  readonly #store: Deps["store"];
  readonly #asked: Asked;
  readonly #kind: RequestKind;
  /** All that follow, since the last page that was read was not full. */
  #rest: readonly RequestRecord[] | null = null;

  constructor(store: Deps["store"], asked: Asked, kind: RequestKind) {
    this.#store = store;
    this.#asked = asked;
    this.#kind = kind;
  }

  /** No more are read: a server that leaves these requests from now on is among those that `next` returns. */
  get areAllRead(): boolean {
    return this.#rest !== null;
  }

  /** Returns the next requests of the list, fewer than `rows` when no others follow. Once all are known, they are read again only if others may have joined them. */
  async next(after: ListPosition | null, rows: number, mayHaveJoined = false): Promise<readonly RequestRecord[]> {
    const { projectId, oldestFirst } = this.#asked;
    if (this.#rest !== null && !mayHaveJoined)
      return this.#rest.filter((record) => isFurther(listPlaceOf(record), after, oldestFirst)).slice(0, rows);
    const order = oldestFirst ? "oldest-first" : "newest-first";
    const records = await this.#store.listRequests({
      projectId,
      order,
      limit: rows,
      marker: null,
      after,
      ...this.#kind,
    });
    this.#rest = records.length < rows ? records : null;
    return records;
  }
}

const isOneList = ({ otherValues = [], orNone = false }: AttributeValueAsked): boolean =>
  otherValues.length === 0 && !orNone;

/** Whether a place comes later in the list than another one. Null is the place before the first server. */
export function isFurther(place: ListPosition | null, than: ListPosition | null, oldestFirst: boolean): boolean {
  if (place === null || than === null) return place !== null;
  return newestFirst(than, place) * (oldestFirst ? -1 : 1) < 0;
}
