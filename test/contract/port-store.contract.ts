import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { ApiStore } from "../../core/stores/api/api-store.ts";
import type { AddressPool, NewPort, PortQuery, PortStore } from "../../core/stores/api/port-store.ts";
import type { PortRecord } from "../../core/tasks/port-record.ts";
import { goneFrom, serverSpec } from "./cell-fixtures.ts";

function port(values: Partial<PortRecord> = {}): PortRecord {
  return {
    id: randomUUID(),
    projectId: "p",
    networkId: randomUUID(),
    name: "nic",
    address: null,
    endsWithServer: false,
    groups: [{ id: "g", resources: { NET_BW_EGR_KILOBIT_PER_SEC: 1000 }, required: ["CUSTOM_PHYSNET_A"] }],
    securityGroups: null,
    createdAtMs: 1_700_000_000_000,
    binding: null,
    ...values,
  };
}

/** The ports beside the requests of the servers that they are bound to. */
export interface PortStores {
  readonly store: PortStore;
  readonly requests: Pick<ApiStore, "accept" | "cancel" | "markDeleted">;
}

const POOL: AddressPool = { networkId: "net", first: "10.0.0.254", size: 6 };

function fresh(values: Partial<NewPort> = {}): NewPort {
  const {
    binding: _binding,
    securityGroups: _groups,
    ...record
  } = port({ networkId: POOL.networkId, endsWithServer: true });
  return { ...record, serverUuid: null, ...values };
}

/** The guarantees of both implementations of the ports' store. */
export function portStoreContract(name: string, makeStores: () => Promise<PortStores>): void {
  describe(`ports in ${name}`, () => {
    let store: PortStore;
    let requests: PortStores["requests"];
    beforeEach(async () => {
      ({ store, requests } = await makeStores());
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

    test("finds the ports of several servers at once", async () => {
      const [some, other] = [port(), port()];
      for (const one of [some, other, port()]) await store.createPort(one);
      const [first, second] = [randomUUID(), randomUUID()];
      await store.bindPorts([some.id], first, []);
      await store.bindPorts([other.id], second, []);
      const found = await store.portsOfServers([first, second, randomUUID(), "no uuid"]);
      expect(found.map(({ id }) => id).toSorted()).toEqual([some.id, other.id].toSorted());
      expect(found.map(({ binding }) => binding?.serverUuid).toSorted()).toEqual([first, second].toSorted());
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

    test("a port that a server has is not deleted as a free one", async () => {
      const one = port();
      await store.createPort(one);
      const server = randomUUID();
      await store.bindPorts([one.id], server, []);
      expect(await store.deleteFreePort(one.id)).toBe(false);
      expect((await store.ports([one.id]))[0]?.binding).toMatchObject({ serverUuid: server });
      await store.unbindPorts([one.id], server);
      expect([await store.deleteFreePort(one.id), await store.deleteFreePort(one.id)]).toEqual([true, false]);
      expect(await store.deleteFreePort("no uuid")).toBe(false);
    });

    test("a port's name can be changed, and nothing of an unknown port", async () => {
      const one = port();
      await store.createPort(one);
      expect(await store.renamePort(one.id, "other")).toBe(true);
      expect(await store.ports([one.id])).toEqual([{ ...one, name: "other" }]);
      expect([await store.renamePort(randomUUID(), "x"), await store.renamePort("no uuid", "x")]).toEqual([
        false,
        false,
      ]);
    });

    const addressesOf = async (ports: readonly NewPort[]) => {
      const outcome = await store.addPorts(ports, POOL);
      return outcome.kind === "added" ? outcome.ports.map(({ address }) => address) : outcome;
    };

    test("ports get the next free addresses, and a released address is given out last", async () => {
      const [first, second] = [fresh(), fresh({ serverUuid: randomUUID() })];
      const outcome = await store.addPorts([first, second], POOL);
      const { serverUuid: _server, ...unbound } = first;
      expect(outcome).toMatchObject({
        kind: "added",
        ports: [
          { ...unbound, address: "10.0.0.254", binding: null },
          { id: second.id, address: "10.0.0.255", binding: { serverUuid: second.serverUuid } },
        ],
      });
      expect(await store.ports([first.id])).toEqual([
        { ...unbound, securityGroups: null, address: "10.0.0.254", binding: null },
      ]);
      await store.deletePort(first.id);
      expect(await addressesOf([fresh(), fresh(), fresh()])).toEqual(["10.0.1.0", "10.0.1.1", "10.0.1.2"]);
      expect(await addressesOf([fresh(), fresh()])).toHaveLength(2);
      expect(await addressesOf([fresh()])).toEqual({ kind: "no-address" });
      await store.deletePort(second.id);
      expect(await addressesOf([fresh()])).toEqual(["10.0.0.255"]);
    });

    test("an address can be requested once: a second call for it is refused, and adds none of its ports", async () => {
      const server = randomUUID();
      expect(await addressesOf([fresh({ address: "10.0.1.0" }), fresh()])).toEqual(["10.0.1.0", "10.0.0.254"]);
      const taken = { kind: "address-taken", address: "10.0.1.0" };
      expect(await addressesOf([fresh({ serverUuid: server }), fresh({ address: "10.0.1.0" })])).toEqual(taken);
      expect(await store.listPorts({ projectId: null, limit: 10, serverUuid: server })).toEqual([]);
      const twice = { address: "10.0.1.1" };
      expect(await addressesOf([fresh(twice), fresh(twice)])).toEqual({ kind: "address-taken", address: "10.0.1.1" });
      // Other networks have addresses of their own.
      const other = await store.addPorts([fresh({ networkId: "other", address: "10.0.1.0" })], {
        ...POOL,
        networkId: "other",
      });
      expect(other.kind).toBe("added");
      const next = await addressesOf([fresh(), fresh(), fresh()]);
      expect(new Set([next].flat()).size).toBe(3);
      for (const used of ["10.0.1.0", "10.0.0.254"]) expect(next).not.toContain(used);
    });

    test("of many concurrent calls no two get one address, and a full network refuses the rest", async () => {
      const calls = [
        ...Array.from({ length: 4 }, () => [fresh(), fresh()]),
        ...Array.from({ length: 3 }, () => [fresh({ address: "10.0.1.2" })]),
      ];
      const outcomes = await Promise.all(calls.map((ports) => store.addPorts(ports, POOL)));
      const ports = await store.listPorts({ projectId: null, limit: 100 });
      const given = outcomes.flatMap((outcome) => (outcome.kind === "added" ? outcome.ports : []));
      expect(ports.map(({ id }) => id).sort()).toEqual(given.map(({ id }) => id).sort());
      const addresses = ports.map(({ address }) => address);
      expect(new Set(addresses).size).toBe(ports.length);
      // No two addresses stay free. One may, when a call got the address that it asked for.
      expect(ports.length).toBeGreaterThanOrEqual(POOL.size - 1);
    });

    test("lists the ports that have all of the given values", async () => {
      const server = randomUUID();
      const [one, other] = [fresh({ serverUuid: server, name: "a" }), fresh({ name: "a" })];
      await store.addPorts([one, other], POOL);
      await store.createPort(port({ name: "a" }));
      const idsOf = async (query: Partial<PortQuery>) =>
        (await store.listPorts({ projectId: "p", limit: 10, ...query })).map(({ id }) => id).sort();
      expect(await idsOf({ serverUuid: server })).toEqual([one.id]);
      expect(await idsOf({ networkId: POOL.networkId, name: "a" })).toEqual([one.id, other.id].sort());
      expect(await idsOf({ address: "10.0.0.255", id: other.id })).toEqual([other.id]);
      for (const nothing of [
        { address: "x" },
        { id: "x" },
        { serverUuid: "x" },
        { name: "b" },
        { serverUuid: server, name: "b" },
      ])
        expect(await idsOf(nothing)).toEqual([]);
    });

    test("the ports of a project that do not end with their server are counted, up to a limit", async () => {
      const own = [port(), port(), port()];
      for (const one of own) await store.createPort(one);
      await store.addPorts(
        [fresh({ serverUuid: randomUUID(), projectId: own[0]!.projectId, endsWithServer: true })],
        POOL,
      );
      const { projectId } = own[0]!;
      expect([await store.countOwned(projectId, 10), await store.countOwned(projectId, 2)]).toEqual([3, 2]);
      expect(await store.countOwned("nobody", 10)).toBe(0);
    });

    test("when a server ends, a port that was made for it is removed, and any other port is free again", async () => {
      const [server, other] = [serverSpec(1).uuid, serverSpec(2).uuid];
      await requests.accept([serverSpec(1), serverSpec(2)]);
      const [own, foreign] = [fresh({ serverUuid: server }), fresh({ serverUuid: other })];
      await store.addPorts([own, foreign], POOL);
      const lasting = port();
      await store.createPort(lasting);
      await store.bindPorts([lasting.id], server, []);
      await requests.cancel(server, "req-1");
      await requests.markDeleted(goneFrom(null, [server]));
      await store.endServers([server, "no uuid"]);
      await store.endServers([server]);
      expect(await store.ports([own.id, lasting.id])).toEqual([lasting]);
      expect(await store.ports([foreign.id])).toMatchObject([{ binding: { serverUuid: other } }]);
    });

    test("ports are not given up for a server that the API database shows as living, whoever says that it has ended", async () => {
      const [living, cancelled, unknown] = [serverSpec(1).uuid, serverSpec(2).uuid, randomUUID()];
      await requests.accept([serverSpec(1), serverSpec(2)]);
      await requests.cancel(cancelled, "req-1");
      const servers = [living, cancelled, unknown];
      await store.addPorts(
        servers.map((serverUuid) => fresh({ serverUuid })),
        POOL,
      );
      await store.endServers(servers);
      const left = await store.listPorts({ projectId: null, limit: 9 });
      // The unknown one was never accepted.
      expect(left.map(({ binding }) => binding?.serverUuid).sort()).toEqual([living, cancelled].sort());
    });

    test("the sweep ends the ports of deleted servers, and of those that nobody knows when they are old", async () => {
      const [living, deleted, unknown] = [1, 2, 3].map((server) => serverSpec(server).uuid) as [string, string, string];
      await requests.accept([serverSpec(1), serverSpec(2)]);
      const ports = [living, deleted, unknown].map((serverUuid) => fresh({ serverUuid }));
      await store.addPorts(ports, POOL);
      const left = async () =>
        (await store.listPorts({ projectId: null, limit: 9 })).map(({ binding }) => binding?.serverUuid);
      expect(await store.sweepPorts(600_000)).toBe(0);
      await requests.cancel(deleted, "req-1");
      await requests.markDeleted(goneFrom(null, [deleted]));
      expect(await store.sweepPorts(600_000)).toBe(1);
      expect((await left()).sort()).toEqual([living, unknown].sort());
      expect(await store.sweepPorts(-1_000)).toBe(1);
      expect(await left()).toEqual([living]);
    });
  });
}
