import { describe, expect, test } from "vitest";
import type { ApiStore, RequestOrder } from "../../core/stores/api/api-store.ts";
import { bareSpec } from "../../core/tasks/server-spec.ts";
import { goneFrom, serverId, serverSpec } from "./cell-fixtures.ts";

/** The guarantees for reading many requests: pages, and sweeps of stale requests. */
export function requestListContract(current: () => ApiStore): void {
  describe("a list", () => {
    const list = async (query: Partial<Parameters<ApiStore["listRequests"]>[0]> = {}): Promise<string[]> =>
      (await current().listRequests({ projectId: null, marker: null, limit: 100, ...query })).map(
        (record) => record.serverUuid,
      );

    test("has the newest first and those of one millisecond by UUID, or the same backwards, one page at a time", async () => {
      const store = current();
      const sameMs = 1_700_000_000_500;
      await store.accept([
        serverSpec(3, { createdAtMs: sameMs }),
        serverSpec(1, { createdAtMs: sameMs }),
        serverSpec(2, { createdAtMs: sameMs }),
        serverSpec(4, { createdAtMs: sameMs + 1 }),
        serverSpec(5, { createdAtMs: sameMs - 1 }),
      ]);
      const all = [4, 1, 2, 3, 5].map(serverId);
      expect(await list()).toEqual(all);
      const paged = async (order: RequestOrder): Promise<readonly string[]> => {
        const uuids: string[] = [];
        for (;;) {
          const page = await list({ marker: uuids.at(-1) ?? null, limit: 2, order });
          if (page.length === 0) return uuids;
          uuids.push(...page);
        }
      };
      expect(await paged("newest-first")).toEqual(all);
      expect(await paged("oldest-first")).toEqual(all.toReversed());
    });

    test("is ordered by the latest names, forwards or backwards, with the newest of one name first", async () => {
      const store = current();
      await store.accept([
        ...[1, 2, 3].map((server) => serverSpec(server, { createdAtMs: 1_000 + server, name: "same" })),
        serverSpec(4, { name: "Zoo" }),
        serverSpec(5, { name: "x", projectId: "a" }),
      ]);
      await store.changeServer(serverId(5), () => ({ name: "alpha" }));
      const paged = async (order: RequestOrder) => {
        const uuids: string[] = [];
        const scanned: string[] = [];
        for (let page: readonly string[] = ["first"]; page.length > 0; uuids.push(...page))
          page = await list({ marker: uuids.at(-1) ?? null, limit: 2, order });
        for (let marker: string | null = null; ; ) {
          const { records, resumeAt } = await store.scanRequests({ projectId: null, marker, rows: 2, order });
          scanned.push(...records.map(({ serverUuid }) => serverUuid));
          if (resumeAt === null) break;
          marker = resumeAt;
        }
        expect(scanned).toEqual(uuids);
        return uuids;
      };
      expect(await paged("by-name")).toEqual([4, 5, 3, 2, 1].map(serverId));
      expect(await paged("by-name-backwards")).toEqual([3, 2, 1, 5, 4].map(serverId));
      expect(await list({ projectId: "a", order: "by-name" })).toEqual([serverId(5)]);
    });

    test("finds a server by its latest name", async () => {
      const store = current();
      await store.accept([1, 2].map((server) => serverSpec(server)));
      await store.changeServer(serverId(1), () => ({ name: "other" }));
      expect([await list({ nameContains: "other" }), await list()]).toEqual([[serverId(1)], [2, 1].map(serverId)]);
      const scan = { projectId: null, marker: null, rows: 10 };
      expect((await store.scanRequests(scan)).records.map(({ spec }) => spec.name)).toContain("other");
      expect((await store.requests([serverId(1)])).map(({ spec }) => spec.name)).toEqual(["other"]);
    });

    test("leaves out cancelled and deleted requests, which may still be markers", async () => {
      const store = current();
      await store.accept([1, 2, 3, 4].map((server) => serverSpec(server)));
      await store.cancel(serverId(3), "req-a");
      await store.cancel(serverId(2), "req-a");
      await store.markDeleted(goneFrom(null, [serverId(2)]));
      expect(await list()).toEqual([4, 1].map(serverId));
      expect(await list({ marker: serverId(3) })).toEqual([serverId(1)]);
      expect(await list({ marker: serverId(2), limit: 1 })).toEqual([serverId(1)]);
      expect(await list({ marker: serverId(9) })).toEqual([]);
      expect(await list({ marker: "nonsense" })).toEqual([]);
    });

    test("can be scanned in stretches, each of which examines a fixed number of requests", async () => {
      const store = current();
      const sameMs = 1_700_000_000_500;
      await store.accept([
        ...[1, 2, 3].map((server) => serverSpec(server, { createdAtMs: sameMs, name: "other" })),
        ...[4, 5, 6, 7, 8].map((server) =>
          serverSpec(server, { createdAtMs: sameMs + server, projectId: "a", name: "web" }),
        ),
      ]);
      await store.cancel(serverId(8), "req-a");
      await store.markDeleted(goneFrom(null, [serverId(8)]));
      const stretches = async (scan: Partial<Parameters<ApiStore["scanRequests"]>[0]>) => {
        const found: (readonly string[])[] = [];
        for (let marker: string | null = null; ; ) {
          const { records, resumeAt } = await store.scanRequests({ projectId: null, marker, rows: 2, ...scan });
          found.push(records.map((record) => record.serverUuid));
          if (resumeAt === null) return found;
          marker = resumeAt;
        }
      };
      expect(await stretches({})).toEqual([[7, 6], [5, 4], [1, 2], [3]].map((page) => page.map(serverId)));
      expect(await stretches({ order: "oldest-first" })).toEqual(
        [[3, 2], [1, 4], [5, 6], [7]].map((page) => page.map(serverId)),
      );
      expect(await stretches({ projectId: "a" })).toEqual([[7, 6], [5, 4], []].map((page) => page.map(serverId)));
      expect(await stretches({ rows: 100, projectId: "nobody" })).toEqual([[]]);
      const created = { fromMs: sameMs + 4, beforeMs: sameMs + 7 };
      expect(await stretches({ created })).toEqual([[6, 5], [4]].map((page) => page.map(serverId)));
      expect(await stretches({ created, order: "oldest-first", projectId: "a" })).toEqual(
        [[4, 5], [6]].map((page) => page.map(serverId)),
      );
      const web = { rows: 3, named: { contains: "we", limit: 2 } };
      expect(await stretches(web)).toEqual([[7, 6], [5, 4], [], []].map((page) => page.map(serverId)));
      expect(await stretches({ ...web, rows: 2, named: { contains: "oth", limit: 2 } })).toEqual(
        [[], [], [1, 2], [3]].map((page) => page.map(serverId)),
      );
      expect(await stretches({ ...web, created, projectId: "a", order: "oldest-first" })).toEqual(
        [[4, 5], [6]].map((page) => page.map(serverId)),
      );
      const unknown = await store.scanRequests({ projectId: null, marker: serverId(9), rows: 2 });
      expect(unknown).toEqual({ records: [], resumeAt: null });
    });

    test("can begin after a place at which there is no request", async () => {
      const store = current();
      const sameMs = 1_700_000_000_500;
      await store.accept([1, 2, 4, 5].map((server) => serverSpec(server, { createdAtMs: sameMs + (server >> 2) })));
      const after = { uuid: serverId(3), createdAtMs: sameMs };
      for (const [place, newest, oldest] of [
        [after, [], [1, 2, 4, 5]],
        [{ uuid: serverId(3), createdAtMs: sameMs + 1 }, [4, 5, 1, 2], []],
        [{ uuid: serverId(1), createdAtMs: sameMs }, [2], [5, 4]],
      ] as const) {
        expect(await list({ after: place })).toEqual(newest.map(serverId));
        const backwards = await list({ after: place, order: "oldest-first" });
        expect(backwards.toSorted()).toEqual(oldest.map(serverId).toSorted());
        const scan = { projectId: null, marker: null, after: place, rows: 10 };
        expect((await store.scanRequests(scan)).records.map((record) => record.serverUuid)).toEqual(
          newest.map(serverId),
        );
      }
    });

    test("can be limited to a project, to a literal part of the name, and to the time of the last change", async () => {
      const store = current();
      await store.accept([
        serverSpec(1, { projectId: "a", name: "web_1%" }),
        serverSpec(2, { projectId: "a", name: "web-1\\" }),
        serverSpec(3, { projectId: "b", name: "web_1" }),
      ]);
      expect(await list({ projectId: "a" })).toEqual([2, 1].map(serverId));
      expect(await list({ nameContains: "_1" })).toEqual([3, 1].map(serverId));
      expect(await list({ nameContains: "%" })).toEqual([serverId(1)]);
      expect(await list({ nameContains: "b-1\\" })).toEqual([serverId(2)]);
      expect(await list({ nameContains: "" })).toHaveLength(3);
      expect(await list({ projectId: "a", nameContains: "web", marker: serverId(2) })).toEqual([serverId(1)]);
      const [first] = await store.requests([serverId(1)]);
      expect(await list({ changedSinceMs: first!.updatedAtMs })).toContain(serverId(1));
      expect(await list({ changedSinceMs: first!.updatedAtMs + 3_600_000, projectId: "a" })).toEqual([]);
      expect(await list({ changedBeforeMs: first!.updatedAtMs, projectId: "a" })).toContain(serverId(1));
      expect(await list({ changedBeforeMs: first!.updatedAtMs - 1, projectId: "a" })).not.toContain(serverId(1));
    });
  });

  describe("a sweep", () => {
    test("finds accepted and cancelled requests that were not touched for a while, oldest first, up to the limit", async () => {
      const store = current();
      for (const server of [3, 1, 2, 4, 5]) await store.accept([serverSpec(server)]);
      await store.assignCells([{ serverUuid: serverId(4), from: null, to: "east" }]);
      await store.cancel(serverId(5), "req-a");
      await store.markDeleted(goneFrom(null, [serverId(5)]));
      await store.cancel(serverId(3), "req-a");
      expect(await store.stale(3_600_000, 10)).toEqual([]);
      const stale = await store.stale(0, 2);
      expect(stale.map((record) => [record.serverUuid, record.state])).toEqual([
        [serverId(1), "accepted"],
        [serverId(2), "accepted"],
      ]);
      // Returning a request counts as touching it, so it comes last now.
      expect((await store.stale(0, 10)).map((record) => record.serverUuid)).toEqual([3, 1, 2].map(serverId));
    });
  });

  describe("a request that was put off", () => {
    const swept = async (untouchedMs: number, query = {}): Promise<string[]> =>
      (await current().stale(untouchedMs, 10, query)).map((one) => one.serverUuid);

    test("is swept after its delay and not before, even when it is assigned to a cell", async () => {
      const store = current();
      await store.accept([1, 2, 3, 4].map((server) => serverSpec(server)));
      for (const server of [2, 4]) await store.assignCells([{ serverUuid: serverId(server), from: null, to: "east" }]);
      const delays = [1, 2, 3].map((server) => ({
        serverUuid: serverId(server),
        delayMs: server === 3 ? 3_600_000 : 0,
      }));
      await store.putOff([...delays, { serverUuid: "nonsense", delayMs: 0 }, { serverUuid: serverId(9), delayMs: 0 }]);
      expect((await swept(3_600_000)).sort()).toEqual([1, 2].map(serverId));
      // The sweep has returned it, so no other sweep gets it meanwhile.
      expect(await swept(3_600_000)).toEqual([]);
    });

    test("is given to only one of several concurrent sweeps", async () => {
      const store = current();
      const servers = Array.from({ length: 9 }, (_, server) => server);
      await store.accept(servers.map((server) => serverSpec(server)));
      await store.assignCells(servers.map((server) => ({ serverUuid: serverId(server), from: null, to: "east" })));
      await store.putOff(servers.map((server) => ({ serverUuid: serverId(server), delayMs: 0 })));
      const taken = await Promise.all([1, 2, 3].map(() => swept(3_600_000)));
      expect([...taken.flat(), ...(await swept(3_600_000))].sort()).toEqual(servers.map(serverId));
    });

    test("is left alone while its cell is away, and while only cancelled requests are swept", async () => {
      const store = current();
      await store.accept([1, 2, 3].map((server) => serverSpec(server)));
      await store.assignCells([{ serverUuid: serverId(1), from: null, to: "east" }]);
      await store.putOff([{ serverUuid: serverId(1), delayMs: 0 }]);
      await store.cancel(serverId(3), "req-a");
      expect((await swept(0, { exceptCells: ["east"] })).sort()).toEqual([2, 3].map(serverId));
      expect(await swept(0, { placing: "none" })).toEqual([serverId(3)]);
      expect((await swept(0, { placing: "put-off" })).sort()).toEqual([1, 3].map(serverId));
      expect(await swept(0, { exceptCells: ["west"] })).toContain(serverId(1));
    });

    test("is not swept once it has arrived or ended, and is swept without delay once it is cancelled", async () => {
      const store = current();
      await store.accept([1, 2, 3].map((server) => serverSpec(server)));
      await store.assignCells([{ serverUuid: serverId(1), from: null, to: "east" }]);
      await store.putOff([1, 2].map((server) => ({ serverUuid: serverId(server), delayMs: 0 })));
      await store.putOff([{ serverUuid: serverId(3), delayMs: 3_600_000 }]);
      await store.markArrived("east", [serverId(1)]);
      await store.failRequests([{ serverUuid: serverId(2), cell: null, fault: "none" }]);
      await store.cancel(serverId(3), "req-a");
      expect(await swept(0)).toEqual([serverId(3)]);
    });
  });

  describe("a read of requests to be placed", () => {
    const limits = { specBytesMax: 5_000, pageBytesMax: 10_000 };
    const big = (server: number, bytes: number) => serverSpec(server, { metadata: { big: "x".repeat(bytes) } });

    test("returns each request's spec, its cell, its number of put-offs and its age", async () => {
      const store = current();
      await store.accept([serverSpec(1), serverSpec(2)]);
      await store.assignCells([{ serverUuid: serverId(2), from: null, to: "east" }]);
      for (const server of [1, 2, 2]) await store.putOff([{ serverUuid: serverId(server), delayMs: 0 }]);
      const { found, left } = await store.placeable([2, 9, 1].map(serverId), limits);
      expect(left).toEqual([]);
      expect(found).toMatchObject([
        { serverUuid: serverId(2), state: "dispatched", cell: "east", putOffs: 2, spec: serverSpec(2) },
        { serverUuid: serverId(1), state: "accepted", cell: null, putOffs: 1, spec: serverSpec(1) },
      ]);
      // `createdAtMs` of the fixture is years ago, but the age is by the store's own clock.
      for (const { ageMs } of found) expect(ageMs).toBeLessThan(3_600_000);
      expect(await store.placeable([], limits)).toEqual({ found: [], left: [] });
    });

    test("reads specs in pages of limited size, and only the size of a spec that is too large", async () => {
      const store = current();
      await store.accept([big(1, 4_000), big(2, 9_000), big(3, 4_000), big(4, 4_000)]);
      const uuids = [1, 2, 3, 4].map(serverId);
      const first = await store.placeable(uuids, limits);
      expect(first.found.map(({ serverUuid, spec }) => [serverUuid, spec !== null])).toEqual([
        [serverId(1), true],
        [serverId(2), false],
        [serverId(3), true],
      ]);
      expect(first.found[1]?.specBytes).toBeGreaterThan(9_000);
      expect(first.left).toEqual([serverId(4)]);
      expect((await store.placeable(first.left, limits)).found).toHaveLength(1);
    });
  });

  describe("a limit of open requests", () => {
    const call = (...servers: readonly number[]) => servers.map((server) => serverSpec(server, { projectId: "a" }));
    const kinds = async (calls: readonly ReturnType<typeof call>[], openMax: number) =>
      (await current().acceptWithin(calls, { openMax, quotas: null })).map((outcome) =>
        outcome.kind === "over-limit" ? `over limit at ${outcome.open}` : outcome.kind,
      );
    const known = async (...servers: readonly number[]) =>
      (await current().requests(servers.map(serverId))).map(({ serverUuid }) => serverUuid);

    test("accepts calls as a whole up to the limit, each project by itself", async () => {
      const others = [serverSpec(9, { projectId: "b" })];
      expect(await kinds([call(1, 2), call(3, 4), call(5), others], 3)).toEqual([
        "accepted",
        "over limit at 2",
        "accepted",
        "accepted",
      ]);
      expect(await known(1, 2, 3, 4, 5, 9)).toEqual([1, 2, 5, 9].map(serverId));
      expect(await kinds([], 3)).toEqual([]);
      expect(await kinds([call(6)], 3)).toEqual(["over limit at 3"]);
      expect(await kinds([[serverSpec(10, { projectId: "b" })]], 1)).toEqual(["over limit at 1"]);
    });

    test("has room again when requests are placed or end", async () => {
      const store = current();
      expect(await kinds([call(1, 2, 3)], 3)).toEqual(["accepted"]);
      await store.assignCells([{ serverUuid: serverId(1), from: null, to: "east" }]);
      await store.failRequests([{ serverUuid: serverId(2), cell: null, fault: "none" }]);
      await store.cancel(serverId(3), "req-a");
      expect(await kinds([call(4), call(5, 6), call(7)], 3)).toEqual(["accepted", "accepted", "over limit at 3"]);
    });

    test("counts a call once that was accepted before and whose answer was lost", async () => {
      expect(await kinds([call(1, 2)], 2)).toEqual(["accepted"]);
      expect(await kinds([call(1, 2), call(3)], 2)).toEqual(["accepted", "over limit at 2"]);
      expect(await kinds([call(1, 2), call(3)], 3)).toEqual(["accepted", "accepted"]);
    });

    test.each([null, 3])(
      "refuses a call as a whole when the UUID of one of its servers was closed (limit %s)",
      async (openMax) => {
        const store = current();
        await store.accept([bareSpec(serverId(2))]);
        const accept = async () =>
          (await store.acceptWithin([call(1, 2), call(3)], { openMax, quotas: null })).map(({ kind }) => kind);
        expect([await accept(), await accept()]).toEqual([
          ["closed", "accepted"],
          ["closed", "accepted"],
        ]);
        await store.cancel(serverId(2), "req-closing");
        await store.markDeleted(goneFrom(null, [serverId(2)]));
        expect(await accept()).toEqual(["closed", "accepted"]);
        expect(await known(1, 3)).toEqual([serverId(3)]);
      },
    );

    test("either accepts a call or refuses it when a UUID is closed at the same time", async () => {
      const store = current();
      const servers = Array.from({ length: 24 }, (_, server) => server);
      const outcomes = await Promise.all(
        servers.map(async (server) => {
          const accepting = store.acceptWithin([call(server)], { openMax: null, quotas: null });
          const [[outcome]] = await Promise.all([accepting, store.accept([bareSpec(serverId(server))])]);
          return outcome?.kind;
        }),
      );
      const records = await store.requests(servers.map(serverId));
      expect(outcomes).toEqual(records.map(({ spec }) => (spec.projectId === "a" ? "accepted" : "closed")));
    });

    test("holds for concurrent calls", async () => {
      const outcomes = await Promise.all(
        Array.from({ length: 24 }, (_, server) => kinds([call(server), call(100 + server, 200 + server)], 10)),
      );
      const accepted = await known(
        ...Array.from({ length: 24 }, (_, server) => [server, 100 + server, 200 + server]).flat(),
      );
      expect(accepted.length).toBe(10);
      const answered = outcomes.flatMap(([one, two]) => [one === "accepted" ? 1 : 0, two === "accepted" ? 2 : 0]);
      expect(answered.reduce<number>((sum, servers) => sum + servers, 0)).toBe(10);
    });
  });
}
