import { describe, expect, test } from "vitest";
import type { ApiStore } from "../../core/stores/api/api-store.ts";
import type { UserChanges } from "../../core/tasks/user-changes.ts";
import { serverId, serverSpec } from "./cell-fixtures.ts";

/** Rules for changes that users make to servers which were accepted. */
export function userChangesContract(current: () => ApiStore): void {
  describe("changes of a server", () => {
    const changesOf = async (server: number) => (await current().requests([serverId(server)]))[0]?.changes;

    test("are in its record and its spec, and leave its state alone", async () => {
      const store = current();
      await store.accept([serverSpec(1), serverSpec(2)]);
      const changes: UserChanges = {
        ...{ name: "other", description: null, metadata: { "a b": 'c"\\' }, tags: ["x", "y"], hostname: "web-1" },
        ...{ accessIpV4: "10.0.0.1", manualDisk: true, lock: { by: "owner", reason: "ü" }, atMs: 5 },
      };
      const changed = await store.changeServer(serverId(1), () => changes);
      expect(changed).toMatchObject({ state: "accepted", changes, spec: { name: "other", tags: ["x", "y"] } });
      const [read, untouched] = await store.requests([serverId(1), serverId(2)]);
      const { metadata, hostname, accessIpV4, manualDisk } = read?.spec ?? {};
      expect(read?.changes).toEqual(changes);
      expect({ metadata, hostname, accessIpV4, manualDisk }).toEqual({
        ...{ metadata: { "a b": 'c"\\' }, hostname: "web-1", accessIpV4: "10.0.0.1", manualDisk: true },
      });
      expect(untouched?.changes).toBeNull();
      await store.assignCells([{ serverUuid: serverId(1), from: null, to: "north" }]);
      expect(await changesOf(1)).toEqual(changes);
    });

    test("are read of several servers, of which those without changes are left out", async () => {
      const store = current();
      await store.accept([serverSpec(1), serverSpec(2), serverSpec(3, { tags: ["a"] }), serverSpec(4)]);
      const changes: UserChanges = { name: "other", description: null, lock: { by: "admin", reason: "ü" }, atMs: 5 };
      await store.changeServer(serverId(1), () => changes);
      await store.changeServer(serverId(4), () => ({ lock: null }));
      const read = async (...servers: readonly string[]) => Object.fromEntries(await store.changesOf(servers));
      expect(await read(...[1, 2, 3, 9].map(serverId), "nonsense")).toEqual({
        [serverId(1)]: changes,
        [serverId(3)]: { tags: ["a"] },
      });
      await store.cancel(serverId(4), "req-a");
      expect(await read(serverId(4))).toEqual({ [serverId(4)]: { lock: null } });
      expect(await read()).toEqual({});
    });

    test("are made of the server as it is, when two make them at once", async () => {
      const store = current();
      await store.accept([serverSpec(1)]);
      const add = (tag: string) =>
        store.changeServer(serverId(1), ({ spec, changes }) => ({ ...changes, tags: [...spec.tags, tag] }));
      await Promise.all(["a", "b", "c", "d", "e"].map(add));
      expect([...((await changesOf(1))?.tags ?? [])].sort()).toEqual(["a", "b", "c", "d", "e"]);
    });

    test("are used by lists to find tagged and locked servers", async () => {
      const store = current();
      await store.accept([
        serverSpec(1, { tags: ["a"] }),
        serverSpec(2, { tags: ["a", "b"] }),
        serverSpec(3, { tags: ["c"], projectId: "other" }),
        serverSpec(4),
      ]);
      await store.changeServer(serverId(4), ({ changes }) => ({ ...changes, lock: { by: "owner", reason: null } }));
      await store.changeServer(serverId(1), ({ changes }) => ({ ...changes, lock: null }));
      const list = async (query: Partial<Parameters<ApiStore["listRequests"]>[0]>) =>
        (await store.listRequests({ projectId: null, marker: null, limit: 9, ...query })).map((one) => one.serverUuid);
      const tagged = (all: readonly string[], any: readonly string[]) => list({ tags: { all, any } });
      expect(await tagged(["a"], [])).toEqual([2, 1].map(serverId));
      expect(await tagged(["a", "b"], [])).toEqual([serverId(2)]);
      expect(await tagged([], ["b", "c"])).toEqual([3, 2].map(serverId));
      expect(await tagged(["a"], ["b", "c"])).toEqual([serverId(2)]);
      expect(await tagged(["z"], [])).toEqual([]);
      expect(await list({ tags: { all: [], any: ["c"] }, projectId: "other" })).toEqual([serverId(3)]);
      expect(await list({ locked: true })).toEqual([serverId(4)]);
      await store.failRequests([{ serverUuid: serverId(3), cell: null, fault: "No valid host was found." }]);
      expect([await list({ failed: true }), await list({ open: true })]).toEqual(
        [[3], [4, 2, 1]].map((of) => of.map(serverId)),
      );
      const either = { open: true, failed: true } as const;
      expect(await list(either)).toEqual([4, 3, 2, 1].map(serverId));
      expect(await list({ ...either, limit: 2 })).toEqual([4, 3].map(serverId));
      expect(await list({ ...either, projectId: "other" })).toEqual([serverId(3)]);
      expect(await list({ ...either, marker: serverId(3) })).toEqual([2, 1].map(serverId));
      expect(await list({ ...either, marker: serverId(3), order: "oldest-first" })).toEqual([serverId(4)]);
      await store.cancel(serverId(2), "req-a");
      expect(await tagged(["a"], [])).toEqual([serverId(1)]);
    });

    test("are used by lists to find servers whose host name or other listed fields are not those of the spec", async () => {
      const store = current();
      const given = ["Web 1", "web_2", "größe", "web.3-a", "---", `${"-".repeat(63)}web-9`, "x".repeat(255), "db%1"];
      await store.accept(given.map((name, at) => serverSpec(at + 1, { name })));
      await store.changeServer(serverId(2), () => ({ name: "other_2" }));
      await store.changeServer(serverId(7), () => ({ hostname: "web-7", lock: null }));
      await store.changeServer(serverId(8), () => ({ lock: null, tags: ["a"] }));
      const list = async (query: Partial<Parameters<ApiStore["listRequests"]>[0]>) =>
        (await store.listRequests({ projectId: null, marker: null, limit: 9, ...query })).map((one) => one.serverUuid);
      expect((await list({ changed: true })).toSorted()).toEqual([2, 7].map(serverId));
      expect((await list({ hasWord: "web" })).toSorted()).toEqual([1, 4, 6].map(serverId));
      expect(await list({ hasWord: "other" })).toEqual([serverId(2)]);
      expect((await list({ oddlyNamed: true })).toSorted()).toEqual([3, 5, 6, 8].map(serverId));
      expect(await list({ hasWord: "web", projectId: "none" })).toEqual([]);
    });

    test("are not made when the caller wants none, or when there is no such server", async () => {
      const store = current();
      await store.accept([serverSpec(1)]);
      expect(await store.changeServer(serverId(1), () => null)).toMatchObject({ changes: null });
      expect(await store.changeServer(serverId(9), () => ({ name: "x" }))).toBeNull();
      expect(await store.changeServer("nonsense", () => ({ name: "x" }))).toBeNull();
    });

    test("begin with the tags that a server was accepted with", async () => {
      const store = current();
      await store.accept([serverSpec(1, { tags: ["a", "b"] }), serverSpec(2)]);
      await store.acceptWithin([[serverSpec(3, { tags: ["c,d"] })], [serverSpec(4)]], { openMax: 10, quotas: null });
      expect(await Promise.all([1, 2, 3, 4].map(changesOf))).toEqual([
        ...[{ tags: ["a", "b"] }, null, { tags: ["c,d"] }, null],
      ]);
      await store.accept([serverSpec(1, { tags: ["z"] }), serverSpec(2)]);
      expect(await changesOf(1)).toEqual({ tags: ["a", "b"] });
    });
  });
}
