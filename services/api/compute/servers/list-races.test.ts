import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { RequestQuery } from "../../../../core/stores/api/api-store.ts";
import type { AttributeQuery } from "../../../../core/stores/cell/listed-servers.ts";
import { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { findByState } from "./list-by-state.ts";
import { findByTokens } from "./list-by-tokens.ts";
import { stretchReader } from "./read-stretches.ts";

const UUID = "00000000-0000-4000-8000-000000000001";
const PLACE = { uuid: UUID, createdAtMs: 1 };

/** A server that waits for a host when a cell is asked first, and is in the cell right afterwards. The API database takes longer to answer. */
function arriving(status: "BUILD" | "ACTIVE" = "BUILD") {
  let isInCell = false;
  const spec = ServerSpec.fromPartial({ uuid: UUID, projectId: "p", userId: "ann", keyName: "web-key" });
  const record = { ...{ serverUuid: UUID, createdAtMs: 1, spec, fault: null, softlyDeleted: false, changes: null } };
  const now = () => ({
    ...record,
    ...(isInCell ? { state: "dispatched", cell: "east" } : { state: "accepted", cell: null }),
  });
  const server = { ...PLACE, spec, status };
  const answer = (value: unknown) => ({ kind: "answer", value });
  const asked = <T>(value: T): T | readonly [] => {
    const before = isInCell;
    isInCell = true;
    return before ? value : [];
  };
  const cell = {
    serversByTokens: async () => answer(asked([PLACE])),
    serversByStatus: async () => answer(asked(status === "BUILD" ? [PLACE] : [])),
    attributeValues: async () => answer(asked([server.spec.keyName])),
    serversByAttribute: async ({ attribute, value }: AttributeQuery) =>
      answer({ servers: asked(attribute === "key" && value !== spec.keyName ? [] : [server]), resumeAt: null }),
  };
  const store = {
    requests: async () => [now()],
    listRequests: async ({ open }: RequestQuery) => {
      await setImmediate();
      return open === true && !isInCell ? [now()] : [];
    },
  };
  const east = {
    name: "east",
    servers: async () => answer([server]),
    operations: (ask: (inCell: typeof cell) => unknown) => ask(cell),
  };
  return { store, cells: new Map([["east", east]]) } as unknown as Parameters<typeof stretchReader>[0];
}

test("a server that comes into its cell while servers are looked for by tokens is found", async () => {
  const source = { kind: "tokens", tokens: ["ip6"], isChangeable: false, named: [] } as const;
  expect(await findByTokens(arriving(), source, { projectId: null, limit: 9 })).toEqual([PLACE]);
});

test("a server that comes into its cell while servers are looked for by their state is found", async () => {
  const asked = { projectId: null, shown: new Set(["BUILD"]), limit: 9 };
  expect(await findByState(arriving(), asked)).toEqual([PLACE]);
});

test("a server that comes into its cell while servers are looked for by an attribute is found", async () => {
  const indexed = [{ isPart: false, attribute: "user", value: "ann" }] as const;
  const asked = { projectId: null, nameContains: null, created: null, indexed, matches: null };
  const { known } = await stretchReader(arriving(), asked, "newest-first", null)(9);
  expect(known.map(({ server }) => server.uuid)).toEqual([UUID]);
});

test("a server that gets a host and runs while servers are looked for by a zone is found", async () => {
  const indexed = [
    { isPart: false, attribute: "host", value: "host-1", orNone: true },
    { isPart: false, attribute: "user", value: "ann" },
  ] as const;
  const asked = { projectId: null, nameContains: null, created: null, indexed, matches: null };
  const { known } = await stretchReader(arriving("ACTIVE"), asked, "newest-first", null)(9);
  expect(known.map(({ server }) => server.uuid)).toEqual([UUID]);
});

test("a server that comes into its cell while the cells look for the names of keys is found", async () => {
  const indexed = [{ isPart: true, attribute: "key", value: "web" }] as const;
  const asked = { projectId: null, nameContains: null, created: null, indexed, matches: null };
  const { known } = await stretchReader(arriving(), asked, "newest-first", null)(9);
  expect(known.map(({ server }) => server.uuid)).toEqual([UUID]);
});

test("no cell is asked for servers when none has a value with the text", async () => {
  const deps = arriving();
  const calls: string[] = [];
  for (const cell of deps.cells.values())
    Object.assign(cell, {
      operations: (ask: (store: object) => unknown) =>
        ask(
          new Proxy(
            {},
            {
              get: (_, name) => async () => {
                calls.push(String(name));
                return { kind: "answer", value: [] };
              },
            },
          ),
        ),
    });
  const indexed = [
    { isPart: false, attribute: "user", value: "ann" },
    { isPart: true, attribute: "key", value: "nobody" },
  ] as const;
  const asked = { projectId: null, nameContains: null, created: null, indexed, matches: () => false };
  expect((await stretchReader(deps, asked, "newest-first", null)(9)).isLast).toBe(true);
  expect(calls).toEqual(["attributeValues"]);
});

/** Three servers that wait for a host, the newest first. `leave` changes the last one once the first page of those that wait was read. */
function waiting(leave: (last: Waiting) => void) {
  const servers = [3, 2, 1].map((number): Waiting => {
    const uuid = `00000000-0000-4000-8000-00000000000${number}`;
    const spec = ServerSpec.fromPartial({ uuid, projectId: "p", userId: "ann", keyName: "web-key" });
    const request = { serverUuid: uuid, createdAtMs: number, spec, fault: null, softlyDeleted: false, changes: null };
    return { ...request, state: "accepted", cell: null };
  });
  const answer = (value: unknown) => ({ kind: "answer", value });
  const inCell = () => servers.filter(({ cell }) => cell !== null);
  const cell = {
    serversByTokens: async () => answer([]),
    serversByStatus: async () => answer([]),
    attributeValues: async () => answer(inCell().map(({ spec }) => spec.keyName)),
    serversByAttribute: async ({ after }: AttributeQuery) => {
      const found = inCell().filter(({ createdAtMs }) => after === null || createdAtMs < after.createdAtMs);
      const shown = found.map(({ serverUuid: uuid, ...server }) => ({ uuid, ...server, status: "BUILD" }));
      return answer({ servers: shown, resumeAt: null });
    },
  };
  let isFirstPage = true;
  const store = {
    requests: async () => servers,
    listRequests: async ({ open, failed, after, limit }: RequestQuery) => {
      const page = servers
        .filter(({ createdAtMs }) => after == null || createdAtMs < after.createdAtMs)
        .filter(({ state }) => (open === true && state === "accepted") || (failed === true && state === "failed"))
        .slice(0, limit)
        .map((record) => ({ ...record }));
      if (open === true && isFirstPage) {
        isFirstPage = false;
        // The rest of the first stretch is read before the server leaves.
        void setImmediate().then(() => leave(servers[2]!));
      }
      return page;
    },
  };
  const east = { name: "east", operations: (ask: (store: typeof cell) => unknown) => ask(cell) };
  return { store, cells: new Map([["east", east]]) } as unknown as Deps;
}

interface Waiting {
  readonly serverUuid: string;
  readonly createdAtMs: number;
  readonly spec: ServerSpec;
  readonly fault: string | null;
  readonly softlyDeleted: boolean;
  readonly changes: null;
  readonly state: string;
  readonly cell: string | null;
}

test.each([
  ["fails", { state: "failed", fault: "No valid host." }],
  ["comes into its cell with a new name of a key", { state: "dispatched", cell: "east" }],
])("a server that %s between two stretches of requests that wait for a host is found", async (_, changes) => {
  const indexed = [{ isPart: true, attribute: "key", value: "web" }] as const;
  const asked = { projectId: null, nameContains: null, created: null, indexed, matches: null };
  const read = stretchReader(
    waiting((last) => Object.assign(last, changes)),
    asked,
    "newest-first",
    null,
  );
  const first = await read(2);
  await setImmediate();
  const second = await read(2);
  const places = [...first.known, ...second.known].map(({ server }) => server.createdAtMs);
  expect([places, first.isLast, second.isLast]).toEqual([[3, 2, 1], false, true]);
});

/** The servers fail when the API database was asked for requests once. It answers the second question only then. */
function failing() {
  const deps = waiting(() => {});
  const { listRequests } = deps.store;
  let isFirst = true;
  Object.assign(deps.store, {
    listRequests: async (query: RequestQuery) => {
      const isLate = !isFirst;
      isFirst = false;
      if (isLate) await setImmediate();
      const page = await listRequests(query);
      if (!isLate) for (const server of await deps.store.requests([])) Object.assign(server, { state: "failed" });
      return page;
    },
  });
  return deps;
}

type Deps = Parameters<typeof stretchReader>[0];

test.each([
  [
    "an attribute",
    async (deps: Deps) => {
      const indexed = [{ isPart: false, attribute: "user", value: "ann" }] as const;
      const asked = { projectId: null, nameContains: null, created: null, indexed, matches: null };
      const { known } = await stretchReader(deps, asked, "newest-first", null)(9);
      return known.map(({ server }) => server);
    },
  ],
  [
    "tokens",
    (deps: Deps) => {
      const source = { kind: "tokens", tokens: ["ip6"], isChangeable: false, named: [] } as const;
      return findByTokens(deps, source, { projectId: null, limit: 9 });
    },
  ],
  ["their state", (deps: Deps) => findByState(deps, { projectId: null, shown: new Set(["BUILD", "ERROR"]), limit: 9 })],
])("servers that fail while servers are looked for by %s are found", async (_, find) => {
  expect((await find(failing()))?.map(({ createdAtMs }) => createdAtMs)).toEqual([3, 2, 1]);
});
