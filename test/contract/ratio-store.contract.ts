import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { AggregateStore } from "../../core/stores/api/aggregate-store.ts";
import type { RatioStore } from "../../core/stores/api/ratio-store.ts";

/** The guarantees of both implementations of the ratios' store. */
export function ratioStoreContract(
  name: string,
  makeStores: () => Promise<{ readonly aggregates: AggregateStore; readonly ratios: RatioStore }>,
): void {
  describe(`ratios in ${name}`, () => {
    let aggregates: AggregateStore;
    let ratios: RatioStore;
    let id: number;
    beforeEach(async () => {
      ({ aggregates, ratios } = await makeStores());
      const created = await aggregates.create({ uuid: randomUUID(), name: "fast", zone: null });
      id = created.kind === "written" ? created.aggregate.id : -1;
    });

    test("are merged by class, and null removes one", async () => {
      const scope = { kind: "aggregate", id } as const;
      expect(await ratios.changeRatios(scope, { VCPU: 8, MEMORY_MB: 1.5 })).toBe(true);
      await ratios.changeRatios(scope, { VCPU: 4, MEMORY_MB: null, DISK_GB: null });
      await ratios.changeRatios({ kind: "host", host: "h1" }, { VCPU: 2.5 });
      const settings = await ratios.ratioSettings();
      expect([...settings.byAggregate]).toEqual([[id, { VCPU: 4 }]]);
      expect([...settings.byHost]).toEqual([["h1", { VCPU: 2.5 }]]);
      await ratios.changeRatios({ kind: "host", host: "h1" }, { VCPU: null });
      expect((await ratios.ratioSettings()).byHost.size).toBe(0);
    });

    test("of an unknown aggregate are refused", async () => {
      expect(await ratios.changeRatios({ kind: "aggregate", id: 2 ** 40 }, { VCPU: 8 })).toBe(false);
    });

    test("are deleted with their aggregate", async () => {
      await ratios.changeRatios({ kind: "aggregate", id }, { VCPU: 8 });
      await aggregates.delete(id);
      expect((await ratios.ratioSettings()).byAggregate.size).toBe(0);
    });

    test("raise the version of the aggregates", async () => {
      const before = await aggregates.version();
      await ratios.changeRatios({ kind: "host", host: "h1" }, { VCPU: 8 });
      expect(await aggregates.version()).toBeGreaterThan(before);
    });
  });
}
