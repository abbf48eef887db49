import { describe, expect, test } from "vitest";
import type { ApiStore } from "../../core/stores/api/api-store.ts";
import { eventually } from "../rigs/eventually.ts";
import { serverId, serverSpec } from "./cell-fixtures.ts";

/** Requests that have arrived in their cell, or should have. */
export function arrivalContract(current: () => ApiStore): void {
  describe("a search for arrived requests", () => {
    const unarrived = async (cell: string, untouchedMs = 0, limit = 10): Promise<string[]> =>
      (await current().unarrived(cell, untouchedMs, limit)).map((record) => record.serverUuid);

    test("lists requests that were assigned to the cell until they are marked as arrived or touched", async () => {
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
      // Nothing has changed for clients that list changed servers.
      expect(await store.requests([serverId(1)])).toEqual([before]);
      expect(await store.takeLost("east", [1, 2, 4, 5].map(serverId), 3_600_000)).toEqual([]);
      expect(await store.takeLost("east", [...[1, 2, 4, 5].map(serverId), "nonsense"], 0)).toEqual([serverId(2)]);
      // The request is left to the next sweep.
      expect((await store.stale(3_600_000, 10)).map((record) => record.serverUuid)).toEqual([serverId(2)]);
      await store.cancel(serverId(3), "req-a");
      expect(await unarrived("east")).toEqual([serverId(2)]);
    });

    test("lists requests that were moved from the cell in which they had arrived", async () => {
      const store = current();
      await store.accept([serverSpec(1)]);
      await store.assignCells([{ serverUuid: serverId(1), from: null, to: "east" }]);
      await store.markArrived("east", [serverId(1)]);
      await store.assignCells([{ serverUuid: serverId(1), from: "east", to: "east" }]);
      expect(await unarrived("east")).toEqual([]);
      await store.assignCells([{ serverUuid: serverId(1), from: "east", to: "west" }]);
      expect(await unarrived("west")).toEqual([serverId(1)]);
    });

    test("gives a lost request to only one of several concurrent callers", async () => {
      const store = current();
      const servers = Array.from({ length: 20 }, (_, index) => index + 1);
      await store.accept(servers.map((server) => serverSpec(server)));
      await store.assignCells(servers.map((server) => ({ serverUuid: serverId(server), from: null, to: "east" })));
      const uuids = servers.map(serverId);
      const lostMs = 500;
      await eventually(
        "all to be untouched for so long",
        async () => (await unarrived("east", lostMs, 99)).length === 20,
        // The clock of a store may advance by a millisecond with each look.
        { everyMs: 1 },
      );
      const taken = await Promise.all([1, 2, 3].map(() => store.takeLost("east", uuids, lostMs)));
      expect(taken.flat().sort()).toEqual(uuids);
    });
  });
}
