import { describe, expect, test } from "vitest";
import fc from "../../../test/rigs/property.ts";
import { type AccessRule, explainRefusal, readAccessRules } from "./access-rules.ts";

const call = { services: ["compute"], method: "GET", path: "/v2.1/servers/1/tags" };
const rule = (path: string): AccessRule => ({ service: "compute", method: "GET", path });
const admits = (path: string, asked: Partial<typeof call> = {}) =>
  explainRefusal([rule(path)], { ...call, ...asked }) === null;

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
  expect(explainRefusal([], call)).toContain("do not admit this call");
  expect(explainRefusal([rule("/**")], undefined)).toContain("do not admit this call");
});

test("patterns of any length admit the same paths as a regular expression", () => {
  const piece = fc.constantFrom("*", "**", "{id}", "/", "a", "b", "{", ".");
  const paths = fc.array(fc.constantFrom("/", "a", "b", "{", "."), { maxLength: 60 });
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), paths, (pieces, characters) => {
      const [pattern, path] = [pieces.join(""), characters.join("")];
      const expected = new RegExp(`^${pattern.replace(/\{[^}]*\}|\*\*|\*|[.{]/g, regularFor)}$`);
      fc.pre(pieces.filter((one) => one.length > 1 || one === "*").length < 6);
      expect([pattern, path, admits(pattern, { path })]).toEqual([pattern, path, expected.test(path)]);
    }),
    { seed: 20261125, numRuns: 2_000 },
  );
  expect(admits(`${"a".repeat(100)}*${"b".repeat(100)}`, { path: `${"a".repeat(200)}${"b".repeat(200)}` })).toBe(true);
  expect(admits(`${"a".repeat(100)}*${"b".repeat(100)}`, { path: `${"a".repeat(200)}${"b".repeat(99)}` })).toBe(false);
});

const regularFor = (piece: string): string =>
  piece === "**" ? ".*" : piece === "*" || piece.length > 1 ? "[^/]+" : `\\${piece}`;

describe("the work for a call is bounded", () => {
  test("a pattern that a regular expression would try for ever is decided at once", () => {
    expect(admits(`${"**a".repeat(40)}b`, { path: "a".repeat(1_000) })).toBe(false);
  });

  test("a path that is too long, rules that are too many, and a rule that is too long admit nothing, and say so", () => {
    const long = { ...call, path: `/${"a".repeat(1_024)}` };
    expect(explainRefusal([rule("/**")], long)).toContain("at most 1024 characters, and this one has 1025");
    expect(explainRefusal([rule("/**")], { ...call, path: `/${"a".repeat(1_023)}` })).toBeNull();
    const many = Array.from({ length: 101 }, () => rule("/**"));
    expect(explainRefusal(many, call)).toContain("has 101 access rules, and at most 100 are supported");
    expect(explainRefusal(many.slice(1), call)).toBeNull();
    expect(explainRefusal([rule("/**"), rule(`/${"*".repeat(225)}`)], call)).toContain(
      "226 characters, and at most 225",
    );
  });
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
