import { expect, test } from "vitest";
import type { RequestQuery, RequestRecord, RequestScan } from "../../../../core/stores/api/api-store.ts";
import type { AttributeQuery } from "../../../../core/stores/cell/listed-servers.ts";
import { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import { type ListServersDeps, listServers } from "./list-servers.ts";

const GONE = 4_000;
const uuidOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
const recordOf = (number: number): RequestRecord => ({
  serverUuid: uuidOf(number),
  spec: ServerSpec.fromPartial({ uuid: uuidOf(number), projectId: "p" }),
  state: "dispatched",
  cell: "east",
  assignment: 0,
  changes: null,
  fault: null,
  cancellation: null,
  createdAtMs: -number,
  updatedAtMs: 0,
  softlyDeleted: false,
});

/** A project whose newest server exists, whose next ones are gone from their cell, and which has two more that exist. */
function restored() {
  const requests = Array.from({ length: GONE + 3 }, (_, number) => recordOf(number));
  const reads: number[] = [];
  const isGone = (uuid: string) => uuid > uuidOf(0) && uuid <= uuidOf(GONE);
  const east = {
    servers: async (uuids: readonly string[]) => ({
      kind: "answer",
      value: uuids.map((uuid) => ({ uuid, status: isGone(uuid) ? "DELETED" : "ACTIVE" })),
    }),
  };
  const deps = {
    store: {
      listRequests: async ({ after, marker, limit }: RequestQuery) => {
        reads.push(limit);
        // The list is in the order of creation, so the place of the marker is enough, and the database does not read it again.
        expect(marker).toBeNull();
        const start = after ? requests.findIndex(({ serverUuid }) => serverUuid === after.uuid) + 1 : 0;
        return requests.slice(start, start + limit);
      },
    },
    clock: { monotonic: () => 0 },
    finder: { find: async (uuid: string) => requests.find(({ serverUuid }) => serverUuid === uuid) ?? null },
    cells: new Map([["east", east]]),
  } as unknown as ListServersDeps;
  const page = (limit: number, marker: string | null) => {
    const query = {
      ...{ projectId: "p", limit, marker, nameContains: null, changedSinceMs: null, changedBeforeMs: null },
      ...{
        deleted: null,
        softDeleted: false,
        sources: [],
        indexed: [],
        created: null,
        order: null,
        sort: (servers: readonly KnownServer[]) => servers,
        matches: null,
      },
    };
    return listServers(deps, { identity: {} } as KnownCall, query);
  };
  return { page, reads };
}

test("the rest of a page is read in large batches when many servers of a list are gone from their cells", async () => {
  const { page, reads } = restored();
  const first = await page(2, null);
  expect(first.servers.map(({ server }) => server.uuid)).toEqual([uuidOf(0), uuidOf(GONE + 1)]);
  expect(reads.length).toBeLessThan(10);
  const second = await page(2, first.nextMarker);
  expect(second.servers.map(({ server }) => server.uuid)).toEqual([uuidOf(GONE + 2)]);
  expect(second.nextMarker).toBeNull();
});

test.each([
  ["web-1", ["scan", "index"]],
  ["größe", ["scan", "index"]],
  ["server", ["scan", "scan"]],
  ["we", ["scan", "scan"]],
  ["a-1.b_2", ["scan", "scan"]],
])("a name with the text %s is looked for by %j", async (nameContains, ways) => {
  const reads: string[] = [];
  const deps = {
    store: {
      listRequests: async () => {
        reads.push("index");
        return [];
      },
      scanRequests: async () => {
        reads.push("scan");
        return { records: [], resumeAt: reads.length === 1 ? uuidOf(1) : null };
      },
      isRareName: async () => nameContains !== "server",
    },
    clock: { monotonic: () => 0 },
    cells: new Map(),
  } as unknown as ListServersDeps;
  const query = {
    ...{ projectId: "p", limit: 5, marker: null, nameContains, changedSinceMs: null, changedBeforeMs: null },
    ...{
      deleted: null,
      softDeleted: false,
      sources: [],
      indexed: [],
      created: null,
      order: null,
      sort: (servers: readonly KnownServer[]) => servers,
      matches: null,
    },
  };
  const { servers } = await listServers(deps, { identity: {} } as KnownCall, query);
  expect([servers, reads]).toEqual([[], ways]);
});

/** Servers named in the order of their numbers, some of them stopped. The cell finds those by its index. */
function stopped(count: number, isStopped: (number: number) => boolean) {
  const records = Array.from({ length: count }, (_, number) => recordOf(number));
  const numberOf = (uuid: string) => Number(uuid.slice(-12));
  const serverOf = ({ serverUuid: uuid, spec, createdAtMs }: RequestRecord) => ({
    ...{ uuid, spec, createdAtMs },
    status: isStopped(numberOf(uuid)) ? "SHUTOFF" : "ACTIVE",
  });
  const looks = { walked: 0, found: 0 };
  const answer = (value: unknown) => ({ kind: "answer", value });
  const afterOf = (uuid: string | undefined) => (uuid === undefined ? 0 : numberOf(uuid) + 1);
  const inCell = {
    serverSketches: async () => answer(null),
    serversByAttribute: async ({ after, limit }: AttributeQuery) => {
      const passing = records.slice(afterOf(after?.uuid)).filter(({ serverUuid }) => isStopped(numberOf(serverUuid)));
      const servers = passing.slice(0, limit).map(serverOf);
      looks.found += servers.length;
      return answer({ servers, resumeAt: passing.length > limit ? servers.at(-1) : null });
    },
  };
  const east = {
    name: "east",
    server: async (uuid: string) => answer(serverOf(recordOf(numberOf(uuid)))),
    servers: async (uuids: readonly string[]) => answer(uuids.map((uuid) => serverOf(recordOf(numberOf(uuid))))),
    operations: (ask: (operations: typeof inCell) => unknown) => ask(inCell),
  };
  const deps = {
    store: {
      requests: async (uuids: readonly string[]) => uuids.map((uuid) => recordOf(numberOf(uuid))),
      listRequests: async () => [],
      scanRequests: async ({ marker, rows }: RequestScan) => {
        const start = afterOf(marker ?? undefined);
        const page = records.slice(start, start + rows);
        looks.walked += page.length;
        return { records: page, resumeAt: start + rows < count ? page.at(-1)?.serverUuid : null };
      },
    },
    clock: { monotonic: () => 0 },
    finder: { find: async (uuid: string) => recordOf(numberOf(uuid)) },
    cells: new Map([["east", east]]),
  } as unknown as ListServersDeps;
  const list = async (limit: number, marker: string | null, attribute: "status" | "host") => {
    const query = {
      ...{ projectId: null, limit, marker, nameContains: null, changedSinceMs: null, changedBeforeMs: null },
      ...{ deleted: null, softDeleted: false, sources: [], created: null },
      indexed: [{ attribute, value: "SHUTOFF", isPart: false }],
      order: [{ key: "display_name", descending: false }] as const,
      sort: (servers: readonly KnownServer[], after: KnownServer | null) => {
        const numbered = servers.map((known) => ({ known, number: numberOf(known.server.uuid) }));
        const following = numbered.filter(({ number }) => after === null || number > numberOf(after.server.uuid));
        return following.sort((one, other) => one.number - other.number).map(({ known }) => known);
      },
      matches: ({ server }: KnownServer) => server.status === "SHUTOFF",
    };
    const { servers, nextMarker } = await listServers(deps, { identity: {} } as KnownCall, query);
    return {
      numbers: servers.map(({ server }) => numberOf(server.uuid)),
      next: nextMarker === null ? null : numberOf(nextMarker),
    };
  };
  return { list, looks };
}

test.each(["status", "host"] as const)(
  "in the order of names, the few servers that an index finds by %s are sorted, and the list is not walked through",
  async (attribute) => {
    const { list, looks } = stopped(30_000, (number) => number % 5_000 === 4_999);
    expect(await list(4, null, attribute)).toEqual({ numbers: [4_999, 9_999, 14_999, 19_999], next: 19_999 });
    expect(await list(4, uuidOf(19_999), attribute)).toEqual({ numbers: [24_999, 29_999], next: null });
    expect(looks.walked).toBeLessThan(5_000);
  },
);

test("in the order of names, servers of a status that very many have are found in that order, also where the first names have another one", async () => {
  const { list, looks } = stopped(30_000, (number) => number >= 3_000);
  expect(await list(3, null, "status")).toEqual({ numbers: [3_000, 3_001, 3_002], next: 3_002 });
  const before = { ...looks };
  expect(await list(3, uuidOf(5_000), "status")).toEqual({ numbers: [5_001, 5_002, 5_003], next: 5_003 });
  // The first servers that are read fill the page, so none is looked for in another way.
  expect([looks.found - before.found, looks.walked - before.walked]).toEqual([0, 100]);
});
