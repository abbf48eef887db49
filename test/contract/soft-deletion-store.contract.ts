import { beforeEach, describe, expect, test } from "vitest";
import type { ApiStore } from "../../core/stores/api/api-store.ts";
import { amountsOf, NO_SERVERS, type QuotaLimits } from "../../core/stores/api/quota-limits.ts";
import type { QuotaStore } from "../../core/stores/api/quota-store.ts";
import type { SoftDeletion, SoftDeletionStore } from "../../core/stores/api/soft-deletion-store.ts";
import { serverId, serverSpec } from "./cell-fixtures.ts";
import { UNLIMITED } from "./quota-store.contract.ts";

export interface SoftDeletionSubject {
  /** Two stores of one database; with Postgres each has connections of its own. */
  readonly stores: readonly [SoftDeletionStore, SoftDeletionStore];
  readonly requests: ApiStore;
  readonly quotas: QuotaStore;
  /** Lets time pass for the store's own clock. */
  pass(ms: number): Promise<void>;
}

const ANN = { requestId: "req-1", userId: "ann", projectId: "p" };
const HOUR_MS = 3_600_000;

/** The guarantees of both implementations of the store of soft deletions. */
export function softDeletionStoreContract(name: string, makeSubject: () => Promise<SoftDeletionSubject>): void {
  describe(`the store of soft deletions in ${name}`, () => {
    let subject: SoftDeletionSubject;
    let store: SoftDeletionStore;
    let requests: ApiStore;
    beforeEach(async () => {
      subject = await makeSubject();
      [store] = subject.stores;
      requests = subject.requests;
      await requests.accept([1, 2, 3].map((number) => serverSpec(number, { projectId: "p", userId: "ann" })));
      for (const number of [1, 2]) await requests.assignCells([{ serverUuid: serverId(number), from: null, to: "c" }]);
    });
    const used = async () => (await subject.quotas.usage("p")).ofProject.instances;
    const listed = async () =>
      (await requests.listRequests({ projectId: "p", marker: null, limit: 10 })).map(({ serverUuid }) => serverUuid);
    const kept = async (projectId: string | null) => (await store.softlyDeleted(projectId, 10)).map(({ uuid }) => uuid);
    const remove = async (number: number): Promise<SoftDeletion> => {
      const deletion = await store.deleteSoftly(serverId(number), ANN);
      if (deletion === null) throw new Error("not deleted");
      return deletion;
    };
    const restore = (number: number, instances = -1, of = store) =>
      of.restore(serverId(number), { askedBy: ANN, defaults: { ...UNLIMITED, instances } });

    test("a server that is deleted softly is neither listed nor counted, from then on", async () => {
      expect(await remove(1)).toMatchObject({ aim: "deleted", version: 1, tries: 0, askedBy: ANN });
      expect((await listed()).toSorted()).toEqual([serverId(2), serverId(3)]);
      expect(await used()).toBe(2);
      expect((await requests.requests([serverId(1)]))[0]).toMatchObject({ state: "dispatched", softlyDeleted: true });
      expect(await kept("p")).toEqual([serverId(1)]);
      expect(await kept("q")).toEqual([]);
      expect(await kept(null)).toEqual([serverId(1)]);
      const [record] = await requests.requests([serverId(1)]);
      expect(await store.softlyDeleted("p", 10)).toEqual([{ uuid: serverId(1), createdAtMs: record?.createdAtMs }]);
    });

    test("a server that is in no cell, unknown or deleted already is not deleted softly", async () => {
      await remove(1);
      await requests.cancel(serverId(2), "req");
      for (const number of [1, 2, 3, 4]) expect(await store.deleteSoftly(serverId(number), ANN)).toBeNull();
      expect(await used()).toBe(1);
    });

    test("a restored server is listed and counted again, and is forgotten when its cell has restored it", async () => {
      await remove(1);
      const outcome = await restore(1);
      expect(outcome).toMatchObject({ kind: "restoring", deletion: { aim: "restored", version: 2 } });
      expect(await listed()).toContain(serverId(1));
      expect(await used()).toBe(3);
      expect((await restore(1)).kind).toBe("not-deleted");
      await store.settle({ serverUuid: serverId(1), version: 1 });
      expect(await store.softDeletion(serverId(1))).toMatchObject({ aim: "restored" });
      await store.settle({ serverUuid: serverId(1), version: 2 });
      expect(await store.softDeletion(serverId(1))).toBeNull();
      expect(await store.due(0, 10)).toEqual([]);
    });

    test("a server that exceeds a quota by now is not restored", async () => {
      await remove(1);
      expect(await restore(1, 2)).toMatchObject({ kind: "over-quota", excess: { overs: ["instances"] } });
      expect(await used()).toBe(2);
      expect(await listed()).not.toContain(serverId(1));
      expect((await restore(1, 3)).kind).toBe("restoring");
    });

    test("limits that another service states hold alone for a restore", async () => {
      await remove(1);
      const none = { ...UNLIMITED, instances: 0 };
      const stated = (defaults: QuotaLimits, limits: QuotaLimits) =>
        store.restore(serverId(1), { askedBy: ANN, defaults, stated: limits });
      expect((await stated(UNLIMITED, none)).kind).toBe("over-quota");
      expect((await stated(none, UNLIMITED)).kind).toBe("restoring");
    });

    test("a server that exceeds a limit of a resource class by now is not restored, and is counted again by class when it is", async () => {
      await remove(1);
      const restoreWithin = (limit: number) =>
        store.restore(serverId(1), {
          ...{ askedBy: ANN, defaults: UNLIMITED },
          stated: { ...UNLIMITED, classes: new Map([["DISK_GB", limit]]) },
        });
      expect(await restoreWithin(2)).toMatchObject({ excess: { classes: [{ name: "DISK_GB", limit: 2, used: 2 }] } });
      expect((await restoreWithin(3)).kind).toBe("restoring");
      await remove(1);
      expect((await restoreWithin(3)).kind).toBe("restoring");
      expect((await subject.quotas.usage("p", { withClasses: true })).ofProject.classes?.get("DISK_GB")).toBe(3);
    });

    test("of restores at the same time, no more succeed than the quota has room for", async () => {
      await Promise.all([remove(1), remove(2)]);
      const outcomes = await Promise.all([restore(1, 2), restore(2, 2, subject.stores[1])]);
      expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(["over-quota", "restoring"]);
      expect(await used()).toBe(2);
    });

    test("hands out what is not settled, later after each try, and not to two at a time", async () => {
      const deletion = await remove(1);
      expect(await store.due(60_000, 10)).toEqual([]);
      await subject.pass(60_000);
      const taken = await Promise.all([store.due(60_000, 10), subject.stores[1].due(60_000, 10)]);
      expect(taken.flat()).toEqual([deletion]);
      expect(await store.noteTry(deletion)).toBe(true);
      await subject.pass(90_000);
      expect(await store.due(60_000, 10)).toEqual([]);
      await subject.pass(30_000);
      expect(await store.due(60_000, 10)).toEqual([{ ...deletion, tries: 1 }]);
      await store.settle(deletion);
      await subject.pass(HOUR_MS);
      expect(await store.due(60_000, 10)).toEqual([]);
      expect(await store.softDeletion(serverId(1))).toMatchObject({ aim: "deleted" });
    });

    test("a try for a former aim is not counted", async () => {
      const former = await remove(1);
      await restore(1);
      expect(await store.noteTry(former)).toBe(false);
    });

    test("a server that could not be restored is deleted softly from then on, and not counted", async () => {
      const former = await remove(1);
      await subject.pass(HOUR_MS);
      const outcome = await restore(1);
      if (outcome.kind !== "restoring") throw new Error(outcome.kind);
      await store.abandonRestore(former);
      expect(await used()).toBe(3);
      await store.abandonRestore(outcome.deletion);
      await store.abandonRestore(outcome.deletion);
      expect(await used()).toBe(2);
      expect(await kept("p")).toEqual([serverId(1)]);
      expect(await store.reclaim({ olderThanMs: HOUR_MS, limit: 10 })).toBe(0);
      // The cell is asked once more, because an operation that restores the server may still be on its way there.
      expect(await store.due(1_000, 10)).toEqual([]);
      await subject.pass(1_000);
      expect(await store.due(1_000, 10)).toMatchObject([
        { serverUuid: serverId(1), aim: "deleted", version: 3, tries: 0 },
      ]);
      expect((await restore(1)).kind).toBe("restoring");
    });

    test("a resize that is settled while its server is deleted softly is settled after the server is restored", async () => {
      const cores = async () => (await subject.quotas.usage("p")).ofProject.cores;
      const before = await cores();
      const [record] = await requests.requests([serverId(1)]);
      if (record === undefined) throw new Error("no request");
      const amounts = amountsOf(record.spec.flavor);
      const larger = { ...amounts, cores: amounts.cores + 2 };
      expect(await subject.quotas.chargeResize({ serverUuid: serverId(1), amounts: larger }, UNLIMITED)).toBeNull();
      expect(await cores()).toBe(before + 2);
      const [charged] = await subject.quotas.chargedResizes(0, 10);
      if (charged === undefined) throw new Error("the resize is not noted");
      await remove(1);
      await subject.quotas.settleResize(charged, amounts);
      expect((await restore(1)).kind).toBe("restoring");
      expect(await cores()).toBe(before + 2);
      for (const again of await subject.quotas.chargedResizes(0, 10)) await subject.quotas.settleResize(again, amounts);
      expect(await cores()).toBe(before);
      expect(await subject.quotas.chargedResizes(0, 10)).toEqual([]);
    });

    test("a resize of a server that is deleted for good while it is deleted softly is forgotten", async () => {
      const amounts = { instances: 1, cores: 8, ram: 8_192 };
      await subject.quotas.chargeResize({ serverUuid: serverId(1), amounts }, UNLIMITED);
      await remove(1);
      await requests.cancel(serverId(1), "req");
      const charged = await subject.quotas.chargedResizes(0, 10);
      for (const resize of charged) await subject.quotas.settleResize(resize, NO_SERVERS);
      expect(await subject.quotas.chargedResizes(0, 10)).toEqual([]);
      expect(await used()).toBe(2);
    });

    test("what nobody has restored in time is deleted for good, and can no longer be restored", async () => {
      await remove(1);
      await subject.pass(HOUR_MS);
      await remove(2);
      expect(await store.reclaim({ olderThanMs: HOUR_MS, limit: 10 })).toBe(1);
      expect(await store.due(1_000, 10)).toMatchObject([{ serverUuid: serverId(1), aim: "reclaimed", version: 2 }]);
      expect((await restore(1)).kind).toBe("not-deleted");
      expect((await restore(2)).kind).toBe("restoring");
      expect(await store.reclaim({ serverUuid: serverId(1), version: 2 })).toBe(0);
      expect(await used()).toBe(2);
    });

    test("a server is either restored or reclaimed when both are asked for at once", async () => {
      await remove(1);
      await subject.pass(HOUR_MS);
      const [restored, reclaimed] = await Promise.all([
        restore(1, -1, subject.stores[1]),
        store.reclaim({ olderThanMs: HOUR_MS, limit: 10 }),
      ]);
      expect(restored.kind === "restoring" ? 1 : 0).toBe(1 - reclaimed);
      expect(await used()).toBe(restored.kind === "restoring" ? 3 : 2);
    });

    test("a server that is deleted for good while it is deleted softly is given back once, and forgotten", async () => {
      await remove(1);
      expect(await requests.cancel(serverId(1), "req")).toMatchObject({ state: "cancelled", softlyDeleted: false });
      expect(await used()).toBe(2);
      expect(await store.softDeletion(serverId(1))).toBeNull();
      expect((await restore(1)).kind).toBe("not-deleted");
      await requests.cancel(serverId(2), "req");
      expect(await used()).toBe(1);
    });
  });
}
