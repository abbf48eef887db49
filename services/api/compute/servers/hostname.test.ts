import { expect, test } from "vitest";
import { hostnameOf, readHostname } from "./hostname.ts";

test.each([
  ["web", "web"],
  ["My_Web Server.example", "my-web-server-example"],
  ["-web-", "web"],
  ["Web-01-", "web-01"],
  ["日本é", "é"],
  ["!!!", "Server-u1"],
  ["x".repeat(80), "x".repeat(63)],
])("a server named %j has the host name %j", (name, expected) => {
  expect(hostnameOf({ uuid: "u1", name, hostname: "" })).toBe(expected);
});

test("a host name that was given takes precedence over the name", () => {
  expect(hostnameOf({ uuid: "u1", name: "web", hostname: "Db-1.example.org" })).toBe("Db-1.example.org");
});

test.each([
  [90, ["ab", "Web-1", "a".repeat(63)], ["a", "-ab", "ab-", "a.b", "a_b", "a".repeat(64), "", 5]],
  [94, ["a", "web-1.example.org", "under_score", "a".repeat(255)], ["", "a b", "a/b", "é", "a".repeat(256), null]],
])("at 2.%i it is one that Nova accepts", (minor, good, bad) => {
  for (const name of good) expect(readHostname(name, minor)).toBe(name);
  for (const name of bad) expect(() => readHostname(name, minor)).toThrow(/hostname/);
});

test("before 2.90 a host name cannot be given", () => {
  expect(readHostname(undefined, 89)).toBeUndefined();
  expect(() => readHostname("web", 89)).toThrow("Additional properties are not allowed ('hostname' was unexpected)");
});
