import { describe, expect, test } from "vitest";
import type { TokenIdentity } from "../identity/token-identity.ts";
import { legacyDefaults, RULES, type RuleName, secureDefaults } from "../placement/placement-rules.ts";
import { Policy } from "./policy.ts";

const identity = (...roles: string[]): TokenIdentity => ({ userId: "u", projectId: "p", systemScope: null, roles });
const admin = identity("admin", "member", "reader");
const service = identity("service");
const reader = identity("reader");
const systemAdmin: TokenIdentity = { ...admin, projectId: null, systemScope: "all" };
const domainAdmin: TokenIdentity = { ...admin, projectId: null, domainId: "d" };
const own = { project_id: "p", user_id: "u" };
const foreign = { project_id: "other" };
const rules: readonly RuleName[] = Object.values(RULES);

/** Returns the rules that allow this identity. */
const letting = (policy: Policy, who: TokenIdentity, target = own) =>
  rules.filter((rule) => policy.allows(rule, who, target));

describe("legacy defaults", () => {
  const policy = new Policy(legacyDefaults());
  test("let an administrator of any project do everything", () => expect(letting(policy, admin)).toEqual(rules));
  test("let a service do everything", () => expect(letting(policy, service)).toEqual(rules));
  test("let a reader see the usage of the own project, and nothing else", () => {
    expect(letting(policy, reader)).toEqual([RULES.usages]);
    expect(policy.allows(RULES.usages, reader, foreign)).toBe(false);
    expect(policy.allows(RULES.usages, admin, foreign)).toBe(true);
  });
});

describe("secure defaults", () => {
  const policy = new Policy(secureDefaults());
  test("let an administrator do everything except reshape", () =>
    expect(letting(policy, admin)).toEqual(rules.filter((rule) => rule !== RULES.reshape)));
  test("let a service do everything", () => expect(letting(policy, service)).toEqual(rules));
  test("let a reader see the usage of the own project, and nothing else", () => {
    expect(letting(policy, reader)).toEqual([RULES.usages]);
    expect(policy.allows(RULES.usages, reader, foreign)).toBe(false);
  });
});

describe("scope", () => {
  const open = new Policy(legacyDefaults(), Object.fromEntries(rules.map((rule) => [rule, "@"])));
  test("a rule that admits everybody admits every caller with a project, whatever the roles", () =>
    expect(letting(open, identity())).toEqual(rules));
  test.each([
    ["system", systemAdmin],
    ["domain", domainAdmin],
  ])("a token of %s scope may do nothing, even where the rule admits everybody", (_scope, who) => {
    for (const policy of [open, new Policy(legacyDefaults()), new Policy(secureDefaults())])
      expect(letting(policy, who)).toEqual([]);
  });
});

describe("overrides", () => {
  test("replace a rule, and the rules made of it", () => {
    const policy = new Policy(secureDefaults(), { admin_or_service_api: "role:operator", "placement:traits:list": "" });
    expect(policy.allows(RULES.providersList, identity("operator"), own)).toBe(true);
    expect(policy.allows(RULES.providersList, admin, own)).toBe(false);
    expect(policy.allows(RULES.traitsList, identity(), own)).toBe(true);
  });
  test("replace the previous ones", () => {
    const policy = new Policy(secureDefaults(), { [RULES.reshape]: "@" });
    policy.replaceOverrides({ [RULES.traitsList]: "@" });
    expect(policy.allows(RULES.reshape, reader, own)).toBe(false);
    expect(policy.allows(RULES.traitsList, reader, own)).toBe(true);
  });
  test("that cannot be parsed are refused, and the previous ones stay", () => {
    const policy = new Policy(secureDefaults(), { [RULES.traitsList]: "@" });
    expect(() => policy.replaceOverrides({ [RULES.reshape]: "role:a or" })).toThrow(
      'policy rule "placement:reshaper:reshape": a check is missing at word 3 of "role:a or"',
    );
    expect(policy.allows(RULES.traitsList, reader, own)).toBe(true);
  });
  test.each([
    [{ a: "rule:a" }, "a → a"],
    [{ a: "not rule:b", b: "role:x or rule:c", c: "rule:a" }, "a → b → c → a"],
    [{ default: "rule:nowhere" }, "default → nowhere → nowhere"],
    [{ service_api: "rule:placement:reshaper:reshape" }, "service_api → placement:reshaper:reshape → service_api"],
  ])("that call each other in a circle are refused: %j", (overrides, circle) => {
    expect(() => new Policy(secureDefaults(), overrides as unknown as Record<string, string>)).toThrow(circle);
  });
  test("are reported as suspicious when no route uses them or a rule that they name does not exist", () => {
    const policy = new Policy(legacyDefaults());
    const overrides = {
      "placement:trait:list": "@",
      mine: "role:x",
      [RULES.traitsList]: "rule:mine or rule:nobodys",
      admin_api: "role:boss",
    };
    expect(policy.doubtsAbout(overrides)).toEqual([
      'no route uses rule "placement:trait:list"',
      'rule "nobodys" is referred to but does not exist',
    ]);
    expect(policy.doubtsAbout({ default: "!" })).toEqual([]);
  });
});
