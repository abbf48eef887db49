import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import type { SharedCache } from "../../../runtime/shared-cache.ts";
import { type FakeKeystone, passwordOf, startFakeKeystone, tokenDocument } from "../../../test/rigs/fake-keystone.ts";
import { KeystoneAuthenticator } from "./keystone-authenticator.ts";
import { DEFAULT_KEYSTONE_SETTINGS } from "./keystone-settings.ts";

const HOUR_MS = 3_600_000;

let keystone: FakeKeystone;
let clock: ManualClock;
let open: KeystoneAuthenticator[];
beforeEach(async () => {
  keystone = await startFakeKeystone();
  clock = new ManualClock(Date.parse("2026-01-01T00:00:00Z"));
  open = [];
});
afterEach(async () => {
  for (const authenticator of open) await authenticator.close();
  await keystone.close();
});

/** The cache that two processes share. */
function sharedCache(): SharedCache {
  const entries = new Map<string, string>();
  return {
    get: async (key) => entries.get(key) ?? null,
    set: async (key, value) => void entries.set(key, value),
  };
}

function create(shared: SharedCache | null = null): KeystoneAuthenticator {
  const authenticator = new KeystoneAuthenticator(
    { clock, shared, onLost: () => undefined, onBack: () => undefined },
    { ...DEFAULT_KEYSTONE_SETTINGS, url: keystone.url, credentials: passwordOf("placement", "secret"), triesMax: 1 },
  );
  open.push(authenticator);
  return authenticator;
}

const ask = (authenticator: KeystoneAuthenticator, token: string) =>
  authenticator.authenticate({ headers: { "x-auth-token": token } });

describe("a service that goes on with the work of a user", () => {
  const asService = (authenticator: KeystoneAuthenticator, token: string, service: string) =>
    authenticator.authenticate({ headers: { "x-auth-token": token, "x-service-token": service } });
  const document = (user: string, roles: readonly string[], lifeMs: number) =>
    tokenDocument({ user, project: "p1", roles, expiresAtMs: clock.now() + lifeMs });

  test("may use a token of the user that has expired, which nobody else may", async () => {
    keystone.expired.set("old", document("ann", ["member"], -HOUR_MS));
    keystone.tokens.set("of-nova", document("nova", ["service"], HOUR_MS));
    const authenticator = create();
    expect(await asService(authenticator, "old", "of-nova")).toMatchObject({ userId: "ann", roles: ["member"] });
    await expect(ask(authenticator, "old")).rejects.toMatchObject({ status: 401 });
    // Both answers are remembered, each for those who may have it.
    const asked = keystone.asked.length;
    await expect(ask(authenticator, "old")).rejects.toMatchObject({ status: 401 });
    expect(await asService(authenticator, "old", "of-nova")).toMatchObject({ userId: "ann" });
    expect(keystone.asked.length).toBe(asked);
  });

  test("does not lend an expired token to others through the cache that processes share", async () => {
    keystone.expired.set("old", document("ann", ["member"], -HOUR_MS));
    keystone.tokens.set("of-nova", document("nova", ["service"], HOUR_MS));
    const shared = sharedCache();
    await asService(create(shared), "old", "of-nova");
    await expect(ask(create(shared), "old")).rejects.toMatchObject({ status: 401 });
  });

  test("is refused without the role of services, and with a token that is not valid, whatever the user's token", async () => {
    keystone.tokens.set("young", document("ann", ["member"], HOUR_MS));
    keystone.tokens.set("of-bob", document("bob", ["admin", "member"], HOUR_MS));
    const authenticator = create();
    for (const service of ["of-bob", "nonsense", ""])
      await expect(asService(authenticator, "young", service)).rejects.toMatchObject({ status: 401 });
    expect(await ask(authenticator, "young")).toMatchObject({ userId: "ann" });
  });

  test("is refused when the token of the user is unknown to Keystone", async () => {
    keystone.tokens.set("of-nova", document("nova", ["service"], HOUR_MS));
    await expect(asService(create(), "revoked", "of-nova")).rejects.toMatchObject({ status: 401 });
  });
});

describe("a token of an application credential with access rules", () => {
  const accessRules = [{ service: "compute", method: "GET", path: "/v2.1/servers/*" }];
  const call = { services: ["compute"], method: "GET", path: "/v2.1/servers/1" };
  const askFor = (authenticator: KeystoneAuthenticator, asked: typeof call | undefined, service?: string) =>
    authenticator.authenticate({
      headers: { "x-auth-token": "restricted", "x-service-token": service },
      ...(asked !== undefined && { call: asked }),
    });
  beforeEach(() => {
    const expiresAtMs = clock.now() + HOUR_MS;
    const fields = { user: "ann", project: "p1", roles: ["member"], expiresAtMs, accessRules };
    keystone.tokens.set("restricted", tokenDocument(fields));
  });

  test("may be used for the calls that a rule admits, and for no other, also when it is remembered", async () => {
    const shared = sharedCache();
    for (const authenticator of [create(shared), create(shared)]) {
      expect(await askFor(authenticator, call)).toMatchObject({ userId: "ann", accessRules });
      for (const other of [{ method: "DELETE" }, { path: "/v2.1/flavors" }, { services: ["image"] }])
        await expect(askFor(authenticator, { ...call, ...other })).rejects.toMatchObject({ status: 401 });
    }
  });

  test("is refused by an API that does not say what is called", async () => {
    await expect(askFor(create(), undefined)).rejects.toMatchObject({ status: 401 });
  });

  test("may be used for any call by a service, which the user has not called for that", async () => {
    const fields = { user: "nova", project: "service", roles: ["service"], expiresAtMs: clock.now() + HOUR_MS };
    keystone.tokens.set("of-nova", tokenDocument(fields));
    expect(await askFor(create(), { ...call, path: "/v2.1/flavors" }, "of-nova")).toMatchObject({ userId: "ann" });
  });

  test("counts as unreadable when its rules have another form", async () => {
    const fields = { user: "ann", project: "p1", roles: ["member"], expiresAtMs: clock.now() + HOUR_MS };
    keystone.tokens.set("restricted", tokenDocument({ ...fields, accessRules: "all" as never }));
    await expect(askFor(create(), call)).rejects.toMatchObject({ status: 503 });
  });
});
