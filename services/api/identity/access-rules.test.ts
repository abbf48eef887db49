import { describe, expect, test } from "vitest";
import { admitsCall, readAccessRules } from "./access-rules.ts";

const call = { services: ["compute"], method: "GET", path: "/v2.1/servers/1/tags" };
const admits = (path: string, asked: Partial<typeof call> = {}) =>
  admitsCall([{ service: "compute", method: "GET", path }], { ...call, ...asked });

// Every row was also evaluated by keystonemiddleware's `_path_matches`, with the same result.
describe("patterns of paths admit the same paths as keystonemiddleware", () => {
  test.each([
    ["/v2.1/servers", "/v2.1/servers", true],
    ["/v2.1/servers", "/v2.1/servers/", false],
    ["/v2.1/servers", "/v2.1/servers/1", false],
    ["/v2.1/servers/*", "/v2.1/servers/1", true],
    ["/v2.1/servers/*", "/v2.1/servers/", false],
    ["/v2.1/servers/*", "/v2.1/servers/1/tags", false],
    ["/v2.1/servers/{id}", "/v2.1/servers/1", true],
    ["/v2.1/servers/{server_id}/tags", "/v2.1/servers/1/tags", true],
    ["/v2.1/servers/{server_id}/tags", "/v2.1/servers//tags", false],
    ["/v2.1/*/x*", "/v2.1/servers/xy", true],
    ["/v2.1/*/x*", "/v2.1/servers/x", false],
    ["/v2.1/**", "/v2.1/servers/1/tags", true],
    ["/v2.1/**", "/v2.1/", true],
    ["/v2.1/**", "/v2.1", false],
    ["/v2.1/**/tags", "/v2.1/servers/1/tags", true],
    ["/v2.1/**/tags", "/v2.1/servers/1/tag", false],
    ["/**/servers/*", "/compute/v2.1/servers/1", true],
    ["**", "", true],
    ["", "/", false],
  ])("%j and %j: %s", (pattern, path, expected) => expect(admits(pattern, { path })).toBe(expected));
});

test("a rule is for one method of one service", () => {
  expect(admits("/**")).toBe(true);
  expect(admits("/**", { method: "POST" })).toBe(false);
  expect(admits("/**", { services: ["image"] })).toBe(false);
  expect(admitsCall([], call)).toBe(false);
});

test("a pattern that a regular expression would try for ever is decided at once", () => {
  expect(admits(`${"**a".repeat(40)}b`, { path: "a".repeat(8_000) })).toBe(false);
});

test("rules of another form are not taken for none", () => {
  expect(readAccessRules(undefined)).toBeNull();
  expect(readAccessRules({ id: "x", restricted: true })).toBeNull();
  expect(readAccessRules({ access_rules: [] })).toEqual([]);
  expect(readAccessRules({ access_rules: [{ id: "1", service: "compute", method: "GET", path: "/" }] })).toEqual([
    { service: "compute", method: "GET", path: "/" },
  ]);
  for (const access_rules of ["all", [{ service: "compute" }], [null], {}])
    expect(readAccessRules({ access_rules })).toBeUndefined();
  expect(readAccessRules("text")).toBeUndefined();
});
