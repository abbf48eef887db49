import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, expect, it } from "vitest";
import { COMPUTE_OPERATIONS } from "../../../services/api/compute/openapi/compute-operations.ts";
import { REMOVED_ROUTES } from "../../../services/api/compute/removed/removed-routes.ts";
import { SERVER_ACTIONS } from "../../../services/api/compute/server-actions/server-actions.ts";
import { MINOR_MAX, MINOR_MIN } from "../../../services/api/http/microversion.ts";
import { compileEverySchema } from "../../../services/api/http/shared-compilers.ts";
import type { TokenIdentity } from "../../../services/api/identity/token-identity.ts";
import { computeDefaults } from "../../../services/api/policy/compute-rules.ts";
import { Policy } from "../../../services/api/policy/policy.ts";
import { ALL_PATHS } from "../../rigs/api-paths.ts";
import { openApiErrors } from "../../rigs/openapi-errors.ts";
import { ApiRig } from "./api-rig.ts";

interface Described {
  readonly operationId: string;
  readonly "x-since": string;
  readonly "x-until"?: string;
  readonly "x-policy-rule"?: string;
  readonly "x-actions"?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly security?: readonly unknown[];
  readonly parameters: readonly { readonly name?: string; readonly in?: string; readonly description: string }[];
  readonly requestBody?: object;
  readonly responses: Readonly<Record<string, object>>;
}

let rig: ApiRig;
let document: {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
  readonly servers: readonly object[];
};
let operations: readonly { readonly name: string; readonly method: string; readonly path: string; of: Described }[];

beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2", ...ALL_PATHS });
  document = (await rig.get("/v2.1/openapi.json")).json();
  operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([verb]) => verb !== "parameters")
      .map(([verb, of]) => ({ name: `${verb.toUpperCase()} ${path}`, method: verb.toUpperCase(), path, of })),
  );
});
afterAll(() => rig.close());

const MEMBER = { "x-auth-token": "bob:project", "content-type": "application/json" };
const ADMIN = { "x-auth-token": "admin:project", "content-type": "application/json" };

it("is a document of OpenAPI 3.1, under each prefix", async () => {
  expect(openApiErrors(document)).toEqual([]);
  const other = (await rig.get("/compute/v2.1/openapi.json")).json();
  expect([document.servers, other.servers]).toEqual([[{ url: "/v2.1" }], [{ url: "/compute/v2.1" }]]);
  expect({ ...other, servers: null }).toEqual({ ...document, servers: null });
});

it("has every registered route that Nova has not removed, and no other", () => {
  const removed = new Set(REMOVED_ROUTES.flatMap(([url, ...methods]) => methods.map((method) => `${method} ${url}`)));
  const registered = rig.api.http.knownRoutes!()
    .filter(({ method, url }) => method !== "HEAD" && /^\/v2\.1(\/|$)/.test(url))
    .map(({ method, url }) => `${method} ${url.slice("/v2.1".length) || "/"}`)
    .filter((name) => !removed.has(name))
    .map((name) => name.replaceAll(/:(\w+)/g, "{$1}"));
  expect(operations.map(({ name }) => name).toSorted()).toEqual(registered.toSorted());
  expect(Object.keys(COMPUTE_OPERATIONS).toSorted()).toEqual(registered.toSorted());
});

it("has only routes whose schemas can be compiled, which happens when a request needs them", () => {
  expect(compileEverySchema).not.toThrow();
});

/** Sends a call that changes nothing: nothing has the id in its path, and its body has a wrong form. */
const send = (method: string, path: string, minor: number, headers: Readonly<Record<string, string>>, body = {}) =>
  rig.call({
    method: method as "GET",
    url: `/v2.1${path.replaceAll(/\{\w+\}/g, "11111111-1111-4111-8111-111111111111")}`,
    headers: { ...headers, "openstack-api-version": `compute 2.${minor}` },
    ...(method === "POST" || method === "PUT" ? { payload: JSON.stringify(body) } : {}),
  });

it("states the microversions of each operation: the api answers 404 for every method outside of them", async () => {
  const notThere = JSON.stringify({ itemNotFound: { code: 404, message: "The resource could not be found." } });
  const limited = operations.filter(({ of }) => of["x-since"] !== `2.${MINOR_MIN}` || of["x-until"] !== undefined);
  expect(limited.length).toBeGreaterThan(20);
  for (const { name, method, path, of } of limited) {
    const since = Number(of["x-since"].slice(2));
    const until = Number((of["x-until"] ?? `2.${MINOR_MAX}`).slice(2));
    const isThere = async (minor: number) => (await send(method, path, minor, ADMIN)).body !== notThere;
    expect([name, await isThere(since), await isThere(until)]).toEqual([name, true, true]);
    if (since > MINOR_MIN) expect([name, await isThere(since - 1)]).toEqual([name, false]);
    if (until < MINOR_MAX) expect([name, await isThere(until + 1)]).toEqual([name, false]);
  }
});

/** Whether the default policy refuses members what the rule names. */
const POLICY = new Policy(computeDefaults());
const BOB: TokenIdentity = { userId: "bob", projectId: "p", systemScope: null, roles: ["member", "reader"] };
const isReserved = (rule: string | undefined): boolean =>
  rule !== undefined && !POLICY.allows(rule, BOB, { project_id: "p", user_id: "bob" });

it("states the policy of each operation that is reserved for admins: the api names it when it refuses others", async () => {
  const reserved = operations.filter(({ of }) => isReserved(of["x-policy-rule"]) && of.requestBody === undefined);
  expect(reserved.length).toBeGreaterThan(20);
  for (const { name, method, path, of } of reserved) {
    const { statusCode, body } = await send(method, path, Number(of["x-since"].slice(2)), MEMBER);
    const why = `Policy doesn't allow ${of["x-policy-rule"]} to be performed.`;
    expect([name, statusCode, body]).toEqual([name, 403, expect.stringContaining(why)]);
  }
});

it("states the actions of servers with their policies: the api names them when it refuses others", async () => {
  const path = "/servers/{id}/action";
  const actions = document.paths[path]!.post!["x-actions"]!;
  expect(Object.keys(actions).toSorted()).toEqual([...SERVER_ACTIONS.keys()].toSorted());
  for (const [action, facts] of Object.entries(actions)) {
    const { body } = await send("POST", path, Number(facts["x-since"]!.slice(2)), MEMBER, { [action]: null });
    const refusal = /Policy doesn't allow (\S+) to be performed/.exec(body)?.[1];
    const rule = facts["x-policy-rule"];
    expect([action, refusal]).toEqual([action, isReserved(rule) ? rule : undefined]);
  }
});

it("describes the values of the actions of servers: the api refuses others", async () => {
  const { properties } = document.components.schemas.RunServerActionBody as {
    readonly properties: Readonly<Record<string, { readonly type?: readonly string[] }>>;
  };
  const ranges = document.paths["/servers/{id}/action"]!.post!["x-actions"]!;
  expect(Object.keys(properties).toSorted()).toEqual([...SERVER_ACTIONS.keys()].toSorted());
  for (const [action, { type }] of Object.entries(properties)) {
    const minor = Number(ranges[action]!["x-since"]!.slice(2));
    const { body } = await send("POST", "/servers/{id}/action", minor, ADMIN, { [action]: "text" });
    const isRefused = body.includes(`text is not of type 'object', 'null'`);
    expect([action, isRefused ? ["object", "null"] : undefined]).toEqual([action, type]);
  }
});

it("states the query parameters of each operation: from 2.75 on the api refuses all others", async () => {
  const asked = operations.flatMap(({ name, method, path, of }) => {
    const parameters = of.parameters.filter(({ in: place }) => place === "query");
    const isSent = of["x-until"] === undefined && of.requestBody === undefined && parameters.length > 0;
    return isSent ? [{ name, method, path, parameters }] : [];
  });
  expect(asked.length).toBeGreaterThan(15);
  for (const { name, method, path, parameters } of asked) {
    const isKnown = async (parameter: string, minor: number) =>
      !(await send(method, `${path}?${parameter}=1`, minor, ADMIN)).body.includes(`('${parameter}' was unexpected)`);
    expect([name, await isKnown("other", MINOR_MAX)]).toEqual([name, false]);
    for (const { name: parameter = "", description } of parameters) {
      const since = Number(/^From 2\.(\d+) on\.$/.exec(description)![1]);
      expect([name, parameter, await isKnown(parameter, since)]).toEqual([name, parameter, true]);
      expect([name, parameter, await isKnown(parameter, MINOR_MAX)]).toEqual([name, parameter, true]);
      if (since > 75) expect([name, parameter, await isKnown(parameter, since - 1)]).toEqual([name, parameter, false]);
    }
  }
});

it("lets only those operations be called without a token of which it says so", async () => {
  for (const { name, method, path, of } of operations) {
    const { statusCode } = await send(method, path, MINOR_MIN, { "content-type": "application/json" });
    expect([name, statusCode === 401]).toEqual([name, of.security === undefined]);
    expect([name, "401" in of.responses]).toEqual([name, of.security === undefined]);
  }
});

it("names every operation once, refers to each of its schemas, and has schemas that compile", () => {
  const ids = operations.map(({ of }) => of.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  const ajv = new Ajv2020({ strict: false, allowUnionTypes: true });
  addFormats.default(ajv);
  ajv.addSchema({ $id: "document", ...document });
  const text = JSON.stringify(document);
  for (const name of Object.keys(document.components.schemas)) {
    expect(text).toContain(`"#/components/schemas/${name}"`);
    expect(() => ajv.validate(`document#/components/schemas/${name}`, null)).not.toThrow();
  }
  const accepts = (name: string, value: unknown) => ajv.validate(`document#/components/schemas/${name}`, value);
  expect(accepts("CreateServerBody", { server: { name: "web", flavorRef: "1", networks: "none" } })).toBe(true);
  expect(accepts("CreateServerBody", { server: { name: "web", flavour: "1" } })).toBe(false);
  expect(accepts("RunServerActionBody", { "os-start": null })).toBe(true);
  expect(accepts("RunServerActionBody", { "os-begin": null })).toBe(false);
});
