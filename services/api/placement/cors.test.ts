import { describe, expect, test } from "vitest";
import { Cors, type CorsSettings, DEFAULT_CORS_SETTINGS } from "./cors.ts";
import type { PlacementResponse } from "./http.ts";

const valid = "http://valid.example.com";
const application: PlacementResponse = { status: 204, headers: { vary: "openstack-api-version" }, body: "" };

const ask = (
  settings: Partial<CorsSettings>,
  method: string,
  headers: Readonly<Record<string, string>>,
  response = application,
) =>
  new Cors({
    ...DEFAULT_CORS_SETTINGS,
    allowedOrigins: [valid],
    allowHeaders: ["OpenStack-API-Version"],
    ...settings,
  }).around({ method, headers, requestId: "req-1" }, async () => response);
const preflight = (headers: Readonly<Record<string, string>>, settings: Partial<CorsSettings> = {}) =>
  ask(settings, "OPTIONS", { origin: valid, "access-control-request-method": "PUT", ...headers });

describe("a preflight", () => {
  test("that asks for allowed methods and headers gets permission", async () => {
    expect(await preflight({ "access-control-request-headers": "openstack-api-version, Content-Type" })).toEqual({
      status: 200,
      body: "",
      headers: {
        "x-openstack-request-id": "req-1",
        vary: "Origin",
        "access-control-allow-origin": valid,
        "access-control-allow-credentials": "true",
        "access-control-max-age": "3600",
        "access-control-allow-methods": "PUT",
        "access-control-allow-headers": "openstack-api-version,Content-Type",
      },
    });
  });
  test("omits headers that the settings leave out", async () => {
    const { headers } = await preflight({}, { allowCredentials: false, maxAgeSeconds: 0 });
    expect(Object.keys(headers).sort()).toEqual([
      "access-control-allow-methods",
      "access-control-allow-origin",
      "vary",
      "x-openstack-request-id",
    ]);
  });
  test.each([
    ["from elsewhere", { origin: "http://invalid.example.com" }],
    ["from the same host by another scheme", { origin: "https://valid.example.com" }],
    ["for a verb that is not allowed", { "access-control-request-method": "PROPFIND" }],
    ["for a header that is not allowed", { "access-control-request-headers": "openstack-api-version, x-secret" }],
  ])("%s gets 200 and no permission", async (_what, headers) => {
    expect(await preflight(headers)).toEqual({ status: 200, body: "", headers: { "x-openstack-request-id": "req-1" } });
  });
  test("that names no verb, or no origin, gets no permission", async () => {
    for (const headers of [{ origin: valid }, { "access-control-request-method": "GET" }]) {
      const answer = await ask({}, "OPTIONS", headers as Record<string, string>);
      expect(answer.headers).not.toHaveProperty("access-control-allow-origin");
    }
  });
});

describe("a request", () => {
  test("from an allowed origin gets the usual answer, with permission to read it", async () => {
    expect(await ask({ exposeHeaders: ["x-openstack-request-id", "location"] }, "PUT", { origin: valid })).toEqual({
      ...application,
      headers: {
        vary: "openstack-api-version,Origin",
        "access-control-allow-origin": valid,
        "access-control-allow-credentials": "true",
        "access-control-expose-headers": "x-openstack-request-id,location",
      },
    });
  });
  test("that failed may be read, too", async () => {
    const answer = await ask({}, "GET", { origin: valid }, { status: 401, headers: {}, body: "{}" });
    expect(answer).toMatchObject({
      status: 401,
      body: "{}",
      headers: { vary: "Origin", "access-control-allow-origin": valid },
    });
  });
  test("from another origin, or without one, gets the answer without CORS headers", async () => {
    expect(await ask({}, "GET", { origin: "http://invalid.example.com" })).toBe(application);
    expect(await ask({}, "GET", {})).toBe(application);
  });
  test("a star allows every origin, and the answer then names the star", async () => {
    expect((await ask({ allowedOrigins: ["*"] }, "GET", { origin: "http://any.example.com" })).headers).toMatchObject({
      "access-control-allow-origin": "*",
    });
  });
});

test("without an allowed origin nothing changes, not even OPTIONS", async () => {
  expect(await ask({ allowedOrigins: [] }, "OPTIONS", { origin: valid, "access-control-request-method": "GET" })).toBe(
    application,
  );
});
