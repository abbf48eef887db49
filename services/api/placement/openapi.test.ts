import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, test } from "vitest";
import { openApiErrors } from "../../../test/rigs/openapi-errors.ts";
import { OPENAPI_OPERATIONS } from "./openapi/operations.ts";
import { openApiDocument } from "./openapi.ts";
import { PLACEMENT_ROUTES } from "./routes.ts";

interface DocumentedOperation {
  readonly operationId: string;
  readonly security?: readonly unknown[];
  readonly parameters: readonly {
    readonly $ref?: string;
    readonly name?: string;
    readonly required?: boolean;
    readonly schema?: object;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
  readonly responses: Readonly<Record<string, object>>;
}
type PathItem = Readonly<Record<string, DocumentedOperation>>;

const document = openApiDocument("/placement");
const paths = document.paths as Readonly<Record<string, PathItem>>;
const components = document.components as { readonly schemas: Readonly<Record<string, object>> };
const operations = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item)
    .filter(([verb]) => verb !== "parameters")
    .map(([verb, operation]) => ({ name: `${verb.toUpperCase()} ${path}`, operation })),
);
const operation = (name: string) => operations.find((one) => one.name === name)!.operation;

test("is a document of OpenAPI 3.1", () => {
  expect(openApiErrors(document)).toEqual([]);
});

test("has every verb of every route, and no other", () => {
  const routed = Object.entries(PLACEMENT_ROUTES).flatMap(([path, verbs]) =>
    path === "" ? [] : Object.keys(verbs).map((verb) => `${verb} ${path}`),
  );
  expect(operations.map(({ name }) => name).sort()).toEqual(routed.sort());
  expect(Object.keys(OPENAPI_OPERATIONS).sort()).toEqual(routed.sort());
});

test("states each route's policy and first version, as the routes do", () => {
  for (const [path, verbs] of Object.entries(PLACEMENT_ROUTES)) {
    for (const [verb, route] of path === "" ? [] : Object.entries(verbs)) {
      const expected = route.rule === null ? { security: [] } : { "x-policy-rule": route.rule };
      expect(operation(`${verb} ${path}`)).toMatchObject({ ...expected, "x-since": `1.${route.since}` });
    }
  }
});

test("describes the body of every route that takes one", () => {
  const taking = Object.entries(PLACEMENT_ROUTES).flatMap(([path, verbs]) =>
    Object.entries(verbs)
      .filter(([, route]) => route.takesJson)
      .map(([verb]) => `${verb} ${path}`),
  );
  expect(
    operations
      .filter((one) => one.operation.requestBody !== undefined)
      .map(({ name }) => name)
      .sort(),
  ).toEqual(taking.sort());
});

test("names every operation once, and every part of a path as a parameter", () => {
  const ids = operations.map((one) => one.operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const [path, item] of Object.entries(paths)) {
    const parameters = (item.parameters ?? []) as unknown as readonly { readonly name: string }[];
    expect(parameters.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g) ?? []);
  }
});

test("refers only to parts that it contains, and contains no part without a reference", () => {
  const text = JSON.stringify(document);
  const referred = new Set([...text.matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, pointer]) => pointer!));
  for (const pointer of referred) {
    const found = pointer
      .split("/")
      .reduce<unknown>((at, part) => (at as Record<string, unknown> | undefined)?.[part], document);
    expect(found, pointer).toBeDefined();
  }
  for (const name of Object.keys(components.schemas)) expect(referred).toContain(`components/schemas/${name}`);
});

describe("its schemas", () => {
  const ajv = new Ajv2020({ strict: false });
  addFormats.default(ajv);
  ajv.addSchema({ $id: "document", ...document });
  const valid = (name: string, value: unknown) => ajv.validate(`document#/components/schemas/${name}`, value);

  test("compile", () => {
    for (const name of Object.keys(components.schemas)) expect(() => valid(name, null)).not.toThrow();
  });
  test("of bodies are the ones that validate requests, the newest first", () => {
    expect(operation("PUT /allocations/{consumer_uuid}").requestBody?.content["application/json"]?.schema).toEqual({
      anyOf: ["1.38", "1.34", "1.28", "1.12", "1.8", "1.0"].map((since) => ({
        $ref: `#/components/schemas/PutAllocations-${since}`,
      })),
    });
    const body = { allocations: {}, project_id: "p", user_id: "u", consumer_generation: null };
    expect(valid("PutAllocations-1.28", body)).toBe(true);
    expect(valid("PutAllocations-1.38", body)).toBe(false);
  });
  test("of usages accept both shapes", () => {
    expect(valid("Usages", { usages: { VCPU: 1 } })).toBe(true);
    expect(valid("Usages", { usages: { INSTANCE: { VCPU: 1, consumer_count: 1 } } })).toBe(true);
    expect(valid("Usages", { usages: { INSTANCE: { VCPU: "1", consumer_count: 1 } } })).toBe(false);
  });
});

test("of query strings state the version that introduced each key", () => {
  const keys = operation("GET /resource_providers").parameters.filter((one) => one.name !== undefined);
  expect(keys).toContainEqual(
    expect.objectContaining({
      name: "in_tree",
      required: false,
      description: expect.stringContaining("From 1.14 on."),
    }),
  );
  expect(operation("GET /usages").parameters).toContainEqual(
    expect.objectContaining({ name: "project_id", required: true }),
  );
  expect(operation("GET /allocation_candidates").parameters.map((one) => one.name)).toEqual([
    undefined,
    "resources",
    "limit",
    "required",
    "member_of",
    "group_policy",
    "root_required",
    "same_subtree",
    "groups",
  ]);
});

test("is served where it is mounted", () => {
  expect(document.servers).toEqual([{ url: "/placement" }]);
  expect(openApiDocument("").servers).toEqual([{ url: "/" }]);
});
