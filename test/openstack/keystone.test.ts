import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Clock, systemClock } from "../../runtime/clock.ts";
import type { AskedCall } from "../../services/api/identity/access-rules.ts";
import { KeystoneAuthenticator } from "../../services/api/identity/keystone-authenticator.ts";
import { DEFAULT_KEYSTONE_SETTINGS } from "../../services/api/identity/keystone-settings.ts";
import { legacyDefaults, RULES, secureDefaults } from "../../services/api/placement/placement-rules.ts";
import { Policy } from "../../services/api/policy/policy.ts";
import { eventually } from "../rigs/eventually.ts";
import { passwordOf } from "../rigs/fake-keystone.ts";
import { hasKeystone, type RealKeystone, SERVICE_PASSWORD, startRealKeystone } from "./real-keystone.ts";

/** The system's clock, which can be put forward. */
class ShiftedClock implements Clock {
  shiftMs = 0;
  now = () => systemClock.now() + this.shiftMs;
  monotonic = () => systemClock.monotonic() + this.shiftMs;
  setTimer = systemClock.setTimer;
}

// Needs Debian's package keystone: `npm run test:openstack` installs it.
describe.runIf(hasKeystone)("a real Keystone", () => {
  let keystone: RealKeystone;
  const told: string[] = [];
  const open: KeystoneAuthenticator[] = [];

  beforeAll(async () => {
    keystone = await startRealKeystone();
  }, 900_000);
  afterEach(async () => {
    for (const authenticator of open.splice(0)) await authenticator.close();
    told.length = 0;
  });
  afterAll(() => keystone?.stop());

  function create(): {
    readonly ask: (token: string, call?: AskedCall) => ReturnType<KeystoneAuthenticator["authenticate"]>;
    readonly authenticate: KeystoneAuthenticator["authenticate"];
    readonly isUnknownProject: KeystoneAuthenticator["isUnknownProject"];
    readonly clock: ShiftedClock;
  } {
    const clock = new ShiftedClock();
    const authenticator = new KeystoneAuthenticator(
      { clock, shared: null, onLost: (error) => told.push(error.code), onBack: () => told.push("back") },
      {
        ...DEFAULT_KEYSTONE_SETTINGS,
        url: keystone.url,
        credentials: passwordOf("placement", SERVICE_PASSWORD),
        triesMax: 1,
        // Other tests keep the machine, and so this Keystone, busy meanwhile.
        timeoutMs: 30_000,
      },
    );
    open.push(authenticator);
    const { authenticate, isUnknownProject } = authenticator;
    const ask = (token: string, call?: AskedCall) =>
      authenticate({ headers: { "x-auth-token": token }, ...(call !== undefined && { call }) });
    return { ask, authenticate, isUnknownProject, clock };
  }

  test("returns a token's user, project and roles, implied ones included, so that policy admits its user", async () => {
    const identity = await create().ask(await keystone.issue());
    expect(identity).toMatchObject({
      userId: expect.stringMatching(/^[0-9a-f]{32}$/),
      systemScope: null,
      domainId: null,
    });
    expect([...identity.roles].sort()).toEqual(expect.arrayContaining(["admin", "member", "reader"]));
    const own = { project_id: identity.projectId };
    expect(new Policy(secureDefaults()).allows(RULES.providersCreate, identity, own)).toBe(true);
  });

  test.each([
    ["system", { system: { all: true } }, { projectId: null, systemScope: "all" }],
    ["no", null, { projectId: null, systemScope: null, roles: [] }],
  ])(
    "marks a token of %s scope as not of a project, so that policy lets it do nothing",
    async (_scope, scope, expected) => {
      const identity = await create().ask(await keystone.issue(scope ?? "unscoped"));
      expect(identity).toMatchObject(expected);
      expect(new Policy(legacyDefaults()).allows(RULES.providersList, identity, {})).toBe(false);
    },
  );

  test("rejects a revoked token, and one that was accepted before is rejected when its cached answer expires", async () => {
    const token = await keystone.issue();
    const { ask, clock } = create();
    await ask(token);
    await keystone.revoke(token);
    await expect(create().ask(token)).rejects.toMatchObject({ status: 401 });
    expect((await ask(token)).userId).not.toBeNull();
    clock.shiftMs = DEFAULT_KEYSTONE_SETTINGS.cacheTtlMs;
    await expect(ask(token)).rejects.toMatchObject({ status: 401 });
  });

  test("rejects an expired token", async () => {
    await eventually("the end of the token's second", async () => {
      const answer = await create()
        .ask(keystone.shortLivedToken)
        .catch((error: { readonly status: number }) => error);
      return "status" in answer && answer.status === 401;
    });
  });

  test("tells the access rules of a token, which are enforced", async () => {
    const { ask } = create();
    const { userId } = await ask(await keystone.issue());
    const token = await keystone.issueRestricted(String(userId));
    const call = { services: ["placement"], method: "GET", path: "/resource_providers" };
    expect((await ask(token, call)).accessRules).toEqual([
      { service: "placement", method: "GET", path: "/resource_providers" },
    ]);
    for (const other of [undefined, { ...call, method: "POST" }, { ...call, path: "/traits" }])
      await expect(ask(token, other)).rejects.toMatchObject({ status: 401 });
  });

  test("tells an admin which projects do not exist, and does not tell who has no valid token", async () => {
    const { ask, isUnknownProject } = create();
    const admin = await keystone.issue();
    const { projectId } = await ask(admin);
    expect(await isUnknownProject(projectId ?? "", admin)).toBe(false);
    for (const id of ["nowhere", "0".repeat(32), "no/where"])
      expect([id, await isUnknownProject(id, admin)]).toEqual([id, true]);
    expect(await isUnknownProject("nowhere", "nonsense")).toBe(false);
  });

  test("lets a service use a token that has expired", async () => {
    const { authenticate } = create();
    const service = await keystone.issueToService();
    const expired = await eventually("the end of the token's second", async () => {
      const headers = { "x-auth-token": keystone.shortLivedToken };
      const refused = await authenticate({ headers }).then(
        () => false,
        (error: { readonly status: number }) => error.status === 401,
      );
      return refused && authenticate({ headers: { ...headers, "x-service-token": service } });
    });
    expect(expired.roles).toContain("admin");
    const headers = { "x-auth-token": keystone.shortLivedToken, "x-service-token": await keystone.issue() };
    await expect(create().authenticate({ headers })).rejects.toMatchObject({ status: 401 });
  });

  test("rejects a text that is not a token", async () => {
    for (const token of ["nonsense", "g".repeat(200)])
      await expect(create().ask(token)).rejects.toMatchObject({ status: 401 });
    expect(told).toEqual([]);
  });

  test("is asked with a new token of our own when it has revoked the old one", async () => {
    const { ask } = create();
    await ask(await keystone.issue());
    await keystone.call("PATCH", `/users/${keystone.serviceUserId}`, { user: { password: SERVICE_PASSWORD } });
    expect((await ask(await keystone.issue())).roles).toContain("admin");
    expect(told).toEqual([]);
  });

  test("cannot be used by a service that does not know the service user's password", async () => {
    const token = await keystone.issue();
    await keystone.call("PATCH", `/users/${keystone.serviceUserId}`, { user: { enabled: false } });
    const { ask } = create();
    await expect(ask(token)).rejects.toMatchObject({ status: 503 });
    await keystone.call("PATCH", `/users/${keystone.serviceUserId}`, { user: { enabled: true } });
    await ask(token);
    expect(told).toEqual(["keystone-refuses-service", "back"]);
  });
});
