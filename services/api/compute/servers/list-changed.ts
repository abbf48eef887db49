import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import {
  hydrateServer,
  hydrateServers,
  type KnownServer,
  keyInCell,
  knownServer,
} from "../../cells/hydrate-servers.ts";
import { badRequest, type Fault, unavailable } from "../../http/fault.ts";
import type { RequestsPort } from "../../ports.ts";
import { pageOf } from "./list-found.ts";
import type { ListQuery } from "./list-query.ts";
import type { ServerPage } from "./server-page.ts";
import type { SoftlyDeletedDeps } from "./soft-deleted-stretches.ts";

/** Maximum number of changes of one cell that one call reads. */
const CHANGES_MAX = 10_000;

interface Deps extends SoftlyDeletedDeps {
  readonly store: Pick<RequestsPort, "requests" | "listRequests">;
}

/**
 * Lists the servers that were changed in a time, including deleted servers, or only deleted ones, newest first. Cells know the changes of their servers, and
 * the API database those of requests in no cell. Refuses a list for which a cell, or the API database, would have to read too many changes.
 */
export async function listChanged(deps: Deps, query: ListQuery, marker: RequestRecord | null): Promise<ServerPage> {
  const { changedBeforeMs: beforeMs, projectId } = query;
  const deleted = query.deleted !== null;
  const sinceMs = query.changedSinceMs ?? 0;
  // Their refusal costs little, so they are asked before the requests are read.
  const answers = await Promise.all(
    Array.from(deps.cells.values(), async (cell) => ({
      cell: cell.name,
      answer: await cell.serversChanged({ sinceMs, beforeMs, deleted, projectId, looksMax: CHANGES_MAX }),
    })),
  );
  const inCells = new Map<string, Server>();
  for (const { cell, answer } of answers) {
    if (answer.kind === "unreachable") continue;
    if (answer.value.kind === "too-many") throw tooMany(query);
    if (answer.value.kind === "too-slow") throw tooSlow(query);
    for (const server of answer.value.servers) inCells.set(keyInCell(cell, server.uuid), server);
  }
  const inItsCell = ({ cell, serverUuid }: RequestRecord): Server | null =>
    inCells.get(keyInCell(cell, serverUuid)) ?? null;
  const records = deleted ? await softlyDeletedOf(deps, query) : await changedRequestsOf(deps, query);
  const others = await hydrateServers(
    records.filter((record) => inItsCell(record) === null),
    deps.cells,
    { withDeleted: true },
  );
  const ofCells = await deps.store.requests([...new Set(Array.from(inCells.values(), ({ uuid }) => uuid))]);
  const known = [
    ...ofCells.flatMap((record) => {
      const server = inItsCell(record);
      return server === null ? [] : [knownServer(record, server, false)];
    }),
    ...others.filter(({ server }) => !deleted || server.updatedAtMs >= sinceMs),
  ];
  const wanted = known.filter((one) => isWanted(one, query));
  const at = marker === null ? null : await hydrateServer(marker, deps.cells, { withDeleted: true });
  return pageOf(wanted, query, at);
}

async function changedRequestsOf({ store }: Deps, query: ListQuery): Promise<readonly RequestRecord[]> {
  const { projectId, changedSinceMs: sinceMs, changedBeforeMs: beforeMs } = query;
  const records = await store.listRequests({
    ...{ projectId, marker: null, limit: CHANGES_MAX + 1 },
    ...(sinceMs !== null && { changedSinceMs: sinceMs }),
    // A server may have been changed in this time although its request was written again later, so `changes-since` alone limits the requests.
    ...(sinceMs === null && beforeMs !== null && { changedBeforeMs: beforeMs }),
  });
  // Only a later `changes-since` makes these requests fewer.
  if (records.length > CHANGES_MAX) throw tooMany(sinceMs === null ? query : { ...query, changedBeforeMs: null });
  return records;
}

/** The servers that are deleted softly, of which their cells may know nothing. */
async function softlyDeletedOf({ store, softDeleter }: Deps, query: ListQuery): Promise<readonly RequestRecord[]> {
  const places = (await softDeleter?.softlyDeleted(query.projectId, CHANGES_MAX + 1)) ?? [];
  if (places.length > CHANGES_MAX) throw tooMany(query);
  const records = await store.requests(places.map(({ uuid }) => uuid));
  return records.filter(({ softlyDeleted }) => softlyDeleted);
}

function isWanted({ server }: KnownServer, { projectId, nameContains, deleted, changedBeforeMs }: ListQuery): boolean {
  return (
    (projectId === null || server.spec.projectId === projectId) &&
    (nameContains === null || server.spec.name.includes(nameContains)) &&
    (deleted === null || server.status === "DELETED" || server.status === "SOFT_DELETED") &&
    (changedBeforeMs === null || server.updatedAtMs <= changedBeforeMs)
  );
}

function tooMany(query: ListQuery): Fault {
  const { changedSinceMs: since, changedBeforeMs: before, deleted } = query;
  const are = deleted === null ? "have changed" : "are deleted and have changed";
  const what =
    since !== null && before !== null
      ? `${are} in that time; use a shorter time`
      : since !== null
        ? `${are} since then; use a later time`
        : before !== null
          ? `last changed before then${deleted === null ? "" : " and are deleted"}; use an earlier time, or give changes-since, too`
          : "are deleted; give a time with changes-since, too";
  return badRequest(
    `Invalid input for query parameters ${parametersOf(query)}: more than ${CHANGES_MAX} servers ${what}.`,
  );
}

function tooSlow(query: ListQuery): Fault {
  return unavailable(
    `A cell did not find the servers of the query parameters ${parametersOf(query)} in time, because very many have changed, or too many such lists are asked for at the moment: use a shorter time, or try again later.`,
  );
}

/** The parameters that make the list one of changes. */
function parametersOf({ changedSinceMs, changedBeforeMs, deleted }: ListQuery): string {
  const times = [changedSinceMs !== null && "changes-since", changedBeforeMs !== null && "changes-before", deleted];
  return times.filter((name) => name !== false && name !== null).join(", ");
}
