import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { KeypairStore, NewKeypair } from "../../core/stores/api/keypair-store.ts";

export interface KeypairSubject {
  readonly store: KeypairStore;
  close(): Promise<void>;
}

const keypair = (name: string, over: Partial<NewKeypair> = {}): NewKeypair => ({
  userId: "ann",
  name,
  type: "ssh",
  publicKey: `ssh-ed25519 AAAA ${name}`,
  fingerprint: "00:11",
  createdAtMs: 1_700_000_000_123,
  ...over,
});

/** The guarantees of both implementations of the keypairs' store. */
export function keypairStoreContract(name: string, makeSubject: () => Promise<KeypairSubject>): void {
  describe(`the keypairs' store in ${name}`, () => {
    let subject: KeypairSubject;
    let store: KeypairStore;
    beforeEach(async () => {
      subject = await makeSubject();
      store = subject.store;
    });
    afterEach(() => subject.close());
    const names = async (userId: string, marker: string | null = null, limit = 10) =>
      (await store.keypairs({ userId, marker, limit }))?.map((one) => one.name) ?? null;

    test("keeps a keypair as it was made, under an id of its own", async () => {
      const made = keypair("laptop", { type: "x509" });
      expect(await store.createKeypair(made, null)).toBe("created");
      expect(await store.createKeypair(keypair("phone"), null)).toBe("created");
      const [laptop, phone] = [await store.keypair("ann", "laptop"), await store.keypair("ann", "phone")];
      expect(laptop).toEqual({ ...made, id: expect.any(Number) });
      expect(phone?.id).not.toBe(laptop?.id);
      expect(await store.keypair("ann", "Laptop")).toBeNull();
      expect(await store.keypair("bob", "laptop")).toBeNull();
    });

    test("refuses a name that the user has already, and lets another user have it", async () => {
      expect(await store.createKeypair(keypair("laptop"), 2)).toBe("created");
      expect(await store.createKeypair(keypair("laptop", { publicKey: "other" }), 2)).toBe("name-taken");
      expect((await store.keypair("ann", "laptop"))?.publicKey).toBe("ssh-ed25519 AAAA laptop");
      expect(await store.createKeypair(keypair("laptop", { userId: "bob" }), 2)).toBe("created");
    });

    test("refuses a user's keypair beyond the limit, however many are made at once", async () => {
      const made = await Promise.all(["a", "b", "c", "d", "e"].map((one) => store.createKeypair(keypair(one), 3)));
      expect(made.toSorted()).toEqual(["created", "created", "created", "too-many", "too-many"]);
      expect(await store.createKeypair(keypair("a", { userId: "bob" }), 1)).toBe("created");
      expect(await store.createKeypair(keypair("b", { userId: "bob" }), 1)).toBe("too-many");
      expect(await store.createKeypair(keypair("c", { userId: "eve" }), 0)).toBe("too-many");
    });

    test("lists a user's keypairs by the bytes of their names, page by page", async () => {
      for (const one of ["b", "a-2", "B", "a 1"]) await store.createKeypair(keypair(one), null);
      await store.createKeypair(keypair("c", { userId: "bob" }), null);
      expect(await names("ann")).toEqual(["B", "a 1", "a-2", "b"]);
      expect(await names("ann", null, 2)).toEqual(["B", "a 1"]);
      expect(await names("ann", "a 1", 2)).toEqual(["a-2", "b"]);
      expect(await names("ann", "b")).toEqual([]);
      expect(await names("ann", "c")).toBeNull();
      expect(await names("eve")).toEqual([]);
    });

    test("deletes a keypair of one user, and only once", async () => {
      await store.createKeypair(keypair("laptop"), 1);
      expect(await store.deleteKeypair("bob", "laptop")).toBe(false);
      expect(await store.deleteKeypair("ann", "laptop")).toBe(true);
      expect(await store.deleteKeypair("ann", "laptop")).toBe(false);
      expect(await store.createKeypair(keypair("laptop"), 1)).toBe("created");
    });
  });
}
