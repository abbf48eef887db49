import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../runtime/clock.ts";
import { KeystoneAuthenticator } from "../../../services/api/identity/keystone-authenticator.ts";
import { DEFAULT_KEYSTONE_SETTINGS } from "../../../services/api/identity/keystone-settings.ts";
import { type FakeKeystone, passwordOf, startFakeKeystone, tokenDocument } from "../../rigs/fake-keystone.ts";
import { ApiRig } from "./api-rig.ts";

let keystone: FakeKeystone;
let authenticator: KeystoneAuthenticator;
let rig: ApiRig;

beforeEach(async () => {
  keystone = await startFakeKeystone();
  authenticator = new KeystoneAuthenticator(
    { clock: systemClock, shared: null, onLost: () => undefined, onBack: () => undefined },
    {
      ...DEFAULT_KEYSTONE_SETTINGS,
      url: keystone.url,
      credentials: passwordOf("placement", keystone.password),
      triesMax: 1,
    },
  );
  const { authenticate, isUnknownProject } = authenticator;
  const absent = [null, null, null, undefined] as const;
  rig = await ApiRig.start({ auth: "keystone" }, undefined, authenticate, ...absent, isUnknownProject);
});
afterEach(async () => {
  await rig.close();
  await authenticator.close();
  await keystone.close();
});

/** A token of a project with these roles. */
function issue(token: string, project: string, roles: readonly string[]): string {
  const expiresAtMs = Date.now() + 3_600_000;
  keystone.tokens.set(token, tokenDocument({ user: `user-of-${token}`, project, roles, expiresAtMs }));
  return token;
}

async function call(token: string | null, method: "GET" | "POST" | "PUT" | "DELETE", url: string, payload?: object) {
  const headers = token === null ? {} : { "x-auth-token": token };
  return rig.api.http.inject({ method, url, headers, ...(payload ? { payload } : {}) });
}

const SERVER = { server: { name: "s", flavorRef: "1" } };

test("a server belongs to the token's project, is readable for its readers, and does not exist for other projects", async () => {
  const created = await call(issue("m", "p1", ["member", "reader"]), "POST", "/v2.1/servers", SERVER);
  expect(created.statusCode).toBe(202);
  const { id } = created.json<{ server: { id: string } }>().server;
  const seen = async (token: string) => (await call(token, "GET", `/v2.1/servers/${id}`)).statusCode;
  expect(await seen(issue("r", "p1", ["reader"]))).toBe(200);
  expect(await seen(issue("other", "p2", ["member", "reader"]))).toBe(404);
  expect(await seen(issue("root", "p3", ["admin"]))).toBe(200);
});

test("a token with access rules is for the calls that they name, by the whole path that the client wrote", async () => {
  const expiresAtMs = Date.now() + 3_600_000;
  const accessRules = [
    { service: "compute", method: "GET", path: "/v2.1/flavors" },
    { service: "image", method: "GET", path: "/image/v2/**" },
  ];
  const fields = { user: "ann", project: "p1", roles: ["member", "reader"], expiresAtMs, accessRules };
  keystone.tokens.set("restricted", tokenDocument(fields));
  const status = async (method: "GET" | "POST", url: string) => (await call("restricted", method, url)).statusCode;
  expect(await status("GET", "/v2.1/flavors?limit=1")).toBe(200);
  expect(await status("GET", "/image/v2/images")).toBe(200);
  for (const url of [
    "/v2.1/servers",
    "/v2.1/flavors/1",
    "/v2.1/p1/flavors",
    "/network/v2.0/networks",
    "/berth/v1/hosts",
  ])
    expect([url, await status("GET", url)]).toEqual([url, 401]);
});

test("a reader creates nothing, and only an admin sees operators' fields", async () => {
  const reader = issue("r", "p1", ["reader"]);
  const refused = await call(reader, "POST", "/v2.1/servers", SERVER);
  expect(refused.statusCode).toBe(403);
  expect(refused.json()).toMatchObject({ forbidden: { code: 403 } });
  expect((await call(reader, "GET", "/v2.1/os-aggregates")).statusCode).toBe(403);
  expect((await call(issue("a", "p1", ["admin"]), "GET", "/v2.1/os-aggregates")).statusCode).toBe(200);
});

test("without a valid token the answer names the identity service; versions are shown without authentication", async () => {
  for (const token of [null, "unknown"]) {
    const refused = await call(token, "GET", "/v2.1/servers");
    expect(refused.statusCode).toBe(401);
    expect(refused.headers["www-authenticate"]).toBe(`Keystone uri="${keystone.url}"`);
    expect(refused.json()).toMatchObject({ unauthorized: { code: 401 } });
  }
  expect((await call(null, "GET", "/v2.1/")).statusCode).toBe(200);
});

test("while Keystone does not answer, callers are asked to retry", async () => {
  keystone.broken = 500;
  const answer = await call(issue("m", "p1", ["member"]), "GET", "/v2.1/servers");
  expect(answer.statusCode).toBe(503);
  expect(answer.headers["retry-after"]).toBeDefined();
});

/** Everything that names a project and is refused for one that does not exist. */
const named = (project: string): readonly (readonly ["GET" | "POST" | "PUT", string, object?])[] => [
  ["GET", `/v2.1/os-quota-sets/${project}`],
  ["GET", `/v2.1/os-quota-sets/${project}/detail`],
  ["GET", `/v2.1/os-quota-sets/${project}/defaults`],
  ["PUT", `/v2.1/os-quota-sets/${project}`, { quota_set: { cores: 5 } }],
  ["POST", "/v2.1/flavors/private/action", { addTenantAccess: { tenant: project } }],
];
/** The statuses of the answers to these calls. */
async function statuses(token: string, project: string): Promise<number[]> {
  const flavor = { name: "private", id: "private", ram: 1, vcpus: 1, disk: 1, "os-flavor-access:is_public": false };
  await call(issue("maker", "p1", ["admin"]), "POST", "/v2.1/flavors", { flavor });
  const found: number[] = [];
  for (const [method, url, body] of named(project)) found.push((await call(token, method, url, body)).statusCode);
  return found;
}

test("a project that Keystone does not know has no quota set and gets no access to a flavor", async () => {
  const admin = issue("a", "p1", ["admin"]);
  keystone.projects.add("there");
  expect(await statuses(admin, "nowhere")).toEqual([400, 400, 400, 400, 400]);
  const refused = await call(admin, "GET", "/v2.1/os-quota-sets/no%2Fwhere");
  expect(refused.json()).toEqual({ badRequest: { code: 400, message: "Project ID no/where is not a valid project." } });
  expect(await statuses(admin, "there")).toEqual([200, 200, 200, 200, 200]);
  const cleared = await call(admin, "DELETE", "/v2.1/os-quota-sets/nowhere");
  const removal = { removeTenantAccess: { tenant: "nowhere" } };
  expect([cleared.statusCode, (await call(admin, "POST", "/v2.1/flavors/private/action", removal)).statusCode]).toEqual(
    [202, 404],
  );
});

test("the caller's own project is not asked for, and the policy refuses before Keystone is asked", async () => {
  const reader = issue("r", "p1", ["reader"]);
  expect((await call(reader, "GET", "/v2.1/os-quota-sets/p1")).statusCode).toBe(200);
  expect((await call(reader, "GET", "/v2.1/os-quota-sets/nowhere")).statusCode).toBe(403);
  expect(keystone.asked).toEqual(["login", "r"]);
});

test.each([0, 500, 403])("a Keystone that answers %i without a word about the project refuses none", async (status) => {
  const admin = issue("a", "p1", ["admin"]);
  expect((await call(admin, "GET", "/v2.1/os-quota-sets/p1")).statusCode).toBe(200);
  await statuses(admin, "p1");
  keystone.broken = status;
  const found: number[] = [];
  for (const [method, url, body] of named("nowhere")) found.push((await call(admin, method, url, body)).statusCode);
  expect(found).toEqual([200, 200, 200, 200, 200]);
});
