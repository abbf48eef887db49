import { expect, test } from "vitest";
import type { RequestQuery, RequestRecord, RequestScan } from "../../../../core/stores/api/api-store.ts";
import {
  type AttributeQuery,
  type AttributeValueAsked,
  type ListPosition,
  newestFirst,
} from "../../../../core/stores/cell/listed-servers.ts";
import { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import type { IndexedFilter } from "./list-filters.ts";
import { listFound } from "./list-found.ts";
import type { ListQuery } from "./list-query.ts";
import { stretchReader } from "./read-stretches.ts";

const uuidOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
const numbersOf = (servers: readonly { readonly server: { readonly uuid: string } }[]) =>
  servers.map(({ server }) => Number(server.uuid.slice(-12)));

interface Known {
  readonly number: number;
  readonly cell: string | null;
  readonly user: string;
  readonly image?: string;
  readonly name?: string;
  readonly project?: string;
  readonly state?: RequestRecord["state"];
  readonly isDeleted?: true;
}

/** An API database and two cells. The server with the greatest number is the newest one. Calls are noted. */
function cloudOf(servers: readonly Known[], silent: readonly string[] = []) {
  const calls: string[] = [];
  const records = servers
    .map(
      ({ number, cell, user, image = "", name = "", project = "p", state = "dispatched" }): RequestRecord => ({
        ...{ serverUuid: uuidOf(number), state, cell, assignment: 0, changes: null, cancellation: null },
        spec: ServerSpec.fromPartial({ uuid: uuidOf(number), name, projectId: project, userId: user, imageRef: image }),
        ...{
          fault: state === "failed" ? "No valid host." : null,
          createdAtMs: number,
          updatedAtMs: number,
          softlyDeleted: false,
        },
      }),
    )
    .sort((a, b) => b.createdAtMs - a.createdAtMs);
  const recordsOf = (uuids: readonly string[]) => {
    const wanted = new Set(uuids);
    return records.filter(({ serverUuid }) => wanted.has(serverUuid));
  };
  const deleted = new Set(servers.filter(({ isDeleted }) => isDeleted).map(({ number }) => uuidOf(number)));
  const serverOf = ({ spec, serverUuid: uuid, createdAtMs }: RequestRecord) =>
    ({ uuid, spec, createdAtMs, status: deleted.has(uuid) ? "DELETED" : "ACTIVE" }) as const;
  const pageOf = ({ projectId, marker, after, ...query }: Partial<RequestQuery & RequestScan>) => {
    const start = marker == null ? 0 : records.findIndex(({ serverUuid }) => serverUuid === marker) + 1;
    return records
      .slice(start)
      .filter(({ serverUuid: uuid, createdAtMs }) => after == null || newestFirst(after, { uuid, createdAtMs }) < 0)
      .filter(({ spec }) => projectId == null || spec.projectId === projectId)
      .filter(
        ({ fault, state }) =>
          (query.failed !== true && query.open !== true) ||
          (query.failed === true && fault !== null) ||
          (query.open === true && state === "accepted"),
      );
  };
  const cellOf = (name: string) => ({
    name,
    servers: async (uuids: readonly string[]) =>
      silent.includes(name) ? { kind: "unreachable" } : { kind: "answer", value: recordsOf(uuids).map(serverOf) },
    operations: (ask: (store: object) => Promise<unknown>) =>
      silent.includes(name)
        ? { kind: "unreachable" }
        : ask({
            serverSketches: async () => ({ kind: "answer", value: null }),
            serversByAttribute: async (query: AttributeQuery) => {
              const { after, looksMax, limit, projectId, others = [], ...asked } = query;
              calls.push(`${name} ${asked.attribute} ${looksMax}`);
              const has = ({ userId, imageRef }: ServerSpec, { attribute, value }: AttributeValueAsked) =>
                attribute === "status" || (attribute === "user" ? userId : imageRef) === value;
              const scanned = records
                .filter(({ serverUuid, cell, spec }) => cell === name && has(spec, asked) && !deleted.has(serverUuid))
                .map(serverOf)
                .filter((server) => after === null || newestFirst(after, server) < 0)
                .slice(0, looksMax);
              const found = scanned
                .filter(({ spec }) => projectId === null || spec.projectId === projectId)
                .filter(({ spec }) => others.every((other) => has(spec, other)))
                .slice(0, limit);
              const last = found.length === limit ? found.at(-1) : scanned[looksMax - 1];
              const resumeAt: ListPosition | null = last ?? null;
              return { kind: "answer", value: { servers: found, resumeAt } };
            },
          }),
  });
  const deps = {
    store: {
      requests: async (uuids: readonly string[]) => recordsOf(uuids),
      listRequests: async (query: RequestQuery) => pageOf(query).slice(0, query.limit),
      isRareName: async () => false,
      scanRequests: async (scan: RequestScan) => {
        calls.push(`scan ${scan.rows}`);
        const page = pageOf(scan).slice(0, scan.rows);
        const named = page.filter(({ spec }) => spec.name.includes(scan.named?.contains ?? ""));
        return { records: named, resumeAt: page.length < scan.rows ? null : (page.at(-1)?.serverUuid ?? null) };
      },
    },
    cells: new Map(["east", "west"].map((name) => [name, cellOf(name)])),
  } as unknown as Parameters<typeof listFound>[0];
  const user = { isPart: false, attribute: "user", value: "ann" } as const;
  const marker = (number: number) => recordsOf([uuidOf(number)])[0] ?? null;
  const reader = (
    projectId: string | null,
    indexed: readonly IndexedFilter[] = [user],
    after: RequestRecord | null = null,
    nameContains: string | null = null,
  ) =>
    stretchReader(
      deps,
      {
        ...{
          projectId,
          nameContains,
          created: null,
          indexed,
        },
        matches: ({ server }) => server.spec.userId === "ann",
      },
      "newest-first",
      after,
    );
  return { reader, marker, calls, deps };
}

const readAll = async (read: ReturnType<typeof stretchReader>, rows: number) => {
  const stretches: number[][] = [];
  for (;;) {
    const { known, isLast } = await read(rows);
    stretches.push(numbersOf(known.filter(({ server }) => server.spec.userId === "ann")));
    if (isLast) return stretches;
  }
};

test("servers of all cells, and those that are in none, come in one order and once each", async () => {
  const { reader, calls } = cloudOf([
    ...Array.from({ length: 8 }, (_, at) => ({ number: at + 1, cell: at % 3 === 0 ? "west" : "east", user: "ann" })),
    { number: 9, cell: null, user: "ann", state: "failed" },
    { number: 20, cell: null, user: "ann", state: "accepted" },
    { number: 30, cell: "east", user: "bob" },
  ]);
  const stretches = await readAll(reader(null), 3);
  expect(stretches.flat()).toEqual([20, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
  expect(calls.filter((call) => call.startsWith("scan"))).toEqual([]);
});

test("the list is read in its order when a cell does not answer, so that servers of that cell are found by their requests", async () => {
  const { reader, calls } = cloudOf(
    Array.from({ length: 6 }, (_, at) => ({ number: at + 1, cell: at % 2 === 0 ? "west" : "east", user: "ann" })),
    ["west"],
  );
  expect((await readAll(reader(null), 10)).flat()).toEqual([6, 5, 4, 3, 2, 1]);
  expect(calls).toContain("scan 10");
});

test("a list goes on after more open requests than one stretch has whose servers are deleted already", async () => {
  const open = Array.from({ length: 30 }, (_, at) => ({
    ...({ number: at + 100, cell: "east", user: "ann", state: "accepted", isDeleted: true } as const),
  }));
  const { reader } = cloudOf([...open, ...[1, 2].map((number) => ({ number, cell: "east", user: "ann" }))]);
  expect((await readAll(reader(null), 10)).flat()).toEqual([2, 1]);
});

test("a silent cell has no server of a status, and does not make the whole list be read", async () => {
  const { reader, calls } = cloudOf(
    Array.from({ length: 6 }, (_, at) => ({ number: at + 1, cell: at % 2 === 0 ? "west" : "east", user: "ann" })),
    ["west"],
  );
  const status = { isPart: false, attribute: "status", value: "SHUTOFF" } as const;
  for (const projectId of [null, "p"])
    expect((await readAll(reader(projectId, [status]), 10)).flat()).toEqual([6, 4, 2]);
  expect(calls).toEqual(["east status 100", "east status 100"]);
});

test.each([
  ["SHUTOFF", [], [2, 1]],
  ["ERROR", [], [...Array.from({ length: 30 }, (_, at) => 129 - at), 2, 1]],
  ["SHUTOFF", ["ERROR"], [...Array.from({ length: 30 }, (_, at) => 129 - at), 2, 1]],
])(
  "requests that no cell has do not hold up a list by the status %s %j when none of them can have it",
  async (value, otherValues, expected) => {
    const failed = Array.from({ length: 30 }, (_, at) => ({ number: at + 100, state: "failed" }) as const);
    const open = Array.from({ length: 30 }, (_, at) => ({ number: at + 200, state: "accepted" }) as const);
    const { reader } = cloudOf([
      ...[...failed, ...open].map((request) => ({ ...request, cell: null, user: "ann" })),
      ...[1, 2].map((number) => ({ number, cell: "east", user: "ann" })),
    ]);
    const stretches = await readAll(reader(null, [{ isPart: false, attribute: "status", value, otherValues }]), 10);
    expect(stretches.flat()).toEqual(expected);
    expect(stretches.length).toBeLessThanOrEqual(1 + Math.floor(expected.length / 10));
  },
);

test("a project's requests are read first, and the index before its servers when few of them have the value", async () => {
  const many = Array.from({ length: 60 }, (_, at) => ({ number: at + 1, cell: "east", user: at < 2 ? "ann" : "bob" }));
  const { reader, calls } = cloudOf([...many, { number: 99, cell: "west", user: "ann", project: "other" }]);
  expect((await readAll(reader("p"), 20)).flat()).toEqual([2, 1]);
  // The index ends first, since it has few servers.
  expect(calls).toEqual(["scan 21", "east user 200", "west user 200"]);
  const few = cloudOf(many.slice(0, 10));
  expect((await readAll(few.reader("p"), 20)).flat()).toEqual([2, 1]);
  expect(few.calls).toEqual(["scan 21"]);
});

test("the index of a filter is read on when its servers are rarer than those of the project, and looks at more of them each time", async () => {
  const project = Array.from({ length: 300 }, (_, at) => ({ number: at * 10, cell: "east", user: "bob" }));
  const user = Array.from({ length: 260 }, (_, at) => ({
    ...{ number: at * 12 + 1, cell: "east", user: "ann", project: at === 0 ? "p" : "other" },
  }));
  const { reader, calls } = cloudOf([...project, ...user]);
  expect((await readAll(reader("p"), 10)).flat()).toEqual([1]);
  expect(calls).toEqual([...["scan 11", "east user 100", "west user 100"], ...["east user 5000", "west user 5000"]]);
});

test("a project is read on when it has fewer servers than the index", async () => {
  const project = Array.from({ length: 60 }, (_, at) => ({ number: at * 100, cell: "east", user: at ? "bob" : "ann" }));
  const user = Array.from({ length: 3_000 }, (_, at) => ({
    ...{ number: at * 2 + 1, cell: "east", user: "ann", project: "other" },
  }));
  const { reader, calls } = cloudOf([...project, ...user]);
  expect((await readAll(reader("p"), 20)).flat()).toEqual([0]);
  expect(calls).toEqual(["scan 21", "east user 200", "west user 200", "scan 20", "scan 20"]);
});

test("a project whose requests mostly have the value is read on without a look at the index", async () => {
  const project = Array.from({ length: 60 }, (_, at) => ({ number: at, cell: "east", user: at % 5 ? "bob" : "ann" }));
  const { reader, calls } = cloudOf([...project, { number: 99, cell: "west", user: "ann", project: "other" }]);
  expect((await readAll(reader("p"), 20)).flat()).toEqual(Array.from({ length: 12 }, (_, at) => 55 - at * 5));
  expect(calls).toEqual(["scan 21", "scan 20", "scan 20"]);
});

test("nothing but the servers of a project is read when they fit on the page and none passes", async () => {
  const project = Array.from({ length: 20 }, (_, at) => ({ number: at + 1, cell: "east", user: "bob" }));
  const { reader, calls } = cloudOf([...project, { number: 99, cell: "west", user: "ann", project: "other" }]);
  expect(await readAll(reader("p"), 20)).toEqual([[]]);
  expect(calls).toEqual(["scan 21"]);
});

test("requests that no cell has are asked for once when fewer than one stretch are left", async () => {
  const servers = Array.from({ length: 30 }, (_, at) => ({ number: at * 2 + 1, cell: "east", user: "ann" }));
  const failed = [40, 20, 10].map((number) => ({ number, cell: null, user: "ann", state: "failed" }) as const);
  const { reader, deps } = cloudOf([...servers, ...failed]);
  const asked: RequestQuery[] = [];
  const { listRequests } = deps.store;
  Object.assign(deps.store, {
    listRequests: (query: RequestQuery) => {
      asked.push(query);
      return listRequests(query);
    },
  });
  const found = (await readAll(reader(null), 5)).flat();
  expect(found).toEqual([...servers, ...failed].map(({ number }) => number).sort((one, other) => other - one));
  expect(asked.map(({ open, failed: isFailed }) => [open, isFailed])).toEqual([[true, true]]);
});

test("the index of a project's list begins after the marker", async () => {
  const many = Array.from({ length: 90 }, (_, at) => ({ number: at, cell: "east", user: at % 30 ? "bob" : "ann" }));
  const { reader, calls, marker } = cloudOf(many);
  expect((await readAll(reader("p", undefined, marker(61)), 20)).flat()).toEqual([60, 30, 0]);
  expect((await readAll(reader("p", undefined, marker(60)), 20)).flat()).toEqual([30, 0]);
  expect(calls.filter((call) => call.startsWith("scan"))).toEqual(["scan 21", "scan 21"]);
});

test("a project's list by a name that none of very many servers after the marker has goes on where it was, and not at its beginning", async () => {
  const many = Array.from({ length: 12_010 }, (_, at) => ({ number: at + 1, cell: "east", user: "ann" }));
  const named = many.map((server) => ([1, 12_005].includes(server.number) ? { ...server, name: "xy" } : server));
  const { reader, calls, marker } = cloudOf(named);
  expect((await readAll(reader("p", undefined, marker(12_002), "xy"), 20)).flat()).toEqual([1]);
  expect(calls).toEqual(["scan 10000", "scan 10000"]);
});

test("of several filters, the one whose servers are rarest is read on in each cell", async () => {
  const common = Array.from({ length: 400 }, (_, at) => ({
    number: at * 10,
    cell: "east",
    user: "ann",
    image: "usual",
  }));
  const rare = [401, 1_201, 3_001].map((number) => ({ number, cell: "east", user: "bob", image: "rare" }));
  const both = { number: 75, cell: "east", user: "ann", image: "rare" };
  const { reader, calls } = cloudOf([...common, ...rare, both]);
  const filters = [
    { isPart: false, attribute: "user", value: "ann" },
    { isPart: false, attribute: "image", value: "rare" },
  ] as const;
  expect((await readAll(reader(null, filters), 2)).flat()).toEqual([75]);
  expect(calls.filter((call) => call.startsWith("east user"))).toHaveLength(1);
  expect(calls.filter((call) => call.startsWith("east image"))).toHaveLength(2);
});

test("an order that no index has sorts the servers that an index finds in a project of very many", async () => {
  const many = Array.from({ length: 12_000 }, (_, at) => ({
    number: at + 1,
    cell: "east",
    user: at < 3 ? "ann" : "bob",
  }));
  const { deps, calls } = cloudOf(many);
  const query = {
    ...{
      projectId: "p",
      limit: 10,
      nameContains: null,
      created: null,
      sources: [],
      order: [{ key: "host", descending: false }],
    },
    ...{
      indexed: [{ isPart: false, attribute: "user", value: "ann" }],
      sort: (servers: readonly KnownServer[]) => servers,
    },
    matches: ({ server }: { readonly server: { readonly spec: ServerSpec } }) => server.spec.userId === "ann",
  } as unknown as ListQuery;
  const page = await listFound(deps, query, null);
  expect(numbersOf(page?.servers ?? [])).toEqual([3, 2, 1]);
  expect(calls).toEqual(["scan 2001", "east user 1000", "west user 1000"]);
  await expect(listFound(deps, { ...query, indexed: [] }, null)).rejects.toThrow("would have to be sorted");
});
