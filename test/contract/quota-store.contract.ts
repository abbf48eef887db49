import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AcceptOutcome, ApiStore } from "../../core/stores/api/api-store.ts";
import { QUOTA_RESOURCES, type QuotaLimits, type ServerAmounts } from "../../core/stores/api/quota-limits.ts";
import type { QuotaStore, SeenCharge } from "../../core/stores/api/quota-store.ts";
import { bareSpec } from "../../core/tasks/server-spec.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { forEachBounded } from "../../runtime/for-each-bounded.ts";
import { serverId, serverSpec } from "./cell-fixtures.ts";

export interface QuotaSubject {
  readonly store: QuotaStore;
  /** Stores of the requests, in the same database; with Postgres each has connections of its own. */
  readonly requests: readonly [ApiStore, ApiStore];
  close(): Promise<void>;
}

/**
 * How many calls of a race are open at a time. Each of the two stores has this many connections, so a call never waits for one while others wait for
 * the lock of their project. A failed race ends only when its calls have ended, so that the next test finds none of their rows.
 */
export const AT_A_TIME = 20;

/** Limits that nothing reaches. */
export const UNLIMITED = Object.fromEntries(
  QUOTA_RESOURCES.map((resource) => [resource, -1]),
) as unknown as QuotaLimits;
const limitedTo = (limits: Partial<QuotaLimits>): QuotaLimits => ({ ...UNLIMITED, ...limits });
const amounts = (instances: number, cores: number, ram: number): ServerAmounts => ({ instances, cores, ram });

/** A server of project `p`, with one core and 512 MiB. */
const server = (number: number, over: Partial<ServerSpec> = {}) =>
  serverSpec(number, { projectId: "p", userId: "ann", ...over });

/** The guarantees of both implementations of the quotas' store. */
export function quotaStoreContract(name: string, makeSubject: () => Promise<QuotaSubject>): void {
  describe(`the quotas' store in ${name}`, () => {
    let subject: QuotaSubject;
    let store: QuotaStore;
    let requests: ApiStore;
    beforeEach(async () => {
      subject = await makeSubject();
      ({ store } = subject);
      [requests] = subject.requests;
    });
    afterEach(() => subject.close());
    const accept = async (calls: readonly (readonly ServerSpec[])[], quotas: QuotaLimits, of = requests) =>
      of.acceptWithin(calls, { openMax: null, quotas });
    const kinds = (outcomes: readonly AcceptOutcome[]) => outcomes.map(({ kind }) => kind);
    const used = async (project = "p") => (await store.usage(project)).ofProject;

    test("keeps limits of projects, of users and of classes, and forgets them", async () => {
      await store.setLimits({ projectId: "p", userId: null }, { cores: 4, ram: 512 });
      await store.setLimits({ projectId: "p", userId: null }, { cores: 5 });
      await store.setLimits({ projectId: "p", userId: "ann" }, { instances: 1 });
      await store.setLimits({ projectId: "q", userId: null }, { cores: 1 });
      await store.setClassLimits("default", { ram: 9 });
      await store.setClassLimits("gold", { ram: 99 });
      expect(await store.limits("p")).toEqual({
        byDefault: { ram: 9 },
        ofProject: { cores: 5, ram: 512 },
        ofUsers: new Map([["ann", { instances: 1 }]]),
      });
      expect(await store.classLimits("gold")).toEqual({ ram: 99 });
      expect(await store.classLimits("silver")).toEqual({});
      await store.forgetLimits({ projectId: "p", userId: "ann" });
      expect((await store.limits("p")).ofUsers).toEqual(new Map());
      await store.setLimits({ projectId: "p", userId: "bob" }, { instances: 1 });
      await store.forgetLimits({ projectId: "p", userId: null });
      expect(await store.limits("p")).toEqual({ byDefault: { ram: 9 }, ofProject: {}, ofUsers: new Map() });
      expect((await store.limits("q")).ofProject).toEqual({ cores: 1 });
    });

    test("counts the servers that live, by project and user, whether or not there are limits", async () => {
      await requests.accept([server(1), server(2, { userId: "bob" })]);
      await accept([[server(3)], [serverSpec(4, { projectId: "q" })]], UNLIMITED);
      expect(await store.usage("p")).toEqual({
        ofProject: amounts(3, 3, 1536),
        ofUsers: new Map([
          ["ann", amounts(2, 2, 1024)],
          ["bob", amounts(1, 1, 512)],
        ]),
      });
      expect((await store.usage("none")).ofProject).toEqual(amounts(0, 0, 0));
      await requests.failRequests([{ serverUuid: serverId(3), cell: null, fault: "no host" }]);
      expect(await used()).toEqual(amounts(3, 3, 1536));
      for (const number of [1, 3, 3]) await requests.cancel(serverId(number), "req");
      await requests.markDeleted([{ cell: null, serverUuid: serverId(1) }]);
      expect(await used()).toEqual(amounts(1, 1, 512));
    });

    test("refuses what exceeds the quota of the project, and says by how much", async () => {
      const quotas = limitedTo({ instances: 3, cores: 2, ram: 5_120 });
      const outcomes = await accept([[server(1)], [server(2), server(3)], [server(4)], [server(5)]], quotas);
      expect(kinds(outcomes)).toEqual(["accepted", "over-quota", "accepted", "over-quota"]);
      expect(outcomes[1]).toMatchObject({
        excess: { overs: ["cores"], used: amounts(1, 1, 512), limits: { cores: 2, instances: 3 }, fitting: 1 },
      });
      expect((await requests.requests([1, 2, 3, 4, 5].map(serverId))).map((one) => one.serverUuid)).toEqual(
        [1, 4].map(serverId),
      );
      await requests.cancel(serverId(1), "req");
      expect(kinds(await accept([[server(5)], [serverSpec(6, { projectId: "q" })]], quotas))).toEqual([
        "accepted",
        "accepted",
      ]);
    });

    test("a project's own limits come before those of the default class, and these before the installation's", async () => {
      await store.setClassLimits("default", { instances: 1 });
      expect(kinds(await accept([[server(1)], [server(2)]], UNLIMITED))).toEqual(["accepted", "over-quota"]);
      await store.setLimits({ projectId: "p", userId: null }, { instances: 2 });
      expect(kinds(await accept([[server(2)], [server(3)]], limitedTo({ instances: 0 })))).toEqual([
        "accepted",
        "over-quota",
      ]);
      await store.setLimits({ projectId: "p", userId: null }, { instances: -1 });
      expect(kinds(await accept([[server(3)]], limitedTo({ instances: 0 })))).toEqual(["accepted"]);
    });

    test("a user's limit counts beside the project's", async () => {
      await store.setLimits({ projectId: "p", userId: "ann" }, { instances: 1 });
      const outcomes = await accept([[server(1)], [server(2)], [server(3, { userId: "bob" })]], UNLIMITED);
      expect(kinds(outcomes)).toEqual(["accepted", "over-quota", "accepted"]);
      expect(outcomes[1]).toMatchObject({ excess: { overs: ["instances"], used: amounts(1, 1, 512), fitting: 0 } });
    });

    test("a call of which a UUID was closed is refused, and not counted", async () => {
      const quotas = limitedTo({ instances: 2 });
      await requests.accept([bareSpec(server(2).uuid)]);
      const calls = [[server(1), server(2)], [server(3)], [server(4), server(5)]];
      expect(kinds(await accept(calls, quotas))).toEqual(["closed", "accepted", "over-quota"]);
      expect(kinds(await accept(calls, quotas))).toEqual(["closed", "accepted", "over-quota"]);
      expect(await used()).toEqual(amounts(1, 1, 512));
    });

    test("a call whose answer was lost is accepted again, and counted once", async () => {
      const quotas = limitedTo({ instances: 2 });
      await accept([[server(1), server(2)]], quotas);
      expect(kinds(await accept([[server(1), server(2)], [server(3)]], quotas))).toEqual(["accepted", "over-quota"]);
      await requests.accept([server(1)]);
      expect(await used()).toEqual(amounts(2, 2, 1024));
    });

    test("500 creates at once through two apis for a quota of 300 end with exactly 300", async () => {
      const quotas = limitedTo({ instances: 300 });
      const outcomes = await forEachBounded([...Array(100).keys()], AT_A_TIME, (batch) =>
        accept(
          Array.from({ length: 5 }, (_, index) => [server(1 + batch * 5 + index)]),
          quotas,
          subject.requests[batch % 2],
        ),
      );
      expect(kinds(outcomes.flat()).filter((kind) => kind === "accepted")).toHaveLength(300);
      expect((await used()).instances).toBe(300);
    });

    test("creates that race with deletes leave a usage that agrees with the servers", async () => {
      const quotas = limitedTo({ instances: 20 });
      const living = new Set<number>();
      await forEachBounded([...Array(60).keys()], AT_A_TIME, async (index) => {
        const [outcome] = await accept([[server(index + 1)]], quotas, subject.requests[index % 2]);
        if (outcome?.kind !== "accepted") return;
        if (index % 3 === 0) living.add(index + 1);
        else await subject.requests[(index + 1) % 2]?.cancel(serverId(index + 1), "req");
      });
      expect(await used()).toEqual(amounts(living.size, living.size, living.size * 512));
    });

    describe("limits that another service states", () => {
      const stated = (instances: number, projects: readonly string[] = ["p"]) =>
        new Map(projects.map((project) => [project, limitedTo({ instances })]));
      const acceptStated = (
        calls: readonly (readonly ServerSpec[])[],
        limits: ReadonlyMap<string, QuotaLimits>,
        of = requests,
      ) => of.acceptWithin(calls, { openMax: null, quotas: UNLIMITED, stated: limits });

      test("hold alone: limits that operators set for projects, users and classes are not looked at", async () => {
        await store.setLimits({ projectId: "p", userId: null }, { instances: 0 });
        await store.setLimits({ projectId: "p", userId: "ann" }, { cores: 0 });
        await store.setClassLimits("default", { ram: 0 });
        const both = new Map([...stated(2), ["q", limitedTo({ instances: 0 })]]);
        const ofAnother = serverSpec(9, { projectId: "q" });
        expect(kinds(await acceptStated([[server(1)], [ofAnother], [server(2)], [server(3)]], both))).toEqual([
          ...["accepted", "over-quota", "accepted", "over-quota"],
        ]);
        const charge = { serverUuid: serverId(1), amounts: amounts(1, 4, 512) };
        expect(await store.chargeResize(charge, UNLIMITED, limitedTo({ cores: 4 }))).toMatchObject({
          overs: ["cores"],
        });
        expect(await store.chargeResize(charge, limitedTo({ cores: 0 }), limitedTo({ cores: 5 }))).toBeNull();
        expect(await used()).toEqual(amounts(2, 5, 1024));
      });

      test("are not exceeded by 60 creates at once through two apis", async () => {
        const outcomes = await forEachBounded([...Array(20).keys()], AT_A_TIME, (batch) =>
          acceptStated(
            [1, 2, 3].map((at) => [server(3 * batch + at)]),
            stated(35),
            subject.requests[batch % 2],
          ),
        );
        expect(kinds(outcomes.flat()).filter((kind) => kind === "accepted")).toHaveLength(35);
        expect((await used()).instances).toBe(35);
      });
    });

    test("a resize takes the difference, and gives it back when it has ended otherwise", async () => {
      await accept([[server(1)], [server(2)]], UNLIMITED);
      const quotas = limitedTo({ cores: 4, ram: 10_240 });
      const charge = { serverUuid: serverId(1), amounts: amounts(1, 4, 2_048) };
      expect(await store.chargeResize(charge, quotas)).toMatchObject({ overs: ["cores"], used: amounts(2, 2, 1024) });
      expect(await used()).toEqual(amounts(2, 2, 1024));
      expect(await store.chargedResizes(0, 10)).toEqual([]);
      expect(await store.chargeResize({ ...charge, amounts: amounts(1, 3, 256) }, quotas)).toBeNull();
      expect(await used()).toEqual(amounts(2, 4, 1024));
      expect(kinds(await accept([[server(3)]], quotas))).toEqual(["over-quota"]);
      expect(await store.chargedResizes(60_000, 10)).toEqual([]);
      const [note] = await store.chargedResizes(0, 10);
      expect(note).toEqual({ serverUuid: serverId(1), version: 1 });
      await store.settleResize({ serverUuid: serverId(1), version: 1 }, amounts(1, 1, 256));
      expect(await used()).toEqual(amounts(2, 2, 768));
      await store.settleResize({ serverUuid: serverId(1), version: 1 }, amounts(1, 9, 9_999));
      expect(await used()).toEqual(amounts(2, 2, 768));
      expect(await store.chargedResizes(0, 10)).toEqual([]);
    });

    test("a charge that was seen is settled while nobody has touched it, and is nobody's own when two calls have charged", async () => {
      await accept([[server(1)]], UNLIMITED);
      const charge = (cores: number) =>
        store.chargeResize({ serverUuid: serverId(1), amounts: amounts(1, cores, 512) }, UNLIMITED);
      const settle = async (seen: SeenCharge | null) => seen && store.settleResize(seen, amounts(1, 1, 512));
      expect([await store.soleCharge(serverId(1)), await store.soleCharge("x")]).toEqual([null, null]);
      await charge(2);
      const seen = await store.soleCharge(serverId(1));
      expect(seen).toMatchObject({ serverUuid: serverId(1), version: 1 });
      await settle(seen);
      expect((await used()).cores).toBe(1);
      // The next charge begins a note of its own.
      await charge(3);
      await settle(seen);
      expect((await used()).cores).toBe(3);
      const later = await store.soleCharge(serverId(1));
      await charge(4);
      expect(await store.soleCharge(serverId(1))).toBeNull();
      await settle(later);
      expect((await used()).cores).toBe(4);
    });

    test("a settlement does not undo a later charge, and a deleted server gives back all that it was charged", async () => {
      await accept([[server(1)]], UNLIMITED);
      for (const cores of [2, 3])
        await store.chargeResize({ serverUuid: serverId(1), amounts: amounts(1, cores, 512) }, UNLIMITED);
      await store.settleResize({ serverUuid: serverId(1), version: 1 }, amounts(1, 1, 512));
      expect(await used()).toEqual(amounts(1, 3, 512));
      await requests.cancel(serverId(1), "req");
      expect(await used()).toEqual(amounts(0, 0, 0));
      expect(await store.chargeResize({ serverUuid: serverId(1), amounts: amounts(1, 9, 9) }, UNLIMITED)).toBeNull();
      await store.settleResize({ serverUuid: serverId(1), version: 2 }, amounts(1, 1, 512));
      expect(await used()).toEqual(amounts(0, 0, 0));
      expect(await store.chargedResizes(0, 10)).toEqual([]);
    });

    test("two resizes at once that fit one by one do not both fit", async () => {
      await accept([[server(1)], [server(2)]], UNLIMITED);
      const charges = [1, 2].map((number) =>
        store.chargeResize({ serverUuid: serverId(number), amounts: amounts(1, 3, 512) }, limitedTo({ cores: 4 })),
      );
      expect((await Promise.all(charges)).filter((excess) => excess === null)).toHaveLength(1);
      expect((await used()).cores).toBe(4);
    });
  });
}
