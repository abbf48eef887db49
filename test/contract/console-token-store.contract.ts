import { createHash, randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { ConsoleToken, ConsoleTokenStore } from "../../core/stores/api/console-token-store.ts";

const NOW_MS = 1_700_000_000_000;
const token = (values: Partial<ConsoleToken> = {}): ConsoleToken => ({
  tokenSha256: createHash("sha256").update(randomUUID()).digest("hex"),
  serverUuid: randomUUID(),
  consoleType: "serial",
  ...{ host: "192.0.2.7", port: 40_000, session: randomUUID(), expiresAtMs: NOW_MS + 600_000 },
  ...values,
});

/** The guarantees of both implementations of the store of console tokens. */
export function consoleTokenStoreContract(name: string, makeStore: () => Promise<ConsoleTokenStore>): void {
  describe(`console tokens in ${name}`, () => {
    test("a token is found until it is taken", async () => {
      const store = await makeStore();
      const [one, other] = [token(), token({ consoleType: "novnc" })];
      for (const each of [one, other]) await store.putToken(each, NOW_MS);
      expect(await store.token(one.tokenSha256, NOW_MS)).toEqual(one);
      expect(await store.takeToken(one.tokenSha256, NOW_MS)).toEqual(one);
      expect(await store.takeToken(one.tokenSha256, NOW_MS)).toBeNull();
      expect(await store.token(one.tokenSha256, NOW_MS)).toBeNull();
      expect(await store.token(other.tokenSha256, NOW_MS)).toEqual(other);
    });

    test("only one of several callers takes a token", async () => {
      const store = await makeStore();
      const one = token();
      await store.putToken(one, NOW_MS);
      const taken = await Promise.all(Array.from({ length: 8 }, () => store.takeToken(one.tokenSha256, NOW_MS)));
      expect(taken.filter((each) => each !== null)).toEqual([one]);
    });

    test("a token that has expired is not found, and is removed when another one is stored", async () => {
      const store = await makeStore();
      const one = token({ expiresAtMs: NOW_MS + 1 });
      await store.putToken(one, NOW_MS);
      expect(await store.token(one.tokenSha256, NOW_MS + 1)).toBeNull();
      expect(await store.takeToken(one.tokenSha256, NOW_MS + 1)).toBeNull();
      await store.putToken(token(), NOW_MS + 1);
      // A clock that is behind would still have found it.
      expect(await store.token(one.tokenSha256, NOW_MS)).toBeNull();
    });
  });
}
