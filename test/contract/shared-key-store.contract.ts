import { describe, expect, test } from "vitest";
import type { SharedKeyStore } from "../../core/stores/api/shared-key-store.ts";

/** The guarantees of both implementations of the store of shared keys. `openStores` returns what several processes have of one empty store. */
export function sharedKeyStoreContract(name: string, openStores: () => Promise<readonly SharedKeyStore[]>): void {
  describe(`shared keys in ${name}`, () => {
    test("a key is made once, however many processes ask for it first at the same time", async () => {
      const stores = await openStores();
      const asked = Array.from({ length: 16 }, (_, index) => stores[index % stores.length]?.key("marks"));
      const keys = (await Promise.all(asked)).map((key) => Buffer.from(key ?? []).toString("hex"));
      expect(keys[0]).toMatch(/^[0-9a-f]{64}$/);
      expect(new Set(keys).size).toBe(1);
      const later = await stores.at(-1)?.key("marks");
      expect(Buffer.from(later ?? []).toString("hex")).toBe(keys[0]);
    });

    test("keys of other names, and of other clouds, are others", async () => {
      const [store] = await openStores();
      const [one, other] = [await store?.key("marks"), await store?.key("others")];
      expect(one).not.toEqual(other);
      const [elsewhere] = await openStores();
      expect(await elsewhere?.key("marks")).not.toEqual(one);
    });
  });
}
