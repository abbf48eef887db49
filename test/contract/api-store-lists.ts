import { describe, expect, test } from "vitest";
import type { ApiStore } from "../../core/cell/api-store.ts";
import { eventually } from "../eventually.ts";
import { serverId, serverSpec } from "./cell-fixtures.ts";

/** What readers of many requests may rely on: pages, and sweeps of what is stale. */
export function requestListContract(current: () => ApiStore): void {
  describe("a list", () => {
    const list = async (query: Partial<Parameters<ApiStore["listRequests"]>[0]> = {}): Promise<string[]> =>
      (await current().listRequests({ projectId: null, marker: null, limit: 100, ...query })).map(
        (record) => record.serverUuid,
      );

    test("has the newest first, those of one millisecond by uuid, a page at a time", async () => {
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
      const paged: string[] = [];
      for (let marker: string | null = null; ; marker = paged.at(-1) ?? null) {
        const page = await list({ marker, limit: 2 });
        if (page.length === 0) break;
        paged.push(...page);
      }
      expect(paged).toEqual(all);
    });

    test("leaves out what is cancelled or deleted, which may still be a marker", async () => {
      const store = current();
      await store.accept([1, 2, 3, 4].map((server) => serverSpec(server)));
      await store.cancel(serverId(3), "req-a");
      await store.cancel(serverId(2), "req-a");
      await store.markDeleted([serverId(2)]);
      expect(await list()).toEqual([4, 1].map(serverId));
      expect(await list({ marker: serverId(3) })).toEqual([serverId(1)]);
      expect(await list({ marker: serverId(2), limit: 1 })).toEqual([serverId(1)]);
      expect(await list({ marker: serverId(9) })).toEqual([]);
      expect(await list({ marker: "nonsense" })).toEqual([]);
    });

    test("is narrowed by project, by a part of the name taken literally, and by the last change", async () => {
      const store = current();
      await store.accept([
        serverSpec(1, { projectId: "a", name: "web_1%" }),
        serverSpec(2, { projectId: "a", name: "web-1" }),
        serverSpec(3, { projectId: "b", name: "web_1" }),
      ]);
      expect(await list({ projectId: "a" })).toEqual([2, 1].map(serverId));
      expect(await list({ nameContains: "_1" })).toEqual([3, 1].map(serverId));
      expect(await list({ nameContains: "%" })).toEqual([serverId(1)]);
      expect(await list({ nameContains: "" })).toHaveLength(3);
      expect(await list({ projectId: "a", nameContains: "web", marker: serverId(2) })).toEqual([serverId(1)]);
      const [first] = await store.requests([serverId(1)]);
      expect(await list({ changedSinceMs: first!.updatedAtMs })).toContain(serverId(1));
      expect(await list({ changedSinceMs: first!.updatedAtMs + 3_600_000, projectId: "a" })).toEqual([]);
    });
  });

  describe("a sweep", () => {
    test("finds what was accepted or cancelled and is touched by nobody, oldest first, up to the limit", async () => {
      const store = current();
      for (const server of [3, 1, 2, 4, 5]) await store.accept([serverSpec(server)]);
      await store.assignCells([{ serverUuid: serverId(4), from: null, to: "east" }]);
      await store.cancel(serverId(5), "req-a");
      await store.markDeleted([serverId(5)]);
      await store.cancel(serverId(3), "req-a");
      expect(await store.stale(3_600_000, 10)).toEqual([]);
      const stale = await store.stale(0, 2);
      expect(stale.map((record) => [record.serverUuid, record.state])).toEqual([
        [serverId(1), "accepted"],
        [serverId(2), "accepted"],
      ]);
      // What was handed out is touched by that: it comes last now.
      expect((await store.stale(0, 10)).map((record) => record.serverUuid)).toEqual([3, 1, 2].map(serverId));
    });
  });

  describe("a look for what arrived", () => {
    const unarrived = async (cell: string, untouchedMs = 0, limit = 10): Promise<string[]> =>
      (await current().unarrived(cell, untouchedMs, limit)).map((record) => record.serverUuid);

    test("names what was assigned to the cell until it is said to be there, or is touched", async () => {
      const store = current();
      await store.accept([1, 2, 3, 4, 5].map((server) => serverSpec(server)));
      for (const server of [3, 1, 2]) {
        await store.assignCells([{ serverUuid: serverId(server), from: null, to: "east" }]);
      }
      await store.assignCells([{ serverUuid: serverId(4), from: null, to: "west" }]);
      expect(await unarrived("east")).toHaveLength(3);
      expect(await unarrived("east", 0, 2)).toHaveLength(2);
      expect(await unarrived("east", 3_600_000)).toEqual([]);
      const [before] = await store.requests([serverId(1)]);
      await store.markArrived("east", [serverId(1), serverId(4), serverId(5), serverId(9), "nonsense"]);
      expect((await unarrived("east")).sort()).toEqual([2, 3].map(serverId));
      expect(await unarrived("west")).toEqual([serverId(4)]);
      // Nothing has changed for those who ask what has.
      expect(await store.requests([serverId(1)])).toEqual([before]);
      expect(await store.takeLost("east", [1, 2, 4, 5].map(serverId), 3_600_000)).toEqual([]);
      expect(await store.takeLost("east", [...[1, 2, 4, 5].map(serverId), "nonsense"], 0)).toEqual([serverId(2)]);
      await store.cancel(serverId(3), "req-a");
      expect(await unarrived("east")).toEqual([serverId(2)]);
    });

    test("names what left the cell where it had arrived", async () => {
      const store = current();
      await store.accept([serverSpec(1)]);
      await store.assignCells([{ serverUuid: serverId(1), from: null, to: "east" }]);
      await store.markArrived("east", [serverId(1)]);
      await store.assignCells([{ serverUuid: serverId(1), from: "east", to: "east" }]);
      expect(await unarrived("east")).toEqual([]);
      await store.assignCells([{ serverUuid: serverId(1), from: "east", to: "west" }]);
      expect(await unarrived("west")).toEqual([serverId(1)]);
    });

    test("of several that find the same request lost, one gets it", async () => {
      const store = current();
      const servers = Array.from({ length: 20 }, (_, index) => index + 1);
      await store.accept(servers.map((server) => serverSpec(server)));
      await store.assignCells(servers.map((server) => ({ serverUuid: serverId(server), from: null, to: "east" })));
      const uuids = servers.map(serverId);
      const lostMs = 500;
      await eventually(
        "all to be untouched for so long",
        async () => (await unarrived("east", lostMs, 99)).length === 20,
      );
      const taken = await Promise.all([1, 2, 3].map(() => store.takeLost("east", uuids, lostMs)));
      expect(taken.flat().sort()).toEqual(uuids);
    });
  });
}
