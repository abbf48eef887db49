import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { ApiStore } from "../../core/stores/api/api-store.ts";
import type { PortNoteStore } from "../../core/stores/api/port-note-store.ts";
import { goneFrom, serverSpec } from "./cell-fixtures.ts";

/** The notes beside the requests of their servers. */
export interface PortNoteStores {
  readonly store: PortNoteStore;
  readonly requests: Pick<ApiStore, "accept" | "cancel" | "markDeleted">;
}

const HOUR_MS = 3_600_000;

/** The guarantees of both implementations of the notes' store. */
export function portNoteStoreContract(name: string, makeStores: () => Promise<PortNoteStores>): void {
  describe(`notes of servers with ports in Neutron, in ${name}`, () => {
    let store: PortNoteStore;
    let requests: PortNoteStores["requests"];
    beforeEach(async () => {
      ({ store, requests } = await makeStores());
    });

    const openOne = async (serverUuid: string, keptPorts: readonly string[] = []) => {
      const [opened] = await store.openNotes([{ serverUuid, keptPorts }]);
      if (opened === undefined) throw new Error("no note was opened");
      return opened;
    };
    const dueAfter = async (openMs: number) => (await store.dueNotes(openMs, null, 10)).map(({ id }) => id);

    test("a note is opened, is due when it has been open for long enough, and is settled", async () => {
      const server = randomUUID();
      const opened = await openOne(server);
      expect(opened).toEqual({ serverUuid: server, version: opened.version, wasOpen: false });
      expect(await dueAfter(HOUR_MS)).toEqual([]);
      expect(await dueAfter(-HOUR_MS)).toEqual([server]);
      await store.settleNotes([opened]);
      expect(await dueAfter(-HOUR_MS)).toEqual([]);
      expect(await store.notes([server, randomUUID(), "no uuid"])).toMatchObject([{ id: server, keptPorts: [] }]);
      expect((await openOne(server)).wasOpen).toBe(false);
    });

    test("the ports that users made are kept, those of earlier calls too", async () => {
      const [server, one, two] = [randomUUID(), randomUUID(), randomUUID()];
      await openOne(server, [one]);
      await openOne(server, [two, one]);
      await openOne(server);
      const [note] = await store.notes([server]);
      expect(note?.keptPorts.toSorted()).toEqual([one, two].toSorted());
    });

    test("the ports that Neutron has deleted are noted until the note is settled", async () => {
      const [server, one, two] = [randomUUID(), randomUUID(), randomUUID()];
      const deleted = async () => (await store.notes([server]))[0]?.deletedPorts.toSorted();
      const first = await store.openNotes([{ serverUuid: server, keptPorts: [], deletedPorts: [one] }]);
      const second = await store.openNotes([{ serverUuid: server, keptPorts: [], deletedPorts: [one, two] }]);
      const opened = await openOne(server);
      for (const earlier of [first, second]) await store.settleNotes(earlier);
      const [due] = await store.dueNotes(-HOUR_MS, null, 10);
      expect(due?.deletedPorts.toSorted()).toEqual([one, two].toSorted());
      await store.settleNotes([opened]);
      expect(await deleted()).toEqual([]);
      await openOne(server);
      expect(await deleted()).toEqual([]);
    });

    test("a call that opens a note after another one is told, and neither settles nor removes it for the other", async () => {
      const server = randomUUID();
      const first = await openOne(server);
      const second = await openOne(server);
      expect(second).toMatchObject({ wasOpen: true });
      expect(second.version).toBeGreaterThan(first.version);
      await store.settleNotes([first]);
      await store.removeNotes([first]);
      expect(await dueAfter(-HOUR_MS)).toEqual([server]);
      await store.removeNotes([second]);
      expect(await store.notes([server])).toEqual([]);
    });

    test("the notes of servers that are gone are due at once, once", async () => {
      const [ended, other] = [randomUUID(), randomUUID()];
      const before = await openOne(ended);
      await store.settleNotes([before, await openOne(other)]);
      await store.endServers([ended, randomUUID(), "no uuid"]);
      expect(await dueAfter(HOUR_MS)).toEqual([ended]);
      await store.settleNotes([before]);
      const [due] = await store.dueNotes(HOUR_MS, null, 10);
      expect(due?.version).toBeGreaterThan(before.version);
      await store.endServers([ended]);
      expect(await store.dueNotes(HOUR_MS, null, 10)).toEqual([due]);
    });

    test("a note says how long ago a call opened it, until it is settled, also when its server is gone", async () => {
      const [settled, open] = [randomUUID(), randomUUID()];
      await store.settleNotes([await openOne(settled)]);
      await openOne(open);
      await store.endServers([settled, open]);
      const due = await store.dueNotes(HOUR_MS, null, 10);
      const agoOf = (server: string) => due.find(({ id }) => id === server)?.calledAgoMs;
      expect(agoOf(settled)).toBeNull();
      expect(agoOf(open)).toBeGreaterThanOrEqual(0);
      expect(agoOf(open)).toBeLessThan(HOUR_MS);
    });

    test("after a failure, settled notes are due at once, and those of calls at work after their time", async () => {
      const [settled, open] = [randomUUID(), randomUUID()];
      await store.settleNotes([await openOne(settled)]);
      const opened = await openOne(open);
      await store.failServers([settled, open, randomUUID(), "no uuid"]);
      expect(await dueAfter(HOUR_MS)).toEqual([settled]);
      // The call began before the failure, so only a comparison can settle the note now.
      await store.settleNotes([opened]);
      expect((await dueAfter(-HOUR_MS)).toSorted()).toEqual([settled, open].toSorted());
      const [due] = await store.dueNotes(HOUR_MS, null, 10);
      await store.failServers([settled]);
      expect(await store.dueNotes(HOUR_MS, null, 10)).toEqual([due]);
      await store.endServers([open]);
      expect((await dueAfter(HOUR_MS)).toSorted()).toEqual([settled, open].toSorted());
    });

    test("the sweep finds servers that the API database shows as deleted", async () => {
      const [living, deleted] = [1, 2].map((server) => serverSpec(server).uuid) as [string, string];
      const unknown = randomUUID();
      await requests.accept([serverSpec(1), serverSpec(2)]);
      const opened = await Promise.all([living, deleted, unknown].map((server) => openOne(server)));
      await store.settleNotes(opened);
      expect(await store.sweepNotes(null, 10)).toBeNull();
      expect(await dueAfter(HOUR_MS)).toEqual([]);
      await requests.cancel(deleted, "req-1");
      await requests.markDeleted(goneFrom(null, [deleted]));
      await store.sweepNotes(null, 10);
      const [due] = await store.dueNotes(HOUR_MS, null, 10);
      expect(due).toMatchObject({ id: deleted });
      await store.sweepNotes(null, 10);
      expect(await store.dueNotes(HOUR_MS, null, 10)).toEqual([due]);
    });

    test("the sweep goes through the servers page by page", async () => {
      const servers = [1, 2, 3, 4].map((server) => serverSpec(server).uuid).toSorted();
      await requests.accept([1, 2, 3, 4].map((server) => serverSpec(server)));
      await store.settleNotes(await store.openNotes(servers.map((serverUuid) => ({ serverUuid, keptPorts: [] }))));
      for (const server of servers) await requests.cancel(server, "req-1");
      await requests.markDeleted(goneFrom(null, servers));
      expect(await store.sweepNotes(null, 3)).toBe(servers[2]);
      expect(await dueAfter(HOUR_MS)).toEqual(servers.slice(0, 3));
      expect(await store.sweepNotes(servers[2]!, 3)).toBeNull();
      expect(await dueAfter(HOUR_MS)).toEqual(servers);
    });

    test("due notes are listed page by page", async () => {
      const servers = Array.from({ length: 5 }, () => randomUUID()).toSorted();
      await store.openNotes(servers.map((serverUuid) => ({ serverUuid, keptPorts: [] })));
      const idsAfter = async (after: string | null) => (await store.dueNotes(-HOUR_MS, after, 2)).map(({ id }) => id);
      expect(await idsAfter(null)).toEqual(servers.slice(0, 2));
      expect(await idsAfter(servers[1]!)).toEqual(servers.slice(2, 4));
      expect(await idsAfter(servers[3]!)).toEqual(servers.slice(4));
    });
  });
}
