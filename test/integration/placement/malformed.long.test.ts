import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { Pool } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../adapters/postgres/client/databases.ts";
import { PLACEMENT_ROUTES } from "../../../services/api/placement/routes.ts";
import { allocationsBody } from "../../placement/placement-client.ts";
import { PlacementRig } from "../../placement/placement-rig.ts";
import fc from "../../rigs/property.ts";
import { type FuzzedRoute, malformedRequests, type RawRequest } from "./malformed-requests.ts";

const SEED = 20260107;
const AT_ONCE = 20;
const ROUNDS = Number(process.env.BERTH_TEST_ROUNDS ?? 20);
/** A generation that no request has by chance. */
const GENERATION = 71_234_567;

const [root, child, other] = [randomUUID(), randomUUID(), randomUUID()];
const consumer = randomUUID();
const held = allocationsBody({ [root]: { VCPU: 1, CUSTOM_GOLD: 1 }, [child]: { MEMORY_MB: 1 } }, 0);
const wrongGeneration = { resource_provider_generation: 0 };
const provider = `/resource_providers/{${root}}`;

/** A request for each verb of each path. */
const FUZZED: Readonly<Record<string, Omit<FuzzedRoute, "method" | "path"> & { readonly path?: string }>> = {
  "GET /": {},
  "GET /resource_providers": {
    query: { in_tree: root, resources: "VCPU:1", member_of: root, required: "CUSTOM_SHINY", name: root, uuid: root },
  },
  "POST /resource_providers": { body: { name: root, uuid: root, parent_provider_uuid: null } },
  "GET /resource_providers/{uuid}": { path: provider },
  "PUT /resource_providers/{uuid}": { path: provider, body: { name: other, parent_provider_uuid: child } },
  "DELETE /resource_providers/{uuid}": { path: provider },
  "GET /resource_providers/{uuid}/inventories": { path: `${provider}/inventories` },
  "POST /resource_providers/{uuid}/inventories": {
    path: `${provider}/inventories`,
    body: {
      resource_class: "VCPU",
      total: 9,
      reserved: 0,
      min_unit: 1,
      max_unit: 9,
      step_size: 1,
      allocation_ratio: 1.5,
    },
  },
  "PUT /resource_providers/{uuid}/inventories": {
    path: `${provider}/inventories`,
    body: { ...wrongGeneration, inventories: { VCPU: { total: 9, reserved: 1, allocation_ratio: 2 } } },
  },
  "DELETE /resource_providers/{uuid}/inventories": { path: `${provider}/inventories` },
  "GET /resource_providers/{uuid}/inventories/{resource_class}": { path: `${provider}/inventories/{VCPU}` },
  "PUT /resource_providers/{uuid}/inventories/{resource_class}": {
    path: `${provider}/inventories/{VCPU}`,
    body: { ...wrongGeneration, total: 9, max_unit: 9 },
  },
  "DELETE /resource_providers/{uuid}/inventories/{resource_class}": { path: `${provider}/inventories/{VCPU}` },
  "GET /resource_providers/{uuid}/usages": { path: `${provider}/usages` },
  "GET /resource_providers/{uuid}/aggregates": { path: `${provider}/aggregates` },
  "PUT /resource_providers/{uuid}/aggregates": {
    path: `${provider}/aggregates`,
    body: { ...wrongGeneration, aggregates: [other] },
    versions: ["1.0", "1.19", "1.39"],
  },
  "GET /resource_providers/{uuid}/allocations": { path: `${provider}/allocations` },
  "GET /resource_providers/{uuid}/traits": { path: `${provider}/traits` },
  "PUT /resource_providers/{uuid}/traits": {
    path: `${provider}/traits`,
    body: { ...wrongGeneration, traits: ["CUSTOM_SHINY"] },
  },
  "DELETE /resource_providers/{uuid}/traits": { path: `${provider}/traits`, takesEffect: true },
  "GET /resource_classes": {},
  "POST /resource_classes": { body: { name: "CUSTOM_GOLD" } },
  "GET /resource_classes/{name}": { path: "/resource_classes/{CUSTOM_GOLD}" },
  "PUT /resource_classes/{name}": { path: "/resource_classes/{CUSTOM_GOLD}", body: { name: "CUSTOM_SILVER" } },
  "DELETE /resource_classes/{name}": { path: "/resource_classes/{CUSTOM_GOLD}" },
  "GET /traits": { query: { name: "in:CUSTOM_SHINY", associated: "true" } },
  "GET /traits/{name}": { path: "/traits/{CUSTOM_SHINY}" },
  "PUT /traits/{name}": { path: "/traits/{CUSTOM_SHINY}" },
  "DELETE /traits/{name}": { path: "/traits/{CUSTOM_SHINY}" },
  "POST /allocations": { body: { [consumer]: held } },
  "GET /allocations/{consumer_uuid}": { path: `/allocations/{${consumer}}` },
  "PUT /allocations/{consumer_uuid}": {
    path: `/allocations/{${consumer}}`,
    body: { ...held, mappings: { "": [root] } },
  },
  "DELETE /allocations/{consumer_uuid}": { path: `/allocations/{${consumer}}`, takesEffect: true },
  "GET /allocation_candidates": {
    query: {
      ...{ resources: "VCPU:1", required: "CUSTOM_SHINY", member_of: root, in_tree: root, limit: "5" },
      ...{ resources1: "MEMORY_MB:1", required1: "!CUSTOM_SHINY", group_policy: "none", root_required: "CUSTOM_SHINY" },
      ...{ same_subtree: "1", in_tree1: child, resources_a: "VCPU:1", member_of_a: root },
    },
  },
  "GET /usages": { query: { project_id: "project", user_id: "user" } },
  "POST /reshaper": {
    body: {
      inventories: { [root]: { ...wrongGeneration, inventories: { VCPU: { total: 9 } } } },
      allocations: { [consumer]: held },
    },
  },
};

describe("malformed requests", () => {
  let rig: PlacementRig;
  let http: Pool;
  beforeAll(async () => {
    rig = await PlacementRig.start();
    const { client } = rig;
    for (const name of ["CUSTOM_GOLD", "CUSTOM_SILVER"]) await client.must("PUT", `/resource_classes/${name}`);
    await client.must("PUT", "/traits/CUSTOM_SHINY");
    const traits = ["CUSTOM_SHINY"];
    await client.makeProvider(root, { inventories: { VCPU: 8, CUSTOM_GOLD: 1 }, traits, aggregates: [root] });
    await client.makeProvider(child, { parent: root, inventories: { MEMORY_MB: 8 } });
    await client.makeProvider(other, { inventories: { VCPU: 8 } });
    await client.must("PUT", `/allocations/${consumer}`, { body: { ...held, consumer_generation: null } });
    await withClient(rig.databaseUrl(), async (database) => {
      await database.query("update resource_providers set generation = $1", [GENERATION]);
      await database.query("update consumers set generation = $1", [GENERATION]);
    });
    http = new Pool(rig.url, { connections: AT_ONCE, pipelining: 1 });
  });
  afterAll(async () => {
    await http.close();
    await rig.close();
  });

  const everything = async () => ({ ledger: await rig.dump(), names: await rig.names() });

  async function send({ method, path, headers, body }: RawRequest): Promise<{ status: number; text: string }> {
    const response = await http.request({ method: method as "GET", path, headers: { ...headers }, body });
    return { status: response.statusCode, text: await response.body.text() };
  }

  /** Every answer is a success or a client error, and has the declared content type. */
  async function isAnswered(request: RawRequest): Promise<void> {
    const { status, text } = await send(request);
    expect(status, `${request.method} ${request.path}: ${text}`).toBeLessThan(500);
    if (status >= 400 && request.method !== "HEAD" && !text.startsWith("<html>"))
      expect(JSON.parse(text)).toBeTypeOf("object");
  }

  test("the table has an entry for every route", () => {
    const routes = Object.entries(PLACEMENT_ROUTES).flatMap(([path, verbs]) =>
      path === "" ? [] : Object.keys(verbs).map((verb) => `${verb} ${path}`),
    );
    expect(Object.keys(FUZZED).sort()).toEqual(routes.sort());
  });

  test.each(Object.keys(FUZZED))(`${ROUNDS * AT_ONCE} to %s: never a 5xx, never a change`, async (name) => {
    const [method, path] = name.split(" ") as [FuzzedRoute["method"], string];
    const before = await everything();
    const requests = malformedRequests({ method, path, ...FUZZED[name] });
    await fc.assert(
      fc.asyncProperty(fc.array(requests, { minLength: AT_ONCE, maxLength: AT_ONCE }), async (batch) => {
        await Promise.all(batch.map(isAnswered));
      }),
      { seed: SEED, numRuns: ROUNDS, endOnFailure: true },
    );
    expect(await everything()).toEqual(before);
    expect(rig.log.filter((line) => line["level"] === "error")).toEqual([]);
  });

  test("verbs that no route has, on any path: never a 5xx, never a change", async () => {
    const before = await everything();
    const paths = Object.entries(FUZZED).map(([name, { path }]) =>
      (path ?? name.split(" ")[1]!).replaceAll(/[{}]/g, ""),
    );
    const request = fc.record({
      method: fc.constantFrom("PATCH", "OPTIONS", "HEAD", "TRACE", "PROPFIND", "LOCK", "MKCOL", "SEARCH", "REPORT"),
      path: fc.constantFrom(...paths, "/nowhere", "//", "/resource_providers/", "/../x"),
      headers: fc.constant({ "x-auth-token": "admin" }),
      body: fc.constant(null),
    });
    await fc.assert(fc.asyncProperty(request, isAnswered), { seed: SEED, numRuns: 1_000 });
    expect(await everything()).toEqual(before);
  });

  test("bytes that are not HTTP: answered with 400 or nothing, and the next client is served", async () => {
    const line = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
      fc
        .constantFrom(
          ...[
            "GET",
            "GET /",
            "GET / HTTP/9.9",
            "PUT /traits/CUSTOM_X HTTP/1.1",
            "\u0000",
            "POST /allocations HTTP/1.1",
          ],
          ...["content-length: x", "content-length: -1", "content-length: 99999999", "transfer-encoding: chunked", "a"],
          ...["host: x", "host: ", "x-auth-token: admin", "content-type: application/json", "", "zz", "5", "{}", ": :"],
        )
        .map((text) => Buffer.from(text)),
    );
    const before = await everything();
    await fc.assert(
      fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 8 }), async (lines) => {
        const answer = await talk(rig.url, Buffer.concat(lines.flatMap((one) => [one, Buffer.from("\r\n")])));
        expect(answer).not.toMatch(/^HTTP\/1\.1 5/m);
      }),
      { seed: SEED, numRuns: 500 },
    );
    await rig.client.must("GET", "/");
    expect(await everything()).toEqual(before);
  });
});

/** Sends only the bytes. Resolves with everything that the server sent before it closed the connection. */
function talk(url: string, bytes: Buffer): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect(Number(port), hostname, () => socket.end(bytes));
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", () => resolve(answer));
    socket.on("close", () => resolve(answer));
  });
}
