import { afterAll, beforeAll, expect, it } from "vitest";
import { openApiErrors } from "../../rigs/openapi-errors.ts";
import { ApiRig } from "./api-rig.ts";

interface Described {
  readonly "x-policy-rule"?: string;
  readonly security?: readonly unknown[];
  readonly requestBody?: object;
}

let rig: ApiRig;
let document: { readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>> };
let operations: readonly { readonly method: string; readonly path: string; readonly of: Described }[];

beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2", dashboard: true });
  document = (await rig.get("/berth/v1/openapi.json")).json();
  operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([verb]) => verb !== "parameters")
      .map(([verb, of]) => ({ method: verb.toUpperCase(), path, of })),
  );
});
afterAll(() => rig.close());

it("is a document of OpenAPI 3.1 with every registered route of the operators' API, and no other", () => {
  expect(openApiErrors(document)).toEqual([]);
  const registered = rig.api.http.knownRoutes!()
    .filter(({ method, url }) => method !== "HEAD" && url.startsWith("/berth/v1/"))
    .map(({ method, url }) => `${method} ${url.slice("/berth/v1".length).replaceAll(/:(\w+)/g, "{$1}")}`);
  expect(operations.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(registered.toSorted());
  expect(registered.length).toBeGreaterThan(12);
});

it("states the policy of each operation: the api names it when it refuses a member, and asks everybody for a token", async () => {
  for (const { method, path, of } of operations) {
    if (of.security !== undefined) continue;
    const url = `/berth/v1${path.replaceAll(/\{\w+\}/g, "11111111-1111-4111-8111-111111111111")}`;
    const send = (headers: Readonly<Record<string, string>>) => rig.call({ method: method as "GET", url, headers });
    expect([path, (await send({})).statusCode]).toEqual([path, 401]);
    // A body of a wrong form is refused before the policy is checked.
    if (of.requestBody !== undefined) expect(of["x-policy-rule"]).toMatch(/^os_compute_api:berth:/);
    else {
      const { statusCode, body } = await send({ "x-auth-token": "bob:project" });
      const why = `Policy doesn't allow ${of["x-policy-rule"]} to be performed.`;
      expect([path, statusCode, body]).toEqual([path, 403, expect.stringContaining(why)]);
    }
  }
});
