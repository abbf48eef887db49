import { describe, expect, test } from "vitest";
import type { TokenIdentity } from "../identity/token-identity.ts";
import { type Check, holds, parseCheck } from "./check.ts";

const person = (userId: string, projectId: string, roles: readonly string[]): TokenIdentity => ({
  userId,
  projectId,
  systemScope: null,
  roles,
});
const asking: Readonly<Record<string, TokenIdentity>> = {
  A: person("u0", "p0", ["admin"]),
  R: person("u1", "p1", ["Reader"]),
  S: person("u2", "p2", ["service", "reader"]),
  N: person("u1", "p3", []),
};
const target = { project_id: "p1", user_id: "u1", x: "ader" };
const rules: ReadonlyMap<string, Check> = new Map([
  ["owner", parseCheck("project_id:%(project_id)s and role:reader")],
  ["admins", parseCheck("role:admin")],
]);

/** Returns the letters of the callers that the expression allows. */
const lets = (expression: string): string =>
  Object.entries(asking)
    .filter(([, identity]) => holds(parseCheck(expression), rules, identity, target))
    .map(([letter]) => letter)
    .join("");

// Every row was also evaluated by oslo.policy 4.0, with the same result.
describe("lets the same callers as oslo.policy", () => {
  test.each([
    ["", "ARSN"],
    ["@", "ARSN"],
    ["!", ""],
    ["role:admin", "A"],
    ["role:ADMIN", "A"],
    ["ROLE:admin", ""],
    ["role:admin or role:service", "AS"],
    ["role:reader Or role:admin", "ARS"],
    ["role:admin AND NOT role:reader", "A"],
    ["role:reader and project_id:%(project_id)s", "R"],
    ["user_id:%(user_id)s", "RN"],
    ["project_id:p1", "R"],
    ["roles:reader", "S"],
    ["system_scope:all", ""],
    ["domain_id:d1", ""],
    ["nothing:here", ""],
    ["rule:owner", "R"],
    ["rule:owner or rule:admins", "AR"],
    ["rule:nowhere", ""],
    ["not rule:nowhere", "ARSN"],
    ["'p1':%(project_id)s", "ARSN"],
    ['"p1":%(project_id)s', "ARSN"],
    ["'p2':%(project_id)s", ""],
    ["True:True", "ARSN"],
    ["1:1", "ARSN"],
    ["2:%(missing)s", ""],
    ["not x:%(missing)s", "ARSN"],
    ["role:%(project_id)s", ""],
    ["role:re%(x)s", "RS"],
    ["project_id:%%", ""],
  ])("%j: %s", (expression, expected) => expect(lets(expression)).toBe(expected));
});

describe("binds `not` more tightly than `and`, and `and` more tightly than `or`", () => {
  test.each([
    ["role:admin or role:reader and project_id:%(project_id)s", "AR"],
    ["(role:admin or role:reader) and project_id:%(project_id)s", "R"],
    ["role:reader and project_id:%(project_id)s or role:admin", "AR"],
    ["role:admin or role:service and role:reader or user_id:u1", "ARSN"],
    ["role:admin and role:reader or role:service and user_id:u1", ""],
    ["role:admin or role:reader and not role:service and project_id:p1", "AR"],
    ["not role:admin", "RSN"],
    ["not not role:admin", "A"],
    ["not role:admin and role:reader", "RS"],
    ["not (role:admin and role:reader)", "ARSN"],
    ["((role:admin))", "A"],
    ["( role:admin ) or ( ( role:service ) )", "AS"],
  ])("%j: %s", (expression, expected) => expect(lets(expression)).toBe(expected));
});

describe("refuses expressions that oslo.policy would log and treat as allowing no caller", () => {
  test.each([
    ["   ", 'a check is missing at word 1 of "   "'],
    ["admin", '"admin" is not a check at word 1'],
    ["'role:admin'", `"'role:admin'" is not a check at word 1`],
    [":x", '":x" is not a check at word 1'],
    ["role:admin role:reader", '"role:reader" is unexpected at word 2'],
    ["role:admin or", "a check is missing at word 3"],
    ["role:admin or or role:reader", "a check is missing at word 3"],
    ["and role:admin", "a check is missing at word 1"],
    ["not", "a check is missing at word 2"],
    ["(role:admin", "a closing parenthesis is missing at word 3"],
    ["role:admin)", '")" is unexpected at word 2'],
    ["(role:admin or role:service)and role:reader", "a closing parenthesis is missing at word 5"],
    ["()", "a check is missing at word 2"],
    ["role:100%", '"100%" has a % that begins neither %(name)s nor %% at word 1'],
    ["http://policy.example.org/check", "checks by asking another server are not supported at word 1"],
  ])("%j", (expression, message) => expect(() => parseCheck(expression)).toThrow(message));
});

test("no caller is the owner of a resource without a project", () => {
  const homeless: TokenIdentity = { userId: "u1", projectId: null, systemScope: null, roles: [] };
  const check = parseCheck("project_id:%(project_id)s");
  expect(holds(check, rules, homeless, { project_id: null })).toBe(false);
  expect(holds(parseCheck("project_id:None"), rules, homeless, {})).toBe(false);
});

test("applies the rule `default`, if there is one, to undefined names", () => {
  const open = new Map([...rules, ["default", parseCheck("role:service")] as const]);
  expect(holds(parseCheck("rule:nowhere"), open, asking.S!, target)).toBe(true);
  expect(holds(parseCheck("rule:nowhere"), open, asking.A!, target)).toBe(false);
});
