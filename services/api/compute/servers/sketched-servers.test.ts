import { expect, test } from "vitest";
import type { ServerRow } from "../../../../adapters/memory/cell/cell-state.ts";
import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { SketchQuery } from "../../../../core/stores/cell/listed-servers.ts";
import { SERVER_STATUSES } from "../../../../core/tasks/server.ts";
import { changedSpec, type UserChanges } from "../../../../core/tasks/user-changes.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { serverId, serverSpec } from "../../../../test/contract/cell-fixtures.ts";
import { ListedCloud, type ListedServer } from "../../../../test/rigs/listed-cloud.ts";
import fc from "../../../../test/rigs/property.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import type { ListQuery } from "./list-query.ts";
import { SERVER_ATTRIBUTES } from "./server-attributes.ts";
import { findSketched } from "./sketched-servers.ts";

const flavor = (id: string): ServerSpec["flavor"] => {
  const usual = serverSpec(1).flavor;
  return usual && { ...usual, id };
};

interface Made {
  readonly spec?: Partial<ServerSpec>;
  readonly request?: Partial<RequestRecord>;
  readonly isOpen?: boolean;
  readonly rows?: Readonly<Record<string, Partial<ServerRow>>>;
}

/** A server of the flavor "rare", by default at home in the cell east and nowhere else. */
function made(
  number: number,
  { spec = {}, request = {}, isOpen = false, rows = { east: {} } }: Made = {},
): ListedServer {
  const own = serverSpec(number, { flavor: flavor("rare"), createdAtMs: number, ...spec });
  const { uuid, createdAtMs } = own;
  const changes = request.changes ?? null;
  return {
    isOpen,
    request: {
      ...{ serverUuid: uuid, state: "dispatched", cell: "east", assignment: 0, fault: null, cancellation: null },
      ...{ createdAtMs, updatedAtMs: createdAtMs, softlyDeleted: false },
      ...{ ...request, changes, spec: changedSpec(own, changes) },
    },
    rows: Object.fromEntries(
      Object.entries(rows).map(([cell, row]) => [
        cell,
        {
          ...{ uuid, spec: own, status: "ACTIVE", taskState: null, host: "host-1", attemptId: null, fault: null },
          ...{ createdAtMs, updatedAtMs: createdAtMs, launchedAtMs: null, deletedAtMs: null, revision: 0 },
          ...row,
        },
      ]),
    ),
  };
}

const few = <Value>(...values: readonly Value[]) => fc.constantFrom(...values);
const maybe = <Value>(...values: readonly Value[]) => fc.option(few(...values), { nil: undefined });

const SPECS = fc
  .record({
    ...{ name: few("a", "b", "c"), projectId: few("p", "q"), userId: few("ann", "bob"), createdAtMs: few(1, 2, 3) },
    ...{ imageRef: few("", "image-1"), keyName: few("", "web"), launchIndex: few(0, 1), configDrive: fc.boolean() },
    ...{ accessIpV4: few("", "10.0.0.1"), accessIpV6: few("", "fd00::1"), manualDisk: fc.boolean() },
    ...{
      availabilityZone: few("", "edge"),
      description: maybe("x", "y"),
      flavor: few(flavor("rare"), flavor("usual")),
    },
    imageProperties: few<Record<string, string>>({}, { kernel_id: "k" }, { ramdisk_id: "r" }),
  })
  .map((spec): Partial<ServerSpec> => spec);

const CHANGES = fc.record(
  {
    ...{
      name: few("a", "z"),
      description: few(null, "z"),
      accessIpV4: few("", "10.0.0.9"),
      accessIpV6: few("fd00::9"),
    },
    ...{
      hostname: few("host-a", "host-z"),
      manualDisk: fc.boolean(),
      availabilityZone: few("", "nova"),
      atMs: few(2, 9),
    },
    lock: few(null, { by: "owner", reason: null } as const, { by: "admin", reason: null } as const),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<UserChanges>;

const ROWS = fc
  .record({
    status: few<ServerRow["status"]>(...SERVER_STATUSES, "ACTIVE", "ACTIVE", "CLOSED"),
    ...{
      taskState: few(null, null, "rebooting", "resize_prep", "swapping_volume"),
      host: few(null, "host-1", "edge-1"),
    },
    ...{ updatedAtMs: few(1, 5, 7), launchedAtMs: few(null, 1, 2), revision: fc.constant(0) },
  })
  .map((row) => {
    const isGone = row.status === "DELETED" || row.status === "CLOSED";
    return { ...row, deletedAtMs: isGone ? 9 : null, host: isGone ? null : row.host };
  });

const SERVERS = fc
  .array(
    fc.record({
      spec: SPECS,
      request: fc
        .record({
          state: few<RequestRecord["state"]>("accepted", "dispatched", "dispatched", "dispatched", "cancelled"),
          ...{ cell: few(null, "east", "west"), changes: fc.option(CHANGES), softlyDeleted: few(false, false, true) },
          fault: few(null, null, null, "No valid host."),
        })
        .map((request) => (request.fault === null ? request : { ...request, state: "failed" as const })),
      isOpen: fc.boolean(),
      rows: fc.record({ east: ROWS, west: ROWS }, { requiredKeys: [] }),
    }),
    { maxLength: 12 },
  )
  .map((servers) =>
    servers.map(({ isOpen, ...server }, at) => {
      const { state, cell } = server.request;
      const rows: Readonly<Record<string, Partial<ServerRow>>> = server.rows;
      const inCell = cell === null ? undefined : rows[cell];
      // A request is open until its cell has the server.
      const hasArrived = state === "dispatched" && inCell !== undefined && inCell.status !== "CLOSED";
      return made(at + 1, {
        ...server,
        isOpen: state === "accepted" || (state === "dispatched" && (isOpen || !hasArrived)),
      });
    }),
  );

const KEYS = Object.keys(SERVER_ATTRIBUTES).filter((key) => key !== "reservation_id");
const ORDERS = fc.array(fc.record({ key: few(...KEYS), direction: few("asc", "desc") }), {
  minLength: 1,
  maxLength: 2,
});
const FILTERS = fc.record(
  {
    ...{ flavor: few("rare"), user_id: few("ann"), image: few("image-1"), key_name: few("web", "^web$") },
    ...{
      status: few("SHUTOFF", "ERROR", "ACTIVE"),
      availability_zone: few("edge"),
      project_id: few("p"),
      name: few("a"),
    },
  },
  { requiredKeys: [] },
);

test("servers that are sorted by sketches are on the same pages as servers that are read whole first", async () => {
  let sketched = 0;
  await fc.assert(
    fc.asyncProperty(SERVERS, ORDERS, FILTERS, few("1", "2", "5"), async (servers, order, filters, limit) => {
      const parameters = {
        ...{ ...filters, limit },
        ...{ sort_key: order.map(({ key }) => key), sort_dir: order.map(({ direction }) => direction) },
      };
      const cloud = new ListedCloud(servers);
      const pages = await cloud.pages(parameters);
      sketched += cloud.sketched;
      cloud.isPlain = true;
      expect(pages).toEqual(await cloud.pages(parameters));
      expect(pages.flat().length).toBe(new Set(pages.flat().map(({ server }) => server.uuid)).size);
    }),
    { numRuns: 400 },
  );
  expect(sketched).toBeGreaterThan(100);
});

const AT_HOME = fc
  .array(fc.record({ spec: SPECS, changes: fc.option(CHANGES), row: ROWS }), { minLength: 8, maxLength: 12 })
  .map((servers) =>
    servers.map(({ spec, changes, row }, at) =>
      made(at + 1, { spec: { ...spec, flavor: flavor("rare") }, request: { changes }, rows: { east: row } }),
    ),
  );

test.each(KEYS)("sketches have everything on which the order by %s depends", async (key) => {
  // All servers have the same progress, and no index has an order by two keys.
  const parameters = (sort_dir: string) => ({ flavor: "rare", sort_key: ["progress", key], sort_dir });
  await fc.assert(
    fc.asyncProperty(AT_HOME, few("asc", "desc"), async (servers, direction) => {
      const cloud = new ListedCloud(servers);
      const [page] = await cloud.pages(parameters(direction));
      expect(cloud.sketched).toBeGreaterThan(0);
      cloud.isPlain = true;
      expect([page]).toEqual(await cloud.pages(parameters(direction)));
    }),
    { numRuns: 20 },
  );
});

const RARE = { flavor: "rare", sort_key: "task_state", sort_dir: "asc" };
const task = (taskState: string, row: Partial<ServerRow> = {}) => ({ rows: { east: { taskState, ...row } } });
const numbersOf = (servers: readonly { readonly server: { readonly uuid: string } }[]) =>
  servers.map(({ server }) => [1, 2, 3, 4].find((number) => serverId(number) === server.uuid));

/** Three servers of which the second one becomes another one right before a question is answered. */
function changing(question: Parameters<ListedCloud["before"]>[0], second: ListedServer, others: Made = {}) {
  const first = made(2, { ...task("b"), ...others });
  const cloud = new ListedCloud([made(1, task("a")), first, made(3, task("c"))]);
  cloud.before = (asked) => {
    if (asked === question) cloud.servers = cloud.servers.map((one) => (one === first ? second : one));
  };
  return cloud;
}

test("a server that changes after it was sorted is shown as it is, at its former place", async () => {
  const cloud = changing("requests", made(2, task("z")));
  const { servers } = await cloud.page(RARE);
  expect(numbersOf(servers)).toEqual([1, 2, 3]);
  expect(servers.map(({ server }) => server.taskState)).toEqual(["a", "z", "c"]);
});

test("a server that ceases to pass a filter, or is deleted, after it was sorted is not on the page, which is full nevertheless", async () => {
  const resized = made(2, { rows: { east: { spec: serverSpec(2, { flavor: flavor("usual") }) } } });
  const gone = made(2, { rows: { east: { status: "DELETED", host: null, deletedAtMs: 9 } } });
  const cancelled = made(2, { ...task("b"), request: { state: "cancelled" } });
  const softlyDeleted = made(2, { ...task("b"), request: { softlyDeleted: true } });
  for (const second of [resized, gone, cancelled, softlyDeleted]) {
    const page = await changing("requests", second).page({ ...RARE, limit: "2" });
    expect([numbersOf(page.servers), page.nextMarker]).toEqual([[1, 3], null]);
  }
  // Its request is read before the deletion, and its cell is asked afterwards.
  expect(numbersOf((await changing("servers", gone).page(RARE)).servers)).toEqual([1, 3]);
});

test("the servers of a sorted page are read while its requests are read, and only once", async () => {
  const cloud = new ListedCloud([made(1, task("b")), made(2, task("a"))]);
  let isReading = false;
  const asked: boolean[] = [];
  cloud.before = (question) => {
    if (question === "requests") {
      isReading = true;
      queueMicrotask(() => (isReading = false));
    }
    if (question === "servers") asked.push(isReading);
  };
  expect(numbersOf((await cloud.page(RARE)).servers)).toEqual([2, 1]);
  expect(asked).toEqual([true]);
});

test("a server that comes into its cell, or fails, while its sketch is looked for is listed once", async () => {
  const waiting: Made = { request: { state: "accepted", cell: null }, isOpen: true, rows: {} };
  const failed: Made = { request: { state: "failed", fault: "No valid host." }, rows: {} };
  for (const question of ["open", "sketches", "requests"] as const)
    for (const becomes of [task("b"), failed]) {
      const { servers } = await changing(question, made(2, becomes), waiting).page(RARE);
      expect([question, numbersOf(servers).toSorted()]).toEqual([question, [1, 2, 3]]);
    }
});

test("a server that was on its way to one cell, and comes into another one after it was sorted, is listed", async () => {
  const waiting: Made = { isOpen: true, rows: {} };
  const arrived = made(2, { request: { cell: "west" }, rows: { west: {} } });
  const { servers } = await changing("requests", arrived, waiting).page(RARE);
  expect(numbersOf(servers).toSorted()).toEqual([1, 2, 3]);
});

test("a part of a value, which no index of a cell finds, leaves no server out of a sorted list", async () => {
  const named = ["web", "web-2", "db"].map((keyName, at) => made(at + 1, { spec: { keyName } }));
  const sort = { sort_key: "task_state", key_name: "web" };
  const cloud = new ListedCloud(named);
  expect(numbersOf((await cloud.page(sort)).servers).toSorted()).toEqual([1, 2]);
  expect(cloud.sketched).toBe(0);
  expect(numbersOf((await cloud.page({ ...sort, flavor: "rare" })).servers).toSorted()).toEqual([1, 2]);
  expect(cloud.sketched).toBeGreaterThan(0);
});

test("servers that are deleted softly are in a sorted list that asks for them", async () => {
  const cloud = new ListedCloud([made(1, task("b")), made(2, { ...task("a"), request: { softlyDeleted: true } })]);
  expect(numbersOf((await cloud.page(RARE)).servers)).toEqual([1]);
  expect(numbersOf((await cloud.page({ ...RARE, soft_deleted: "1" })).servers)).toEqual([2, 1]);
});

test("a server of which another cell has a former row is listed once, where the row of its home puts it", async () => {
  const moved = made(2, { request: { cell: "west" }, rows: { east: { taskState: "a" }, west: { taskState: "z" } } });
  const cloud = new ListedCloud([made(1, task("b")), moved, made(3, task("c"))]);
  expect(numbersOf((await cloud.page(RARE)).servers)).toEqual([1, 3, 2]);
});

test("servers whose cell falls silent after they were sorted are listed all the same, by what their requests say", async () => {
  const cloud = new ListedCloud([made(1, task("b")), made(2, task("a"))]);
  cloud.before = (question) => {
    if (question === "requests") cloud.silent = ["east"];
  };
  const { servers } = await cloud.page(RARE);
  expect(servers.map(({ server, unreachable }) => [server.uuid, unreachable])).toEqual([
    [serverId(2), true],
    [serverId(1), true],
  ]);
});

test("when a cell is silent, the servers of the others are listed and its own by their requests", async () => {
  const cloud = new ListedCloud([made(1), made(2, { request: { cell: "west" }, rows: { west: {} } })]);
  cloud.silent = ["west"];
  const { servers } = await cloud.page({ flavor: "rare", sort_key: "vm_state", sort_dir: "asc" });
  expect(servers.map(({ server, unreachable }) => [server.uuid, unreachable])).toEqual([
    [serverId(2), true],
    [serverId(1), false],
  ]);
});

/** Looks for the sketches of a list in cells whose operations these are. */
function find(
  cells: readonly ((question: unknown) => Promise<unknown>)[],
  list: { readonly most: number; readonly key?: string; readonly projectId?: string; readonly requests?: unknown },
) {
  const { most, key = "vm_state", projectId = null, requests = [] } = list;
  const deps = {
    store: { listRequests: async () => requests, changesOf: async () => new Map() },
    cells: new Map(cells.map((operations, at) => [`cell-${at}`, { name: `cell-${at}`, operations }])),
  } as unknown as Parameters<typeof findSketched>[0];
  const query = {
    ...{ indexed: [{ attribute: "flavor", value: "rare", isPart: false }], projectId, softDeleted: false },
    ...{ order: [{ key, descending: false }], sort: (servers: readonly KnownServer[]) => servers },
  } as unknown as ListQuery;
  return findSketched(deps, query, async () => null, most);
}

test.each([
  ["display_name", 4],
  ["vm_state", 12],
])(
  "of an order by %s, %d of 12 cells tell sketches at a time, and the others are not asked when too many servers are known",
  async (key, atATime) => {
    const row = { ...made(1).rows.east! };
    const sketches = Array.from({ length: 9 }, (_, at) => ({ ...row, uuid: serverId(at) }));
    const asked = { cells: 0, now: 0, most: 0 };
    const operations = async () => {
      asked.cells += 1;
      asked.now += 1;
      asked.most = Math.max(asked.most, asked.now);
      await Promise.resolve();
      asked.now -= 1;
      return { kind: "answer", value: sketches };
    };
    expect(await find(Array(12).fill(operations), { most: 10, key })).toBeNull();
    expect(asked.most).toBe(atATime);
    expect(asked.cells).toBeLessThanOrEqual(atATime + 2);
  },
);

test("a cell looks at fewer servers for the list of a project, which may have few of them, than for that of all projects", async () => {
  const looks: number[] = [];
  const serverSketches = async ({ looksMax }: SketchQuery) => void looks.push(looksMax);
  const operations = async (question: unknown) => {
    await (question as (store: object) => Promise<unknown>)({ serverSketches });
    return { kind: "answer", value: [] };
  };
  for (const list of [{ most: 10_000 }, { most: 10_000, projectId: "p" }, { most: 10, projectId: "p" }])
    expect(await find([operations], list)).toEqual([]);
  expect(looks).toEqual([10_000, 2_500, 10]);
});

test("no cell is asked when more requests are in no cell than can be sorted", async () => {
  let asked = 0;
  const operations = async () => {
    asked += 1;
    return { kind: "answer", value: [] };
  };
  const requests = Array.from({ length: 11 }, (_, at) => made(at + 1, { request: { cell: null } }).request);
  expect(await find([operations], { most: 10, requests })).toBeNull();
  expect(asked).toBe(0);
});
