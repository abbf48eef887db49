import { expect, test } from "vitest";
import type { RequestQuery, RequestRecord, RequestScan } from "../../../../core/stores/api/api-store.ts";
import type { StatusQuery } from "../../../../core/stores/cell/cell-store.ts";
import type { TokenQuery } from "../../../../core/stores/cell/listed-servers.ts";
import { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import type { ListSource } from "./list-filters.ts";
import { listFound } from "./list-found.ts";
import type { ListQuery } from "./list-query.ts";

const uuidOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
const TOKENS: ListSource = { kind: "tokens", tokens: ["ip6"], isChangeable: false, named: [] };
const STATES: ListSource = { kind: "states", shown: new Set(["ERROR"]) };
const LOCKED: ListSource = { kind: "locked" };
const BY_VM_STATE = [{ key: "vm_state", descending: false }] as unknown as ListQuery["order"];

/** A cell in which the project p has three servers, and other projects have many. The numbers say which of p's servers an index finds. */
function cloudOf(found: {
  readonly tokens: readonly number[] | "too many";
  readonly states: number;
  readonly locked?: number;
}) {
  const records = [1, 2, 3].map(
    (number): RequestRecord => ({
      ...{ serverUuid: uuidOf(number), state: "dispatched", cell: "east", assignment: 0, changes: null, fault: null },
      spec: ServerSpec.fromPartial({ uuid: uuidOf(number), projectId: "p" }),
      ...{ cancellation: null, createdAtMs: number, updatedAtMs: number, softlyDeleted: false },
    }),
  );
  const asked: unknown[] = [];
  const place = (number: number) => ({ uuid: uuidOf(number), createdAtMs: number });
  const answer = (value: unknown) => ({ kind: "answer", value });
  const store = {
    serversByTokens: async ({ projectId, looksMax }: TokenQuery) => {
      asked.push(["tokens", projectId]);
      expect(looksMax).toBeGreaterThan(10_000);
      return answer(found.tokens === "too many" ? null : found.tokens.map(place));
    },
    serversByStatus: async (_query: StatusQuery, looksMax: number) => {
      asked.push(["states"]);
      const isTooMany = found.states > looksMax;
      return answer(isTooMany ? null : Array.from({ length: found.states }, (_, at) => place(at + 1)));
    },
  };
  const deps = {
    store: {
      requests: async (uuids: readonly string[]) => records.filter(({ serverUuid }) => uuids.includes(serverUuid)),
      listRequests: async ({ locked, limit }: RequestQuery) =>
        locked === true
          ? Array.from({ length: Math.min(limit, found.locked ?? 0) }, (_, at) => ({ serverUuid: uuidOf(at + 1) }))
          : [],
      scanRequests: async (_scan: RequestScan) => {
        asked.push(["scan"]);
        return { records, resumeAt: null };
      },
    },
    cells: new Map([
      [
        "east",
        {
          name: "east",
          servers: async (uuids: readonly string[]) =>
            answer(
              records
                .filter(({ serverUuid }) => uuids.includes(serverUuid))
                .map(({ serverUuid: uuid, spec, createdAtMs }) => ({ uuid, spec, createdAtMs, status: "ACTIVE" })),
            ),
          operations: (ask: (operations: typeof store) => unknown) => ask(store),
        },
      ],
    ]),
  } as unknown as Parameters<typeof listFound>[0];
  const list = async (sources: readonly ListSource[], order: ListQuery["order"]) => {
    const query = {
      ...{ projectId: "p", limit: 10, marker: null, nameContains: null, softDeleted: false, created: null },
      ...{ indexed: [], matches: null, sort: (servers: readonly KnownServer[]) => servers, sources, order },
    } as unknown as ListQuery;
    const page = await listFound(deps, query, null);
    return page?.servers.map(({ server }) => Number(server.uuid.slice(-12))).toSorted();
  };
  return { list, asked };
}

test("the few servers of a project are listed in an order without an index although very many of other projects have the field", async () => {
  const { list, asked } = cloudOf({ tokens: "too many", states: 0 });
  expect(await list([TOKENS], BY_VM_STATE)).toEqual([1, 2, 3]);
  expect(asked).toEqual([["tokens", "p"], ["scan"]]);
});

test("the few servers of a project are listed in such an order although very many of other projects have the status", async () => {
  const { list } = cloudOf({ tokens: [], states: 20_000 });
  expect(await list([STATES], BY_VM_STATE)).toEqual([1, 2, 3]);
});

test("where one index finds too many servers the next one is asked", async () => {
  const { list, asked } = cloudOf({ tokens: [2], states: 20_000 });
  expect(await list([STATES, TOKENS], null)).toEqual([2]);
  expect(await list([STATES, TOKENS], BY_VM_STATE)).toEqual([2]);
  expect(asked).toEqual([["states"], ["tokens", "p"], ["states"], ["tokens", "p"]]);
});

test("a list that no index finds is left to the walk in its order", async () => {
  const { list } = cloudOf({ tokens: "too many", states: 20_000 });
  expect(await list([STATES, TOKENS], null)).toBeUndefined();
});

test("where more servers are locked than one call can sort the next index is asked, and the list is refused if that does not help", async () => {
  const few = cloudOf({ tokens: [2], states: 0, locked: 20_000 });
  expect(await few.list([LOCKED, TOKENS], null)).toEqual([2]);
  const many = cloudOf({ tokens: "too many", states: 0, locked: 20_000 });
  await expect(many.list([LOCKED, TOKENS], null)).rejects.toMatchObject({ status: 400 });
  await expect(many.list([LOCKED], null)).rejects.toMatchObject({ status: 400 });
});
