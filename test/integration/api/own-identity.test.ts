import type { AddressInfo } from "node:net";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../runtime/clock.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { KeystoneAuthenticator } from "../../../services/api/identity/keystone-authenticator.ts";
import { DEFAULT_KEYSTONE_SETTINGS } from "../../../services/api/identity/keystone-settings.ts";
import { mountIdentity } from "../../../services/api/identity-api/mount-identity.ts";
import { DEFAULT_OWN_IDENTITY_SETTINGS, OwnIdentity } from "../../../services/api/identity-api/own-identity.ts";
import { passwordOf } from "../../rigs/fake-keystone.ts";
import { ApiRig } from "./api-rig.ts";

const USERS = {
  users: [
    { name: "root", password: "of root", projects: { red: "admin" as const } },
    { name: "ann", password: "of ann", projects: { red: "member" as const, blue: "reader" as const } },
  ],
};

let clock: ManualClock;
let identity: OwnIdentity;
let http: FastifyInstance;

beforeEach(async () => {
  clock = new ManualClock(Date.UTC(2026, 0, 1));
  identity = new OwnIdentity({ clock, users: USERS }, DEFAULT_OWN_IDENTITY_SETTINGS);
  http = Fastify({ ajv: { customOptions: { coerceTypes: false, removeAdditional: false } } });
  await http.register((scope) => mountIdentity(scope, identity));
});
afterEach(() => http.close());

interface Asked {
  readonly user?: string;
  readonly password?: string;
  readonly scope?: unknown;
  readonly token?: string;
}

/** Asks for a token by password or by another token. */
function ask({ user = "ann", password = `of ${user}`, scope, token }: Asked) {
  const proof =
    token === undefined
      ? { methods: ["password"], password: { user: { name: user, domain: { name: "Default" }, password } } }
      : { methods: ["token"], token: { id: token } };
  const payload = { auth: { identity: proof, ...(scope === undefined ? {} : { scope }) } };
  return http.inject({ method: "POST", url: "/identity/v3/auth/tokens", payload });
}

async function issue(asked: Asked): Promise<string> {
  const answer = await ask(asked);
  expect([answer.statusCode, answer.payload]).toEqual([201, expect.stringContaining("token")]);
  return String(answer.headers["x-subject-token"]);
}

const inProject = (name: string) => ({ project: { name, domain: { id: "default" } } });

function get(path: string, token: string, subject?: string, method: "GET" | "HEAD" | "DELETE" = "GET") {
  const headers = { "x-auth-token": token, ...(subject === undefined ? {} : { "x-subject-token": subject }) };
  return http.inject({ method, url: `/identity/v3${path}`, headers });
}

test("a token names its user, project, roles and expiry, and has a catalog with the address of the request", async () => {
  const answer = await ask({ scope: inProject("red") });
  const { token } = answer.json();
  expect(token).toMatchObject({
    methods: ["password"],
    user: { name: "ann", domain: { id: "default", name: "Default" } },
    project: { name: "red", domain: { id: "default", name: "Default" } },
    roles: [{ name: "member" }, { name: "reader" }],
    issued_at: "2026-01-01T00:00:00.000000Z",
    expires_at: "2026-01-01T01:00:00.000000Z",
  });
  const compute = token.catalog.find((entry: { type: string }) => entry.type === "compute");
  expect(compute.endpoints[0]).toMatchObject({ interface: "public", url: "http://localhost:80/compute/v2.1" });
  expect(answer.payload).not.toContain("of ann");
});

test("without a scope the token is of the user's first project, and `unscoped` gives one of no project", async () => {
  expect((await ask({})).json().token.project.name).toBe("red");
  const { token } = (await ask({ scope: "unscoped" })).json();
  expect([token.project, token.roles, token.catalog]).toEqual([undefined, undefined, undefined]);
  const unscoped = await issue({ scope: "unscoped" });
  const projects = (await get("/auth/projects", unscoped)).json().projects;
  expect(projects.map(({ name }: { name: string }) => name)).toEqual(["red", "blue"]);
});

test("a token gives a token of another of the user's projects, which ends when the first one does", async () => {
  const first = await issue({ scope: inProject("red") });
  clock.advance(60_000);
  const { token } = (await ask({ token: first, scope: inProject("blue") })).json();
  expect(token).toMatchObject({
    methods: ["token", "password"],
    roles: [{ name: "reader" }],
    expires_at: "2026-01-01T01:00:00.000000Z",
  });
});

test.each<[string, Asked]>([
  ["a project of others", { user: "root", scope: inProject("blue") }],
  ["no project", { scope: inProject("green") }],
  ["a project of another domain", { scope: { project: { name: "red", domain: { name: "Other" } } } }],
  ["the system", { scope: { system: { all: true } } }],
  ["a domain", { scope: { domain: { id: "default" } } }],
  ["a token that nobody issued", { token: "x" }],
])("refuses %s with 401", async (_what, asked) => {
  const answer = await ask(asked);
  expect(answer.statusCode).toBe(401);
  expect(answer.json().error).toMatchObject({ code: 401, title: "Unauthorized" });
  expect(answer.headers["x-subject-token"]).toBeUndefined();
});

test.each([
  ["a wrong password", "ann"],
  ["an unknown user", "eve"],
])("answers %s late and without a reason, and checks no further ones meanwhile", async (_what, user) => {
  const guesses = Array.from({ length: DEFAULT_OWN_IDENTITY_SETTINGS.heldMax }, () => ask({ user, password: "wrong" }));
  // The guesses are held back while a right password is answered at once.
  await issue({ user: "root" });
  await expect.poll(async () => (await ask({ user, password: "wrong" })).statusCode).toBe(429);
  clock.advance(DEFAULT_OWN_IDENTITY_SETTINGS.holdMs);
  const answers = await Promise.all(guesses);
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(guesses.map(() => 401));
  expect(answers[0]?.json().error.message).toBe("The request you have made requires authentication.");
  await issue({ user: "ann" });
});

test("a token is shown to its user and to admins, until it is revoked", async () => {
  const [root, own, other] = [await issue({ user: "root" }), await issue({}), await issue({})];
  expect((await get("/auth/tokens", own, own)).json().token.user.name).toBe("ann");
  expect((await get("/auth/tokens", root, own)).statusCode).toBe(200);
  expect((await get("/auth/tokens", own, own, "HEAD")).statusCode).toBe(200);
  expect((await get("/auth/tokens", own, root)).statusCode).toBe(403);
  expect((await get("/auth/tokens", own, "unknown")).statusCode).toBe(403);
  expect((await get("/auth/tokens", root, "unknown")).statusCode).toBe(404);
  expect((await get("/auth/tokens", own, other, "DELETE")).statusCode).toBe(204);
  expect((await get("/auth/tokens", other, other)).statusCode).toBe(401);
  expect((await get("/auth/tokens", own, own)).statusCode).toBe(200);
});

test("lists are for admins, and users see themselves and their projects", async () => {
  const [root, ann] = [await issue({ user: "root" }), await issue({})];
  const ids = identity.directory;
  const own = ids.user({ name: "ann" })?.id;
  const blue = ids.project({ name: "blue" })?.id;
  const statuses = async (path: string) => [(await get(path, root)).statusCode, (await get(path, ann)).statusCode];
  for (const path of ["/users", "/projects", "/roles", "/services", "/endpoints", "/role_assignments"])
    expect([path, ...(await statuses(path))]).toEqual([path, 200, 403]);
  for (const path of [`/users/${own}`, `/users/${own}/projects`, `/projects/${blue}`, "/auth/projects", "/domains"])
    expect([path, ...(await statuses(path))]).toEqual([path, 200, 200]);
  expect(await statuses(`/users/${ids.user({ name: "root" })?.id}`)).toEqual([200, 403]);
  expect(await statuses("/projects/unknown")).toEqual([404, 403]);
  expect((await get("/projects?name=blue", root)).json().projects).toMatchObject([{ id: blue, name: "blue" }]);
  expect((await get("/users?name=nobody", root)).json().users).toEqual([]);
});

test("nothing can be changed, nobody is served without a token, and a body of another form gets a 400 without its values", async () => {
  const root = await issue({ user: "root" });
  for (const [method, path] of [
    ["POST", "/projects"],
    ["PATCH", "/users/x"],
    ["DELETE", "/projects/x"],
    ["PUT", "/projects/x/users/y/roles/z"],
  ] as const) {
    const url = `/identity/v3${path}`;
    const answer = await http.inject({ method, url, headers: { "x-auth-token": root } });
    expect([path, answer.statusCode]).toEqual([path, 403]);
    expect((await http.inject({ method, url })).statusCode).toBe(401);
  }
  for (const path of ["/users", "/auth/tokens", "/auth/catalog", "/auth/projects"])
    expect((await http.inject({ url: `/identity/v3${path}` })).statusCode).toBe(401);
  const auth = { identity: { methods: ["password"], password: { user: { name: ["ann"], password: "of ann" } } } };
  const bad = await http.inject({ method: "POST", url: "/identity/v3/auth/tokens", payload: { auth } });
  expect(bad.json().error).toMatchObject({ code: 400, message: expect.stringContaining("user/name must be string") });
  expect(bad.payload).not.toContain("of ann");
  expect((await http.inject({ url: "/identity/v3/credentials" })).json().error.code).toBe(404);
});

test("Berth's own reader of Keystone's answers finds the same caller as the tokens' issuer", async () => {
  await http.listen({ host: "127.0.0.1", port: 0 });
  const { port } = http.server.address() as AddressInfo;
  // Its expiry is compared with the time of the reader.
  clock.advance(systemClock.now() - clock.now());
  const reader = new KeystoneAuthenticator(
    { clock: systemClock, shared: null, onLost: () => undefined, onBack: () => undefined },
    {
      ...DEFAULT_KEYSTONE_SETTINGS,
      url: `http://127.0.0.1:${port}/identity/v3`,
      credentials: passwordOf("root", "of root", "red"),
    },
  );
  try {
    for (const asked of [{ user: "root" }, { scope: inProject("blue") }, { scope: "unscoped" }]) {
      const headers = { "x-auth-token": await issue(asked) };
      const known = await reader.authenticate({ headers });
      expect(known).toEqual({ ...(await identity.authenticate({ headers })), roles: expect.anything() });
      expect([...known.roles].sort()).toEqual([...(await identity.authenticate({ headers })).roles].sort());
    }
    await expect(reader.authenticate({ headers: { "x-auth-token": "unknown" } })).rejects.toMatchObject({
      status: 401,
    });
  } finally {
    await reader.close();
  }
});

test("the Compute API admits callers by these tokens, in their projects and with their roles", async () => {
  const rig = await ApiRig.start({ auth: "password" }, undefined, identity.authenticate);
  try {
    const call = (token: string | null, method: "GET" | "POST", url: string, payload?: object) =>
      rig.api.http.inject({
        ...{ method, url, headers: token === null ? {} : { "x-auth-token": token } },
        ...(payload ? { payload } : {}),
      });
    const server = { server: { name: "s", flavorRef: "1" } };
    const [member, reader, root] = [
      await issue({ scope: inProject("red") }),
      await issue({ scope: inProject("blue") }),
      await issue({ user: "root" }),
    ];
    const created = await call(member, "POST", "/v2.1/servers", server);
    expect(created.statusCode).toBe(202);
    const url = `/v2.1/servers/${created.json().server.id}`;
    expect((await call(reader, "POST", "/v2.1/servers", server)).statusCode).toBe(403);
    expect((await call(reader, "GET", url)).statusCode).toBe(404);
    expect((await call(root, "GET", url)).json().server.tenant_id).toBe(
      identity.directory.project({ name: "red" })?.id,
    );
    expect((await call(await issue({ scope: "unscoped" }), "GET", url)).statusCode).toBe(403);
    expect((await call(null, "GET", url)).statusCode).toBe(401);
    for (const root of ["/image", "/network"]) expect((await call(null, "GET", root)).json().versions).toHaveLength(1);
    identity.revoke(member);
    expect((await call(member, "GET", url)).statusCode).toBe(401);
  } finally {
    await rig.close();
  }
});
