import { expect, test } from "vitest";
import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { ListPosition } from "../../../../core/stores/cell/listed-servers.ts";
import { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import { Fault } from "../../http/fault.ts";
import type { ListQuery } from "./list-query.ts";
import { type ListServersDeps, listServers } from "./list-servers.ts";
import { stretchReader } from "./read-stretches.ts";
import { withSoftlyDeleted } from "./soft-deleted-stretches.ts";

const SERVERS = 12_000;
const uuidOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
/** Some single servers, many in a row in the middle, and the first and last ones of the list. */
const isKept = (number: number) => number % 1_000 < 2 || (number >= 5_000 && number < 5_700) || number === SERVERS - 1;
const ALL = Array.from({ length: SERVERS }, (_, number): RequestRecord => {
  const place = { uuid: uuidOf(number), createdAtMs: 1_000_000 - number };
  const spec = ServerSpec.fromPartial({ ...place, projectId: "p", name: `vm-${number}` });
  const rest = { changes: null, fault: null, cancellation: null, updatedAtMs: 0, assignment: 0 } as const;
  const { uuid: serverUuid, createdAtMs } = place;
  return { ...rest, serverUuid, createdAtMs, spec, state: "dispatched", cell: "east", softlyDeleted: isKept(number) };
});
const BY_UUID = new Map(ALL.map((record) => [record.serverUuid, record]));
const ORDERS = { "newest-first": ALL, "oldest-first": ALL.toReversed() } as const;

function depsWith(kept: readonly ListPosition[]): ListServersDeps {
  const east = {
    servers: async (uuids: readonly string[]) => ({
      kind: "answer",
      value: uuids.map((uuid) => {
        const { spec, createdAtMs, softlyDeleted } = BY_UUID.get(uuid)!;
        return { uuid, spec, createdAtMs, status: softlyDeleted ? "SOFT_DELETED" : "ACTIVE", taskState: null };
      }),
    }),
  };
  return {
    store: {
      requests: async (uuids: readonly string[]) => uuids.flatMap((uuid) => BY_UUID.get(uuid) ?? []),
      scanRequests: async (scan: { order: keyof typeof ORDERS; marker: string | null; rows: number }) => {
        const { order, marker, rows } = scan;
        const inOrder = ORDERS[order];
        const start = marker === null ? 0 : inOrder.findIndex(({ serverUuid }) => serverUuid === marker) + 1;
        const left = inOrder.slice(start).filter(({ softlyDeleted }) => !softlyDeleted);
        const records = left.slice(0, rows);
        return { records, resumeAt: records.length < left.length ? (records.at(-1)?.serverUuid ?? null) : null };
      },
    },
    clock: { monotonic: () => 0 },
    finder: { find: async (uuid: string) => BY_UUID.get(uuid) ?? null },
    cells: new Map([["east", east]]),
    softDeleter: { softlyDeleted: async () => kept },
  } as unknown as ListServersDeps;
}

const KEPT = ALL.filter(({ softlyDeleted }) => softlyDeleted).map(({ serverUuid: uuid, createdAtMs }) => ({
  uuid,
  createdAtMs,
}));

const queryOf = (over: Partial<ListQuery>): ListQuery => ({
  ...{ projectId: "p", limit: 1_000, marker: null, nameContains: null, changedSinceMs: null, changedBeforeMs: null },
  ...{
    deleted: null,
    softDeleted: true,
    sources: [],
    indexed: [],
    created: null,
    order: null,
    sort: (servers: readonly KnownServer[]) => servers,
    matches: null,
  },
  ...over,
});

async function pages(over: Partial<ListQuery>): Promise<readonly string[]> {
  const deps = depsWith(KEPT);
  const listed: string[] = [];
  for (let marker: string | null = null; ; ) {
    const page = await listServers(deps, { identity: {} } as KnownCall, queryOf({ ...over, marker }));
    listed.push(...page.servers.map(({ server }) => server.uuid));
    if (page.nextMarker === null) return listed;
    marker = page.nextMarker;
  }
}

test.each([
  ["newest-first", null, 1_000],
  ["newest-first", null, 37],
  ["oldest-first", [{ key: "created_at", descending: false }], 450],
] as const)(
  "a list of very many servers, %s, has those that are deleted softly at their places",
  async (way, order, limit) => {
    const listed = await pages({ order, limit });
    expect(listed).toEqual(ORDERS[way].map(({ serverUuid }) => serverUuid));
  },
);

test("stretches keep the order where more servers in a row are deleted softly than one stretch has", async () => {
  const deps = depsWith(KEPT);
  const asked = { projectId: "p", nameContains: null, indexed: [], created: null, matches: null };
  const ordinary = stretchReader(deps, asked, "newest-first", null);
  const read = await withSoftlyDeleted(deps, ordinary, { projectId: "p", order: "newest-first", marker: null });
  const listed: string[] = [];
  for (let isLast = false; !isLast; ) {
    const stretch = await read(100);
    ({ isLast } = stretch);
    expect(stretch.known.length).toBeLessThanOrEqual(200);
    listed.push(...stretch.known.map(({ server }) => server.uuid));
  }
  expect(listed).toEqual(ALL.map(({ serverUuid }) => serverUuid));
});

test("a filter applies to servers of both kinds", async () => {
  const listed = await pages({ matches: ({ server }) => server.spec.name.endsWith("01") });
  expect(listed).toEqual(ALL.filter(({ spec }) => spec.name.endsWith("01")).map(({ serverUuid }) => serverUuid));
});

test("a server that was restored after the others were looked up is not listed as deleted softly", async () => {
  const restored = ALL[4]!;
  const deps = depsWith([{ uuid: restored.serverUuid, createdAtMs: restored.createdAtMs }]);
  const { servers } = await listServers(deps, { identity: {} } as KnownCall, queryOf({ limit: 5 }));
  const uuids = servers.map(({ server }) => server.uuid);
  expect(uuids.filter((uuid) => uuid === restored.serverUuid)).toHaveLength(1);
});

test("a list that has too many servers that are deleted softly is refused, and says what to do", async () => {
  const deps = depsWith(Array.from({ length: 10_001 }, (_, number) => ({ uuid: uuidOf(number), createdAtMs: number })));
  const refused = listServers(deps, { identity: {} } as KnownCall, queryOf({}));
  await expect(refused).rejects.toThrow(Fault);
  await expect(refused).rejects.toThrow("project_id");
});
