import { expect, test } from "vitest";
import type { ChangedServers } from "../../../../core/stores/cell/cell-store.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import { serverSpec } from "../../../../test/contract/cell-fixtures.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import { Fault } from "../../http/fault.ts";
import { listChanged } from "./list-changed.ts";
import type { ListQuery } from "./list-query.ts";

const SINCE = { changedSinceMs: 1_000 };
const BEFORE = { changedBeforeMs: 2_000 };

/** Asks for the list. Returns what was asked for, and the status and the text of the refusal. */
async function refusalOf(query: Partial<ListQuery>, answer: ChangedServers, kept = 0) {
  const asked: string[] = [];
  const store = {
    requests: async () => [],
    listRequests: async ({ limit }: { readonly limit: number }) => {
      asked.push("requests");
      return Array.from({ length: limit }, () => ({ serverUuid: "" }));
    },
  };
  const east = {
    serversChanged: async (changes: object) => {
      asked.push(`changes ${JSON.stringify(changes)}`);
      return { kind: "answer", value: answer };
    },
  };
  const softDeleter = { softlyDeleted: async () => Array.from({ length: kept }, () => ({ uuid: "", createdAtMs: 0 })) };
  const deps = { store, cells: new Map([["east", east]]), softDeleter } as unknown as Parameters<typeof listChanged>[0];
  const plain = { projectId: "p", changedSinceMs: null, changedBeforeMs: null, deleted: null };
  const refusal = await listChanged(deps, { ...plain, ...query } as ListQuery, null).catch((error: unknown) => error);
  if (!(refusal instanceof Fault)) throw new Error(`not refused: ${String(refusal)}`);
  return { asked, status: refusal.status, text: refusal.message };
}

test.each<[Partial<ListQuery>, string]>([
  [SINCE, "changes-since: more than 10000 servers have changed since then; use a later time."],
  [
    BEFORE,
    "changes-before: more than 10000 servers last changed before then; use an earlier time, or give changes-since, too.",
  ],
  [
    { ...SINCE, ...BEFORE },
    "changes-since, changes-before: more than 10000 servers have changed in that time; use a shorter time.",
  ],
  [{ deleted: "deleted" }, "deleted: more than 10000 servers are deleted; give a time with changes-since, too."],
  [{ deleted: "status" }, "status: more than 10000 servers are deleted; give a time with changes-since, too."],
  [
    { ...SINCE, deleted: "vm_state" },
    "changes-since, vm_state: more than 10000 servers are deleted and have changed since then; use a later time.",
  ],
])("the refusal of too many changes names the parameters that were given: %j", async (query, text) => {
  const { asked, ...refusal } = await refusalOf(query, { kind: "too-many" });
  expect(refusal).toEqual({ status: 400, text: `Invalid input for query parameters ${text}` });
  const { changedSinceMs: sinceMs = 0, changedBeforeMs: beforeMs = null, deleted = null } = query;
  const changes = { sinceMs, beforeMs, deleted: deleted !== null, projectId: "p", looksMax: 10_000 };
  // No requests were read.
  expect(asked).toEqual([`changes ${JSON.stringify(changes)}`]);
});

test("too many requests changed since a time are refused with the word that helps, also if another time was given", async () => {
  for (const query of [SINCE, { ...SINCE, ...BEFORE }]) {
    const { text } = await refusalOf(query, { kind: "found", servers: [] });
    expect(text).toMatch(/changes-since: more than 10000 servers have changed since then; use a later time\.$/);
  }
});

test("a list that a cell could not make in time is refused, since it would lack the servers of that cell", async () => {
  const { status, text } = await refusalOf({ ...BEFORE, deleted: "deleted" }, { kind: "too-slow" });
  expect(status).toBe(503);
  expect(text).toContain("changes-before, deleted");
});

test("too many requests that have changed in no cell, or servers that are deleted softly, are refused as those of cells", async () => {
  const none: ChangedServers = { kind: "found", servers: [] };
  expect(await refusalOf(SINCE, none)).toMatchObject({ status: 400, text: expect.stringContaining("changes-since:") });
  const kept = await refusalOf({ deleted: "deleted" }, none, 10_001);
  expect(kept).toMatchObject({ status: 400, text: expect.stringContaining("parameters deleted:") });
  expect(kept.asked).not.toContain("requests");
});

test("a cell tells nothing of a server that lives in another cell, whatever it says of it", async () => {
  const spec = serverSpec(1, { projectId: "victims" });
  const record = {
    serverUuid: spec.uuid,
    cell: "east",
    state: "dispatched",
    changes: { metadata: { secret: "word" } },
    spec,
  };
  const server = (name: string, projectId: string) =>
    ({
      uuid: spec.uuid,
      status: "ACTIVE",
      spec: { ...spec, name, projectId },
      updatedAtMs: 5_000,
      createdAtMs: 1,
    }) as Server;
  const cellOf = (name: string, servers: readonly Server[]) => ({
    name,
    serversChanged: async () => ({ kind: "answer", value: { kind: "found", servers } }),
  });
  const store = { requests: async () => [record], listRequests: async () => [] };
  const named = async (projectId: string, last: string) => {
    const honest = cellOf("east", [server("own name", "victims")]);
    const lying = cellOf("west", [server("forged name", projectId)]);
    const cells = new Map((last === "east" ? [lying, honest] : [honest, lying]).map((cell) => [cell.name, cell]));
    const deps = { store, cells, softDeleter: null } as unknown as Parameters<typeof listChanged>[0];
    const all = {
      nameContains: null,
      matches: null,
      changedBeforeMs: null,
      deleted: null,
      limit: 10,
      sort: (servers: readonly KnownServer[]) => servers,
    };
    const { servers } = await listChanged(deps, { projectId, ...SINCE, ...all } as unknown as ListQuery, null);
    return servers.map((one) => one.server.spec.name);
  };
  for (const last of ["east", "west"]) {
    expect(await named("victims", last)).toEqual(["own name"]);
    expect(await named("others", last)).toEqual([]);
  }
});
