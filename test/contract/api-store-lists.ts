import { describe, expect, test } from "vitest";
import type { ApiStore } from "../../core/cell/api-store.ts";
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
}
