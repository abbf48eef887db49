import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type {
  AttributeValueAsked,
  ListPosition,
  ServerSketch,
  SketchQuery,
} from "../../../../core/stores/cell/listed-servers.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { UserChanges } from "../../../../core/tasks/user-changes.ts";
import { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { forEachBounded } from "../../../../runtime/for-each-bounded.ts";
import { type Cells, hydrateServers, type KnownServer, knownInCell } from "../../cells/hydrate-servers.ts";
import type { RequestsPort } from "../../ports.ts";
import { elsewhereWith } from "./attribute-stretches.ts";
import type { ListOrder } from "./list-order.ts";
import type { ListQuery } from "./list-query.ts";
import { passingServers } from "./passing-servers.ts";
import { ATTRIBUTE_ORIGINS } from "./server-attributes.ts";

interface Deps {
  readonly store: Pick<RequestsPort, "changesOf" | "listRequests">;
  readonly cells: Cells;
}

/** The place of a server that may be in a list. */
export interface SketchedPlace extends ListPosition {
  /** The server is there only if this cell is its home. Null, or absent, for a server that may be anywhere. */
  readonly cell?: string | null;
}

/** Maximum number of servers with a value that a cell looks at for the list of one project. If more have it, reading the project's own list may cost less. */
const SKETCHES_OF_PROJECT_MAX = 2_500;

/** How many cells tell the specs of their servers at a time. Specs may be large, and the answers of some of the cells may already show that the servers are too many. */
const SPECS_OF_CELLS = 4;

/** Stands for a spec that was not asked for. */
const NO_SPEC = ServerSpec.fromPartial({});

/**
 * Returns the places after the marker of all servers that may pass the filters, in the order of the list. Cells tell only the parts of servers by which they are sorted, so
 * that no more than the servers of the page need to be read. Some of the servers may have left the list, be at home elsewhere, or not pass.
 *
 * Null when no index of the cells finds few of them, or when a cell does not answer.
 */
export async function findSketched(
  deps: Deps,
  query: ListQuery,
  marker: () => Promise<KnownServer | null>,
  looksMax: number,
): Promise<readonly SketchedPlace[] | null> {
  const filters = query.indexed.filter(isSketched);
  if (filters.length === 0 || deps.cells.size === 0 || query.softDeleted) return null;
  const elsewhere = await requestsElsewhere(deps, query, looksMax);
  if (elsewhere === null) return null;
  // Asked afterwards: a server that leaves these requests meanwhile is in its cell by then.
  const sketches = await sketchesOf(deps.cells, query, filters, looksMax);
  if (sketches === null) return null;
  const isChangeable = originsOf(query.order).some((origin) => origin.isChangeable);
  const uuids = isChangeable ? sketches.map(({ sketch }) => sketch.uuid) : [];
  const [changes, others, after] = await Promise.all([
    deps.store.changesOf(uuids),
    hydrateServers(elsewhere, deps.cells, { withDeleted: false }),
    marker(),
  ]);
  const apart = new Set(elsewhere.map(({ serverUuid }) => serverUuid));
  const ofCells = sketches.filter(({ sketch }) => !apart.has(sketch.uuid)).map((one) => knownOf(one, changes));
  return query
    .sort([...ofCells, ...(await passingServers(others, query))], after)
    .map(({ server: { uuid, createdAtMs }, cell }) => ({ uuid, createdAtMs, cell: apart.has(uuid) ? null : cell }));
}

const originsOf = (order: ListOrder) => (order ?? []).map(({ key }) => ATTRIBUTE_ORIGINS[key]);

type SketchedFilter = Pick<SketchQuery, "attribute"> & AttributeValueAsked;

/** Whether cells tell sketches of the servers that the filter finds. No index of theirs finds a part of a value. */
const isSketched = (filter: ListQuery["indexed"][number]): filter is ListQuery["indexed"][number] & SketchedFilter =>
  filter.attribute !== "status" && !filter.isPart;

/** Returns the requests that may be in no cell, or null when they are very many. */
async function requestsElsewhere(
  { store }: Deps,
  { projectId, indexed }: ListQuery,
  most: number,
): Promise<readonly RequestRecord[] | null> {
  const kind = elsewhereWith(indexed);
  if (kind === null) return [];
  const records = await store.listRequests({ projectId, marker: null, limit: most + 1, ...kind });
  return records.length > most ? null : records;
}

interface Sketched {
  readonly cell: string;
  readonly sketch: ServerSketch;
}

/** Returns the servers that the index of a filter finds: of the first filter that not too many servers pass. */
async function sketchesOf(
  cells: Cells,
  { projectId, indexed, order }: ListQuery,
  filters: readonly SketchedFilter[],
  most: number,
): Promise<readonly Sketched[] | null> {
  const origins = originsOf(order);
  const parts = [...new Set(origins.flatMap((origin) => origin.parts))];
  const specFields = [...new Set(origins.flatMap((origin) => origin.specFields ?? []))];
  const looksMax = projectId === null ? most : Math.min(most, SKETCHES_OF_PROJECT_MAX);
  for (const filter of filters) {
    const others = indexed.filter((other) => other !== filter && !other.isPart);
    const query = { ...filter, others, projectId, looksMax, parts, specFields };
    const found = await sketchesOfCells(cells, query, most);
    if (found === "unreachable") return null;
    if (found !== "too-many") return found;
  }
  return null;
}

/** No further cell is asked when it is known that one does not answer, or that the servers are too many. */
async function sketchesOfCells(
  cells: Cells,
  query: SketchQuery,
  most: number,
): Promise<readonly Sketched[] | "unreachable" | "too-many"> {
  const sketched: Sketched[] = [];
  const ends = new Set<"unreachable" | "too-many">();
  const atATime = query.specFields.length > 0 ? SPECS_OF_CELLS : cells.size;
  await forEachBounded([...cells.values()], atATime, async (cell) => {
    if (ends.size > 0) return;
    const answer = await cell.operations((store) => store.serverSketches(query));
    if (answer.kind === "unreachable") ends.add("unreachable");
    else if (answer.value === null || sketched.length + answer.value.length > most) ends.add("too-many");
    else for (const sketch of answer.value) sketched.push({ cell: cell.name, sketch });
  });
  if (ends.size === 0) return sketched;
  return ends.has("unreachable") ? "unreachable" : "too-many";
}

/** The server as far as the order of the list needs it. That does not depend on the parts that were not asked for. */
function serverOf(sketch: ServerSketch): Server {
  // Written out, since a list may have thousands of them, and copies of objects take longer.
  return {
    uuid: sketch.uuid,
    status: sketch.status ?? "ACTIVE",
    taskState: sketch.taskState ?? null,
    host: sketch.host ?? null,
    spec: sketch.spec ?? NO_SPEC,
    createdAtMs: sketch.createdAtMs,
    updatedAtMs: sketch.updatedAtMs ?? 0,
    launchedAtMs: sketch.launchedAtMs ?? null,
    attemptId: null,
    fault: null,
    deletedAtMs: null,
    revision: 0,
  };
}

/** Servers whose requests are cancelled or softly deleted are not listed, so that it does not matter how they are sorted. */
function knownOf({ cell, sketch }: Sketched, changes: ReadonlyMap<string, UserChanges>): KnownServer {
  const request = {
    cell,
    changes: changes.get(sketch.uuid) ?? null,
    state: "dispatched",
    softlyDeleted: false,
  } as const;
  return knownInCell(request, serverOf(sketch));
}
