import { beforeEach, describe, expect, test } from "vitest";
import type { SettingsStore } from "../../core/stores/api/settings-store.ts";

/** The guarantees of both implementations of the settings' store. */
export function settingsStoreContract(name: string, makeStore: () => Promise<SettingsStore>): void {
  describe(`settings in ${name}`, () => {
    let store: SettingsStore;
    beforeEach(async () => {
      store = await makeStore();
    });

    test("a section that was never set is empty, at version 0", async () => {
      expect(await store.read("scheduling")).toEqual({ version: 0, values: {} });
    });

    test("written values are read back, and sections are independent", async () => {
      const values = { host_subset_size: 3, enabled_filters: ["A", "B"], "it's": { a: 1.5 } };
      expect(await store.write("scheduling", 0, values)).toEqual({ kind: "written", version: 1 });
      expect(await store.write("scheduling", 1, { ...values, more: null })).toEqual({ kind: "written", version: 2 });
      expect(await store.read("scheduling")).toEqual({ version: 2, values: { ...values, more: null } });
      expect(await store.read("other")).toEqual({ version: 0, values: {} });
    });

    test("a writer that saw an older version writes nothing", async () => {
      await store.write("scheduling", 0, { a: 1 });
      expect(await store.write("scheduling", 0, { a: 2 })).toEqual({ kind: "conflict", version: 1 });
      expect(await store.write("scheduling", 7, { a: 3 })).toEqual({ kind: "conflict", version: 1 });
      expect((await store.read("scheduling")).values).toEqual({ a: 1 });
    });

    test("of two concurrent writers one succeeds", async () => {
      const outcomes = await Promise.all([
        store.write("scheduling", 0, { a: 1 }),
        store.write("scheduling", 0, { a: 2 }),
      ]);
      expect(outcomes.map((outcome) => outcome.kind).sort()).toEqual(["conflict", "written"]);
    });
  });
}
