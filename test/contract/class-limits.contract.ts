import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { countedAmounts } from "../../core/stores/api/counted-amounts.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { forEachBounded } from "../../runtime/for-each-bounded.ts";
import { serverId, serverSpec } from "./cell-fixtures.ts";
import { AT_A_TIME, type QuotaSubject, UNLIMITED } from "./quota-store.contract.ts";

const flavor = (diskGib: number, extraSpecs: Readonly<Record<string, string>> = {}) => ({
  ...{ id: "1", name: "f", vcpus: 2, memoryMib: 512, diskGib, ephemeralGib: 0, swapMib: 0 },
  extraSpecs: { ...extraSpecs },
});

/** A server of project `p` with two cores and one GiB of disk. */
const server = (number: number, of = flavor(1)): ServerSpec =>
  serverSpec(number, { projectId: "p", userId: "ann", flavor: of });

/** The guarantees of both implementations of the quotas' store about limits of resource classes, which only another service states. */
export function classLimitsContract(name: string, makeSubject: () => Promise<QuotaSubject>): void {
  describe(`limits of resource classes in ${name}`, () => {
    let subject: QuotaSubject;
    beforeEach(async () => {
      subject = await makeSubject();
    });
    afterEach(() => subject.close());

    const limitedTo = (classes: Readonly<Record<string, number>>) => ({
      ...UNLIMITED,
      classes: new Map(Object.entries(classes)),
    });
    const accept = (calls: readonly ServerSpec[][], classes: Readonly<Record<string, number>>, by = 0) =>
      subject.requests[by % 2 === 0 ? 0 : 1].acceptWithin(calls, {
        ...{ openMax: null, quotas: UNLIMITED },
        stated: new Map([["p", limitedTo(classes)]]),
      });
    const kinds = async (...asked: Parameters<typeof accept>) => (await accept(...asked)).map(({ kind }) => kind);
    const used = async (...classes: readonly string[]) => {
      const { ofProject } = await subject.store.usage("p", { withClasses: true });
      return classes.map((one) => ofProject.classes?.get(one) ?? 0);
    };

    test("a call that exceeds one of them is refused with its figures, and what fits is counted by class", async () => {
      const special = { "hw:cpu_policy": "dedicated", "resources:VGPU": "1", "resources2:CUSTOM_FPGA": "3" };
      const calls = [
        [server(1, flavor(5))],
        [server(2, flavor(4)), server(3, flavor(4))],
        [server(4, flavor(2, special))],
      ];
      const outcomes = await accept(calls, { DISK_GB: 10, CUSTOM_FPGA: 3 });
      expect(outcomes.map(({ kind }) => kind)).toEqual(["accepted", "over-quota", "accepted"]);
      expect(outcomes[1]).toMatchObject({
        excess: { overs: [], classes: [{ name: "DISK_GB", limit: 10, used: 5 }], fitting: 1 },
      });
      expect(await used("DISK_GB", "VCPU", "PCPU", "VGPU", "CUSTOM_FPGA")).toEqual([7, 2, 2, 1, 3]);
      expect(await kinds([[server(5, flavor(1, special))]], { CUSTOM_FPGA: 5 })).toEqual(["over-quota"]);
      expect(await kinds([[server(5, flavor(1, special))]], { VGPU: -1 })).toEqual(["accepted"]);
    });

    test("a delete gives back at once", async () => {
      expect(await kinds([[server(1)], [server(2)]], { DISK_GB: 1 })).toEqual(["accepted", "over-quota"]);
      for (const _twice of [1, 2]) await subject.requests[1].cancel(serverId(1), "req");
      expect(await used("DISK_GB")).toEqual([0]);
      expect(await kinds([[server(2)]], { DISK_GB: 1 })).toEqual(["accepted"]);
    });

    test("are not exceeded by 60 creates at once through two apis", async () => {
      const outcomes = await forEachBounded([...Array(20).keys()], AT_A_TIME, (batch) =>
        accept(
          [1, 2, 3].map((at) => [server(3 * batch + at)]),
          { DISK_GB: 35 },
          batch,
        ),
      );
      expect(outcomes.flat().filter(({ kind }) => kind === "accepted")).toHaveLength(35);
      expect(await used("DISK_GB")).toEqual([35]);
    });

    test("servers that were accepted without limits of classes are counted by the next decision", async () => {
      await subject.requests[0].accept([server(1, flavor(3)), server(2, flavor(4)), server(3, flavor(9))]);
      await subject.requests[0].cancel(serverId(3), "req");
      const [outcome] = await accept([[server(4)]], { DISK_GB: 7 });
      expect(outcome).toMatchObject({ excess: { classes: [{ name: "DISK_GB", limit: 7, used: 7 }] } });
      expect(await kinds([[server(4)]], { DISK_GB: 8 })).toEqual(["accepted"]);
      await subject.requests[0].accept([server(5, flavor(2))]);
      expect(await kinds([[server(6)]], { DISK_GB: 10 })).toEqual(["over-quota"]);
      expect(await used("DISK_GB")).toEqual([10]);
      for (const number of [1, 2, 4, 5]) await subject.requests[0].cancel(serverId(number), "req");
      expect(await used("DISK_GB", "VCPU")).toEqual([0, 0]);
    });

    test("a call whose answer was lost is accepted again, and counted once", async () => {
      for (const _twice of [1, 2]) expect(await kinds([[server(1)]], { DISK_GB: 1 })).toEqual(["accepted"]);
      expect(await used("DISK_GB")).toEqual([1]);
    });

    test("a resize that waits to be confirmed when they are introduced counts as the larger flavor", async () => {
      await subject.requests[0].accept([server(1, flavor(4)), server(2)]);
      await subject.requests[0].assignCells([{ serverUuid: serverId(1), from: null, to: "c-1" }]);
      const dedicated = flavor(9, { "hw:cpu_policy": "dedicated" });
      for (const larger of [dedicated, flavor(6)])
        await subject.store.chargeResize(
          { serverUuid: serverId(1), amounts: countedAmounts(server(1, larger)) },
          UNLIMITED,
        );
      expect(await kinds([[server(3)]], { DISK_GB: 10 })).toEqual(["over-quota"]);
      expect(await kinds([[server(3)]], { DISK_GB: 11, PCPU: 2 })).toEqual(["accepted"]);
      expect(await used("DISK_GB", "PCPU")).toEqual([11, 2]);
      const [note] = await subject.store.chargedResizes(0, 10);
      await subject.store.settleResize(note!, countedAmounts(server(1, flavor(4))));
      expect(await used("DISK_GB", "PCPU")).toEqual([6, 0]);
    });

    test("a resize takes the difference of each class, and its end counts what the server has then", async () => {
      await accept([[server(1, flavor(4))], [server(2)]], {});
      const charge = (of: ReturnType<typeof flavor>, classes: Readonly<Record<string, number>>) =>
        subject.store.chargeResize(
          { serverUuid: serverId(1), amounts: countedAmounts(server(1, of)) },
          UNLIMITED,
          limitedTo(classes),
        );
      expect(await charge(flavor(10), { DISK_GB: 10 })).toMatchObject({
        classes: [{ name: "DISK_GB", limit: 10, used: 5 }],
      });
      expect(await used("DISK_GB")).toEqual([5]);
      const dedicated = flavor(3, { "hw:cpu_policy": "dedicated" });
      expect(await charge(dedicated, { DISK_GB: 5, PCPU: 2 })).toBeNull();
      expect(await used("DISK_GB", "VCPU", "PCPU")).toEqual([5, 4, 2]);
      const [note] = await subject.store.chargedResizes(0, 10);
      await subject.store.settleResize(note!, countedAmounts(server(1, dedicated)));
      expect(await used("DISK_GB", "VCPU", "PCPU")).toEqual([4, 2, 2]);
      await subject.requests[0].cancel(serverId(1), "req");
      expect(await used("DISK_GB", "VCPU", "PCPU")).toEqual([1, 2, 0]);
    });
  });
}
