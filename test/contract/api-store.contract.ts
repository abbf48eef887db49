import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ApiStore, CellRecord, FlavorRecord } from "../../core/stores/api/api-store.ts";
import { arrivalContract } from "./api-store-arrivals.ts";
import { userChangesContract } from "./api-store-changes.ts";
import { requestListContract } from "./api-store-lists.ts";
import { goneFrom, serverId, serverSpec } from "./cell-fixtures.ts";

export interface ApiSubject {
  readonly store: ApiStore;
  close(): Promise<void>;
}

const cell = (name: string, changes: Partial<CellRecord> = {}): CellRecord => ({
  name,
  databaseUrl: `postgres://${name}`,
  natsUrl: null,
  disabled: false,
  ...changes,
});
const flavor = (id: string, changes: Partial<FlavorRecord> = {}): FlavorRecord => ({
  id,
  name: `flavor ${id}`,
  vcpus: 2,
  memoryMib: 2048,
  diskGib: 20,
  ephemeralGib: 0,
  swapMib: 0,
  extraSpecs: {},
  rxtxFactor: 1,
  isPublic: true,
  description: null,
  ...changes,
});

/** The guarantees of both implementations of the API tier's database. */
export function apiStoreContract(name: string, makeSubject: () => Promise<ApiSubject>): void {
  describe(`the API tier's store in ${name}`, () => {
    let subject: ApiSubject;
    let store: ApiStore;
    beforeEach(async () => {
      subject = await makeSubject();
      store = subject.store;
    });
    afterEach(() => subject.close());

    const accept = (...servers: readonly number[]): Promise<void> =>
      store.accept(servers.map((server) => serverSpec(server)));
    const stateOf = async (server: number) => {
      const [record] = await store.requests([serverId(server)]);
      return record && [record.state, record.cell];
    };
    const assign = async (server: number, from: string | null, to: string, assignment = 0) =>
      (await store.assignCells([{ serverUuid: serverId(server), from, to, assignment }]))[0];

    test("answers a ping", async () => {
      await store.ping();
    });

    test("answers an empty batch with nothing", async () => {
      await store.accept([]);
      await store.failRequests([]);
      await store.markDeleted(goneFrom("east", []));
      expect(await store.assignCells([])).toEqual([]);
      expect(await store.requests([])).toEqual([]);
    });

    test("cells are listed by name, and a second put changes them", async () => {
      await store.putCell(cell("west", { natsUrl: "nats://west" }));
      await store.putCell(cell("east"));
      await store.putCell(cell("east", { databaseUrl: "postgres://moved", disabled: true }));
      expect(await store.cells()).toEqual([
        cell("east", { databaseUrl: "postgres://moved", disabled: true }),
        cell("west", { natsUrl: "nats://west" }),
      ]);
    });

    describe("a flavor", () => {
      test("that is not public is for the projects that were given access, until they lose it or it is deleted", async () => {
        await store.createFlavor(flavor("1", { isPublic: false }));
        await store.createFlavor(flavor("2", { isPublic: false }));
        expect(await store.addFlavorProject("1", "b")).toBe("added");
        expect(await store.addFlavorProject("1", "a")).toBe("added");
        expect(await store.addFlavorProject("1", "a")).toBe("exists");
        expect(await store.addFlavorProject("9", "a")).toBe("unknown");
        expect(await store.flavorProjects("1")).toEqual(["a", "b"]);
        expect(await store.flavorProjects("2")).toEqual([]);
        expect(await store.flavorsOfProject("a")).toEqual(["1"]);
        expect(await store.removeFlavorProject("1", "a")).toBe(true);
        expect(await store.removeFlavorProject("1", "a")).toBe(false);
        await store.deleteFlavor("1");
        await store.createFlavor(flavor("1", { isPublic: false }));
        expect([await store.flavorProjects("1"), await store.flavorsOfProject("b")]).toEqual([[], []]);
      });

      test("gets another description, and is listed in the order of creation", async () => {
        for (const id of ["2", "1"]) await store.createFlavor(flavor(id));
        expect(await store.describeFlavor("2", "larger")).toBe(true);
        expect(await store.describeFlavor("9", "larger")).toBe(false);
        expect((await store.flavors("creation")).map(({ id, description }) => [id, description])).toEqual([
          ["2", "larger"],
          ["1", null],
        ]);
        await store.describeFlavor("2", null);
        expect((await store.flavor("2"))?.description).toBeNull();
      });

      test("has an id and a name that are unique", async () => {
        const tiny = flavor("1", { extraSpecs: { "resources:VCPU": "1" }, description: "small", swapMib: 5 });
        expect(await store.createFlavor(tiny)).toBe("created");
        expect(await store.createFlavor(flavor("1", { name: "another" }))).toBe("id-taken");
        expect(await store.createFlavor(flavor("2", { name: "flavor 1" }))).toBe("name-taken");
        expect(await store.createFlavor(flavor("10"))).toBe("created");
        expect(await store.flavor("1")).toEqual(tiny);
        expect(await store.flavor("2")).toBeNull();
        expect((await store.flavors()).map((one) => one.id)).toEqual(["1", "10"]);
      });

      test("can be deleted once, and its name is free again", async () => {
        await store.createFlavor(flavor("1"));
        expect(await store.deleteFlavor("1")).toBe(true);
        expect(await store.deleteFlavor("1")).toBe(false);
        expect(await store.createFlavor(flavor("2", { name: "flavor 1" }))).toBe("created");
      });

      test("gets its extra specs in one step each, even from concurrent callers", async () => {
        await store.createFlavor(flavor("1", { extraSpecs: { old: "1" } }));
        expect(await store.updateExtraSpecs("2", () => ({}))).toBeNull();
        const keys = Array.from({ length: 8 }, (_, index) => `key${index}`);
        await Promise.all(keys.map((key) => store.updateExtraSpecs("1", (specs) => ({ ...specs, [key]: "x" }))));
        const { old: _, ...rest } = (await store.flavor("1"))!.extraSpecs;
        expect(Object.keys(rest).sort()).toEqual(keys);
        expect(await store.updateExtraSpecs("1", () => ({ only: "this" }))).toEqual({ only: "this" });
        expect((await store.flavor("1"))?.extraSpecs).toEqual({ only: "this" });
      });
    });

    describe("a request", () => {
      test("is stored as it was accepted, and accepting it again changes nothing", async () => {
        await accept(1, 2);
        await assign(1, null, "east");
        await store.accept([serverSpec(1, { name: "another" })]);
        const [record] = await store.requests([serverId(1)]);
        expect(record).toEqual({
          serverUuid: serverId(1),
          state: "dispatched",
          cell: "east",
          assignment: 0,
          spec: serverSpec(1),
          changes: null,
          fault: null,
          cancellation: null,
          softlyDeleted: false,
          createdAtMs: serverSpec(1).createdAtMs,
          updatedAtMs: expect.any(Number),
        });
        const asked = [serverId(2), "nonsense", serverId(9), serverId(1)];
        expect((await store.requests(asked)).map((one) => one.serverUuid)).toEqual([serverId(2), serverId(1)]);
      });

      test("is assigned to a cell only from the cell that the caller expects", async () => {
        await accept(1);
        expect(await assign(1, "east", "west")).toEqual({ kind: "moved", cell: null, assignment: 0 });
        expect(await assign(1, null, "east")).toEqual({ kind: "assigned" });
        expect(await assign(1, null, "west")).toEqual({ kind: "moved", cell: "east", assignment: 0 });
        expect(await assign(1, "east", "east")).toEqual({ kind: "assigned" });
        expect(await assign(1, "east", "west")).toEqual({ kind: "assigned" });
        expect(await stateOf(1)).toEqual(["dispatched", "west"]);
        expect(await assign(9, null, "east")).toEqual({ kind: "ended" });
      });

      test("is assigned under the next number by each change of its cell, and only under the number that the caller expects", async () => {
        await accept(1);
        const steps = async (...cells: readonly (string | null)[]) => {
          for (const [at, to] of cells.slice(1).entries())
            await assign(1, cells[at] ?? null, to ?? "", Math.max(0, at - 1));
        };
        await steps(null, "east", "west", "east");
        expect(await store.requests([serverId(1)])).toMatchObject([{ cell: "east", assignment: 2 }]);
        // A slow scheduler still believes in the first assignment to the same cell.
        expect(await assign(1, "east", "north")).toEqual({ kind: "moved", cell: "east", assignment: 2 });
        await store.failRequests([{ serverUuid: serverId(1), cell: "east", fault: "of long ago" }]);
        expect(await stateOf(1)).toEqual(["dispatched", "east"]);
        expect(await assign(1, "east", "east", 2)).toEqual({ kind: "assigned" });
        const { found } = await store.placeable([serverId(1)], { specBytesMax: 10_000, pageBytesMax: 10_000 });
        expect(found).toMatchObject([{ cell: "east", assignment: 2 }]);
        await store.failRequests([{ serverUuid: serverId(1), cell: "east", assignment: 2, fault: "No valid host" }]);
        expect(await stateOf(1)).toEqual(["failed", "east"]);
      });

      test("is assigned in the order of the batch when the batch names it twice", async () => {
        await accept(1, 2);
        const assignment = (server: number, from: string | null, to: string) => ({
          serverUuid: serverId(server),
          from,
          to,
        });
        expect(
          await store.assignCells([
            assignment(1, null, "east"),
            assignment(1, null, "west"),
            assignment(2, null, "west"),
            assignment(1, "east", "north"),
          ]),
        ).toEqual([
          { kind: "assigned" },
          { kind: "moved", cell: "east", assignment: 0 },
          { kind: "assigned" },
          { kind: "assigned" },
        ]);
        expect(await stateOf(1)).toEqual(["dispatched", "north"]);
      });

      test("fails only in the cell that the caller expects, and only once", async () => {
        await accept(1, 2, 3);
        await assign(2, null, "east");
        const failure = (server: number, in_: string | null, fault: string) => ({
          serverUuid: serverId(server),
          cell: in_,
          fault,
        });
        await store.failRequests([
          failure(1, null, "No valid host"),
          failure(2, "west", "wrong cell"),
          failure(3, "east", "not there"),
          failure(9, null, "unknown"),
        ]);
        expect([await stateOf(1), await stateOf(2), await stateOf(3)]).toEqual([
          ["failed", null],
          ["dispatched", "east"],
          ["accepted", null],
        ]);
        await store.failRequests([failure(1, null, "again"), failure(2, "east", "used up")]);
        expect(await store.requests([serverId(1), serverId(2)])).toMatchObject([
          { fault: "No valid host" },
          { state: "failed", fault: "used up" },
        ]);
        expect(await assign(1, null, "east")).toEqual({ kind: "ended" });
      });

      test("is no longer placed once it is cancelled, and names the cell that must be notified", async () => {
        await accept(1, 2);
        await assign(2, null, "east");
        expect(await store.cancel(serverId(1), "req-a")).toMatchObject({ state: "cancelled", cell: null });
        const cancelled = await store.cancel(serverId(2), "req-b");
        expect(cancelled).toMatchObject({
          state: "cancelled",
          cell: "east",
          cancellation: { requestId: "req-b", atMs: expect.any(Number) },
        });
        expect(await store.cancel(serverId(2), "req-c")).toEqual(cancelled);
        expect(await assign(2, "east", "west")).toEqual({ kind: "ended" });
        await store.failRequests([{ serverUuid: serverId(2), cell: "east", fault: "late" }]);
        expect(await stateOf(2)).toEqual(["cancelled", "east"]);
        expect(await store.cancel(serverId(9), "req-d")).toBeNull();
        expect(await store.cancel("nonsense", "req-d")).toBeNull();
      });

      test("is deleted at once when it is cancelled after it failed", async () => {
        await accept(1);
        await store.failRequests([{ serverUuid: serverId(1), cell: null, fault: "No valid host" }]);
        expect(await store.cancel(serverId(1), "req-a")).toMatchObject({ state: "deleted" });
        expect(await store.cancel(serverId(1), "req-a")).toBeNull();
      });

      test("is deleted when its cell has confirmed the deletion, however often", async () => {
        await accept(1, 2, 3);
        await assign(2, null, "east");
        await store.cancel(serverId(2), "req-a");
        await store.cancel(serverId(3), "req-a");
        await store.markDeleted(goneFrom("east", [serverId(3), serverId(2), serverId(3), "nonsense", serverId(9)]));
        await store.markDeleted(goneFrom("east", [serverId(2)]));
        expect(await Promise.all([1, 2, 3].map(stateOf))).toEqual([
          ["accepted", null],
          ["deleted", "east"],
          ["deleted", null],
        ]);
        expect(await store.cancel(serverId(2), "req-b")).toBeNull();
      });

      test("is not deleted by the confirmation of a cell to which it is not assigned", async () => {
        await accept(1, 2);
        await assign(1, null, "east");
        await Promise.all([1, 2].map((server) => store.cancel(serverId(server), "req-a")));
        await store.markDeleted(goneFrom("west", [serverId(1)]));
        await store.markDeleted(goneFrom(null, [serverId(1)]));
        expect(await stateOf(1)).toEqual(["cancelled", "east"]);
        await store.markDeleted(goneFrom("east", [serverId(1)]));
        await store.markDeleted(goneFrom(null, [serverId(2)]));
        expect(await Promise.all([1, 2].map(stateOf))).toEqual([
          ["deleted", "east"],
          ["deleted", null],
        ]);
      });

      test("is deleted only by its own cell's confirmation when those of several cells arrive together", async () => {
        await accept(1, 2, 3);
        await assign(1, null, "east");
        await assign(2, null, "west");
        await Promise.all([1, 2, 3].map((server) => store.cancel(serverId(server), "req-a")));
        await store.markDeleted([
          ...goneFrom("west", [serverId(1), serverId(2)]),
          ...goneFrom(null, [serverId(1), serverId(3), serverId(3)]),
        ]);
        expect(await Promise.all([1, 2, 3].map(stateOf))).toEqual([
          ["cancelled", "east"],
          ["deleted", "west"],
          ["deleted", null],
        ]);
        await store.markDeleted([...goneFrom("west", [serverId(1)]), ...goneFrom("east", [serverId(1)])]);
        expect(await stateOf(1)).toEqual(["deleted", "east"]);
      });

      test("is not deleted by a cell's confirmation when no user asked for the delete", async () => {
        await accept(1, 2);
        await assign(2, null, "east");
        await store.markDeleted(goneFrom("east", [serverId(1), serverId(2)]));
        expect(await Promise.all([1, 2].map(stateOf))).toEqual([
          ["accepted", null],
          ["dispatched", "east"],
        ]);
      });
    });

    describe("many requests", () => {
      requestListContract(() => store);
      arrivalContract(() => store);
    });
    userChangesContract(() => store);

    describe("when several call at once", () => {
      const servers = Array.from({ length: 24 }, (_, index) => index + 1);

      test("four schedulers assign the same requests: each goes to one cell", async () => {
        await accept(...servers);
        const cells = ["c0", "c1", "c2", "c3"];
        const outcomes = await Promise.all(
          cells.map((to, index) => {
            const batch = servers.map((server) => ({ serverUuid: serverId(server), from: null, to }));
            return store.assignCells(index % 2 === 0 ? batch : batch.reverse());
          }),
        );
        for (const [at, server] of servers.entries()) {
          const [, home] = (await stateOf(server)) ?? [];
          const answers = outcomes.map((batch, index) => batch[index % 2 === 0 ? at : servers.length - 1 - at]);
          expect(answers).toEqual(
            cells.map((name) => (name === home ? { kind: "assigned" } : { kind: "moved", cell: home, assignment: 0 })),
          );
        }
      });

      test("a cancel against an assignment: either the cancel names the cell, or nothing was assigned", async () => {
        await accept(...servers);
        await Promise.all(
          servers.map(async (server) => {
            const [assigned, cancelled] = await Promise.all([
              assign(server, null, "east"),
              store.cancel(serverId(server), "req-a"),
            ]);
            expect([
              ["assigned", "east"],
              ["ended", null],
            ]).toContainEqual([assigned?.kind, cancelled?.cell]);
            expect(cancelled?.state).toBe("cancelled");
          }),
        );
      });

      test("sweeps, failures, repeats and deletes of the same requests end, and deleted requests stay deleted", async () => {
        await accept(...servers);
        await Promise.all(servers.map((server) => store.cancel(serverId(server), "req-a")));
        const failures = servers.map((server) => ({
          serverUuid: serverId(server),
          cell: null,
          fault: "No valid host",
        }));
        await Promise.all([
          store.markDeleted(goneFrom(null, servers.map(serverId))),
          store.failRequests([...failures].reverse()),
          store.stale(0, 24),
          store.stale(0, 24),
          store.accept(servers.map((server) => serverSpec(server)).reverse()),
          store.markDeleted(goneFrom(null, servers.map(serverId).reverse())),
        ]);
        const records = await store.requests(servers.map(serverId));
        expect(records.map((record) => record.state)).toEqual(servers.map(() => "deleted"));
      });
    });
  });
}
