import { expect, test } from "vitest";
import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
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
      listRequests: async ({ marker, limit }: { readonly marker: string | null; readonly limit: number }) => {
        reads.push(limit);
        const start = marker === null ? 0 : requests.findIndex(({ serverUuid }) => serverUuid === marker) + 1;
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
        compare: () => 0,
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
      compare: () => 0,
      matches: null,
    },
  };
  const { servers } = await listServers(deps, { identity: {} } as KnownCall, query);
  expect([servers, reads]).toEqual([[], ways]);
});
