import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, describe, expect, test } from "vitest";
import { Policy } from "../policy/policy.ts";
import type { PlacementDeps } from "./app.ts";
import { Cors, DEFAULT_CORS_SETTINGS } from "./cors.ts";
import { authenticateNoauth2 } from "./identity.ts";
import { mountPlacement } from "./mount.ts";
import { openApiDocument } from "./openapi.ts";
import { secureDefaults } from "./placement-rules.ts";

const origin = "http://valid.example.com";
// No call here gets as far as the store.
const untouched = <Part>() => ({}) as Part;

let http: FastifyInstance;
afterEach(() => http.close());

async function mounted(mount: string, cors?: Cors): Promise<FastifyInstance> {
  http = Fastify();
  const deps: PlacementDeps = {
    store: untouched(),
    source: untouched(),
    authenticate: authenticateNoauth2,
    policy: new Policy(secureDefaults()),
    cors,
    onUnexpected: (error) => {
      throw error;
    },
    onBoundReached: () => {},
  };
  await mountPlacement(http, deps, mount);
  return http;
}

describe("the OpenAPI document", () => {
  test.each(["", "/placement"])("is served at %j without a token", async (mount) => {
    const answer = await (await mounted(mount)).inject({ url: `${mount}/openapi.json` });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(answer.json()).toEqual(JSON.parse(JSON.stringify(openApiDocument(mount))));
  });
  test("is the only thing under that name", async () => {
    const answer = await (await mounted("")).inject({
      method: "POST",
      url: "/openapi.json",
      headers: { "x-auth-token": "admin" },
    });
    expect(answer.statusCode).toBe(404);
  });
});

describe("a browser's call from another site", () => {
  const cors = new Cors({ ...DEFAULT_CORS_SETTINGS, allowedOrigins: [origin] });
  test("is preflighted without a token", async () => {
    const answer = await (await mounted("", cors)).inject({
      method: "OPTIONS",
      url: "/resource_providers",
      headers: { origin, "access-control-request-method": "GET", "access-control-request-headers": "x-auth-token" },
    });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers).toMatchObject({
      "access-control-allow-origin": origin,
      "access-control-allow-headers": "x-auth-token",
    });
  });
  test.each([
    ["/", 200],
    ["/resource_providers", 401],
    ["/openapi.json", 200],
  ])("of %s gets %i, and the answer is readable", async (url, status) => {
    const answer = await (await mounted("", cors)).inject({ url, headers: { origin } });
    expect(answer.statusCode).toBe(status);
    expect(answer.headers).toMatchObject({
      "access-control-allow-origin": origin,
      vary: expect.stringMatching(/Origin$/),
    });
  });
  test("gets no permission where none is configured, and OPTIONS stays a method that is not allowed", async () => {
    await mounted("");
    const options = await http.inject({
      method: "OPTIONS",
      url: "/",
      headers: { origin, "access-control-request-method": "GET" },
    });
    expect(options.statusCode).toBe(405);
    const root = await http.inject({ url: "/", headers: { origin } });
    expect(root.headers).not.toHaveProperty("access-control-allow-origin");
  });
});

describe("the usage of a project", () => {
  const headers = { "x-auth-token": "reader:mine", "x-roles": "reader", "openstack-api-version": "placement 1.9" };
  test.each(["project_id=other", "project_id=mine&project_id=other", ""])(
    "is hidden from a reader of another project: %j",
    async (query) => {
      const answer = await (await mounted("")).inject({ url: `/usages?${query}`, headers });
      expect(answer.statusCode).toBe(403);
    },
  );
});
