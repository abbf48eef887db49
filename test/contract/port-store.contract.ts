import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { PortStore } from "../../core/stores/api/port-store.ts";
import type { PortRecord } from "../../core/tasks/port-record.ts";

function port(values: Partial<PortRecord> = {}): PortRecord {
  return {
    id: randomUUID(),
    projectId: "p",
    networkId: randomUUID(),
    name: "nic",
    groups: [{ id: "g", resources: { NET_BW_EGR_KILOBIT_PER_SEC: 1000 }, required: ["CUSTOM_PHYSNET_A"] }],
    createdAtMs: 1_700_000_000_000,
    binding: null,
    ...values,
  };
}

/** The guarantees of both implementations of the ports' store. */
export function portStoreContract(name: string, makeStore: () => Promise<PortStore>): void {
  describe(`ports in ${name}`, () => {
    let store: PortStore;
    beforeEach(async () => {
      store = await makeStore();
    });

    test("a port is returned as it was created, and an id is used once", async () => {
      const one = port();
      expect(await store.createPort(one)).toBe("created");
      expect(await store.createPort(port({ id: one.id }))).toBe("id-taken");
      expect(await store.ports([one.id, one.id, randomUUID(), "no uuid"])).toEqual([one]);
    });

    test("lists a project's ports or all ports, oldest first", async () => {
      const [late, early, other] = [
        port({ createdAtMs: 3 }),
        port({ createdAtMs: 1 }),
        port({ projectId: "q", createdAtMs: 2 }),
      ];
      for (const one of [late, early, other]) await store.createPort(one!);
      expect(await store.listPorts({ projectId: "p", limit: 10 })).toEqual([early, late]);
      expect(await store.listPorts({ projectId: null, limit: 2 })).toEqual([early, other]);
    });

    test("a port belongs to one server at a time, and of two concurrent calls one gets it", async () => {
      const one = port();
      await store.createPort(one);
      const [some, other] = [randomUUID(), randomUUID()];
      const bound = await Promise.all(
        [some, other].map((server) => store.bindPorts([one.id, randomUUID()], server, [])),
      );
      expect(bound.flat()).toEqual([{ id: one.id, atMs: expect.any(Number), wasOwn: false }]);
      const [winner, loser] = bound[0]?.length === 1 ? [some, other] : [other, some];
      const first = { serverUuid: winner, atMs: bound.flat()[0]?.atMs };
      expect((await store.ports([one.id]))[0]?.binding).toEqual({ ...first, ageMs: expect.any(Number) });
      expect(await store.bindPorts([one.id], winner, [])).toMatchObject([{ id: one.id, wasOwn: true }]);
      await store.unbindPorts([one.id], loser);
      expect(await store.bindPorts([one.id], loser, [randomUUID()])).toEqual([]);
      expect(await store.bindPorts([one.id], loser, [winner])).toMatchObject([{ id: one.id, wasOwn: false }]);
      await store.unbindPorts([one.id], loser);
      expect(await store.ports([one.id])).toEqual([one]);
    });

    test("a port is not released by a caller with an older binding", async () => {
      const one = port();
      await store.createPort(one);
      const server = randomUUID();
      const bind = async () => (await store.bindPorts([one.id], server, []))[0];
      const [before, since] = [await bind(), await bind()];
      await store.unbindPorts([one.id], server, before?.atMs);
      expect((await store.ports([one.id]))[0]?.binding).toMatchObject({ serverUuid: server, atMs: since?.atMs });
      await store.unbindPorts([one.id], server, since?.atMs);
      expect(await store.ports([one.id])).toEqual([one]);
    });

    test("a port is deleted once", async () => {
      const one = port({ groups: [] });
      await store.createPort(one);
      expect(await store.deletePort(one.id)).toBe(true);
      expect(await store.deletePort(one.id)).toBe(false);
      expect(await store.deletePort("no uuid")).toBe(false);
      expect(await store.ports([one.id])).toEqual([]);
    });
  });
}
