import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ApiStore } from "../../core/stores/api/api-store.ts";
import type { NewServerGroup, ServerGroupStore } from "../../core/stores/api/server-group-store.ts";
import { numbered, serverId, serverSpec } from "./cell-fixtures.ts";

export interface ServerGroupSubject {
  readonly store: ServerGroupStore;
  /** The store of requests in the same database. */
  readonly requests: ApiStore;
  close(): Promise<void>;
}

const groupId = (group: number): string => numbered(0xe, group);
const newGroup = (group: number, over: Partial<NewServerGroup> = {}): NewServerGroup => ({
  uuid: groupId(group),
  name: `group ${group}`,
  projectId: "project-1",
  userId: "user-1",
  policy: "affinity",
  maxServerPerHost: null,
  ...over,
});

/** The guarantees of both implementations of the server groups' store. */
export function serverGroupStoreContract(name: string, makeSubject: () => Promise<ServerGroupSubject>): void {
  describe(`the server groups' store in ${name}`, () => {
    let subject: ServerGroupSubject;
    beforeEach(async () => {
      subject = await makeSubject();
    });
    afterEach(() => subject.close());
    const accept = (...servers: number[]) => subject.requests.accept(servers.map((server) => serverSpec(server)));
    const membersOf = async (group: number) => (await subject.store.group(groupId(group)))?.members;

    test("keeps groups as they were made, and lists them by project, oldest first, page by page", async () => {
      const { store } = subject;
      const pairs = newGroup(2, { policy: "anti-affinity", maxServerPerHost: 2 });
      for (const group of [newGroup(1), pairs, newGroup(3, { projectId: "project-2" })])
        expect(await store.createGroup(group, 10)).toBe("created");
      expect(await store.group(pairs.uuid)).toEqual({ ...pairs, members: [] });
      const listed = async (projectId: string | null, limit = 10, offset = 0) =>
        (await store.groups({ projectId, limit, offset })).map((group) => group.name);
      expect(await listed("project-1")).toEqual(["group 1", "group 2"]);
      expect(await listed(null)).toEqual(["group 1", "group 2", "group 3"]);
      expect(await listed(null, 1, 1)).toEqual(["group 2"]);
      expect(await store.group(groupId(9))).toBeNull();
      expect([await store.countGroups("project-1"), await store.countGroups("none")]).toEqual([2, 0]);
      expect(await store.group("no uuid")).toBeNull();
    });

    test("refuses a project's group beyond the limit, however many are created at once", async () => {
      const { store } = subject;
      const made = await Promise.all([1, 2, 3, 4, 5].map((group) => store.createGroup(newGroup(group), 3)));
      expect(made.filter((outcome) => outcome === "created")).toHaveLength(3);
      expect(await store.createGroup(newGroup(6, { projectId: "project-2" }), 3)).toBe("created");
    });

    test("deletes a group with its memberships", async () => {
      const { store } = subject;
      await store.createGroup(newGroup(1), 10);
      await store.addMembers(groupId(1), [serverId(1)], 10);
      expect(await store.deleteGroup(groupId(1))).toBe(true);
      expect(await store.deleteGroup(groupId(1))).toBe(false);
      expect(await store.deleteGroup("no uuid")).toBe(false);
      expect(await store.addMembers(groupId(1), [serverId(1)], 10)).toBe("unknown");
    });

    test("shows the accepted servers that are not deleted as members", async () => {
      const { store, requests } = subject;
      await store.createGroup(newGroup(1), 10);
      expect(await store.addMembers(groupId(1), [serverId(2), serverId(1), serverId(3)], 10)).toBe("added");
      expect(await membersOf(1)).toEqual([]);
      await accept(1, 2, 3);
      expect(await membersOf(1)).toEqual([serverId(1), serverId(2), serverId(3)]);
      await requests.cancel(serverId(2), "req-2");
      await requests.failRequests([{ serverUuid: serverId(3), cell: null, fault: "no host" }]);
      expect(await membersOf(1)).toEqual([serverId(1), serverId(3)]);
    });

    test("refuses all members of a call beyond the limit, however many are added at once; deleted ones do not count", async () => {
      const { store, requests } = subject;
      await store.createGroup(newGroup(1), 10);
      const added = await Promise.all(
        [1, 2, 3, 4].map((server) => store.addMembers(groupId(1), [serverId(server)], 3)),
      );
      expect(added.toSorted()).toEqual(["added", "added", "added", "too-many"]);
      await accept(1, 2, 3, 4);
      expect(await store.addMembers(groupId(1), [serverId(5), serverId(6)], 3)).toBe("too-many");
      const [first] = (await membersOf(1)) ?? [];
      await requests.cancel(String(first), "req");
      expect(await store.addMembers(groupId(1), [serverId(5), serverId(6)], 4)).toBe("added");
      expect(await store.addMembers(groupId(1), [serverId(5), serverId(6)], 4)).toBe("added");
    });

    test("pins a group to the cell of its first server, until that server is given up", async () => {
      const { store, requests } = subject;
      await store.createGroup(newGroup(1), 10);
      await store.addMembers(groupId(1), [serverId(1), serverId(2)], 10);
      await accept(1, 2);
      const pin = (server: number, cell: string) =>
        store.pinCell({ groupUuid: groupId(1), serverUuid: serverId(server), cell });
      expect(await pin(1, "a")).toEqual({ kind: "pinned" });
      expect(await pin(1, "b")).toEqual({ kind: "pinned" });
      expect(await pin(2, "a")).toEqual({ kind: "elsewhere", cell: "b", servers: [serverId(1)] });
      expect(await pin(2, "b")).toEqual({ kind: "pinned" });
      expect(await pin(1, "a")).toEqual({ kind: "elsewhere", cell: "b", servers: [serverId(2)] });
      await requests.failRequests([{ serverUuid: serverId(2), cell: null, fault: "no host" }]);
      expect(await pin(1, "a")).toEqual({ kind: "pinned" });
      expect(await store.pinCell({ groupUuid: groupId(9), serverUuid: serverId(1), cell: "c" })).toEqual({
        kind: "pinned",
      });
    });

    test("a server that ended in its pinned cell no longer pins its group", async () => {
      const { store } = subject;
      await store.createGroup(newGroup(1), 10);
      await store.addMembers(groupId(1), [1, 2, 3].map(serverId), 10);
      await accept(1, 2, 3);
      const pin = (server: number, cell: string) =>
        store.pinCell({ groupUuid: groupId(1), serverUuid: serverId(server), cell });
      await pin(1, "a");
      await pin(2, "a");
      await store.unpinServers(groupId(1), [serverId(1)], "b");
      await store.unpinServers(groupId(1), [serverId(1)], "a");
      expect(await pin(3, "b")).toEqual({ kind: "elsewhere", cell: "a", servers: [serverId(2)] });
      await store.unpinServers(groupId(1), [serverId(2), serverId(9)], "a");
      expect([await pin(3, "b"), (await pin(1, "a")).kind]).toEqual([{ kind: "pinned" }, "elsewhere"]);
    });

    test("when schedulers pin one group to different cells at once, one cell wins", async () => {
      const { store } = subject;
      const servers = Array.from({ length: 8 }, (_, index) => index + 1);
      await store.createGroup(newGroup(1), 10);
      await store.addMembers(groupId(1), servers.map(serverId), 10);
      await accept(...servers);
      const pins = await Promise.all(
        servers.map((server) =>
          store.pinCell({ groupUuid: groupId(1), serverUuid: serverId(server), cell: `cell-${server % 4}` }),
        ),
      );
      const cells = pins.map((pin, at) => (pin.kind === "pinned" ? `cell-${servers[at]! % 4}` : pin.cell));
      expect(new Set(cells).size).toBe(1);
    });
  });
}
