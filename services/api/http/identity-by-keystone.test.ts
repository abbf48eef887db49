import { expect, test } from "vitest";
import type { TokenIdentity } from "../identity/token-identity.ts";
import { TokenRefused } from "../identity/token-refused.ts";
import { faultOf, identityByKeystone, identityByRoles } from "./identity.ts";

const PROJECT: TokenIdentity = { userId: "u", projectId: "p", systemScope: null, domainId: null, roles: [] };
const resolver = (identity: Partial<TokenIdentity>) => identityByKeystone(async () => ({ ...PROJECT, ...identity }));
const callOf = (method: string) => ({ services: ["compute"], method, path: "/v2.1/servers" });
const byRoles = (identity: Partial<TokenIdentity>) => identityByRoles(resolver(identity));

test.each([
  [["admin", "manager", "member", "reader"], "DELETE", "known"],
  [["member", "reader"], "POST", "known"],
  [["member"], "GET", "known"],
  [["reader"], "GET", "known"],
  [["reader"], "PUT", "forbidden"],
  [["auditor"], "GET", "forbidden"],
  [[], "GET", "forbidden"],
])("where there is no policy, a caller with the roles %j and the method %s is %s", async (roles, method, kind) => {
  expect(await byRoles({ roles })({}, callOf(method))).toMatchObject({ kind });
  expect(await resolver({ roles })({}, callOf(method))).toMatchObject({ kind: "known", identity: { roles } });
});

test("only the role admin makes an administrator, and the project is the token's, whatever the headers say", async () => {
  const headers = { "x-project-id": "other", "x-roles": "admin" };
  const identity = { projectId: "p", userId: "u" };
  expect(await resolver({ roles: ["member"] })(headers, callOf("GET"))).toEqual({
    kind: "known",
    identity: { ...identity, isAdmin: false, roles: ["member"] },
  });
  expect(await resolver({ roles: ["admin"] })(headers, callOf("GET"))).toEqual({
    kind: "known",
    identity: { ...identity, isAdmin: true, roles: ["admin"] },
  });
});

test.each([{ systemScope: "all" }, { domainId: "d" }, {}])(
  "a token of another scope than a project may do nothing: %j",
  async (scope) => {
    const outcome = await resolver({ ...scope, projectId: null, roles: ["admin"] })({}, callOf("GET"));
    expect(outcome.kind).toBe("forbidden");
  },
);

test("a refused token is answered with the place to get a valid one, and a token that cannot be checked with 503", async () => {
  const failing = (error: Error) => identityByKeystone(() => Promise.reject(error))({}, callOf("GET"));
  const where = { "www-authenticate": 'Keystone uri="http://k/v3"' };
  const outcome = await failing(new TokenRefused(401, "why", where));
  expect(outcome).toEqual({ kind: "unauthorized", why: "why", authenticate: where["www-authenticate"] });
  const away = await failing(new TokenRefused(503, "later", {}));
  expect(away).toEqual({ kind: "unavailable", why: "later" });
  expect(faultOf(away as Parameters<typeof faultOf>[0]).status).toBe(503);
  await expect(failing(new TypeError("a bug"))).rejects.toThrow(TypeError);
});
