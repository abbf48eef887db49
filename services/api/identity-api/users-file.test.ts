import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { UserDirectory } from "./user-directory.ts";
import { readUsersFile, type UsersFile, writeUsersFile } from "./users-file.ts";

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "berth-users-"));
  path = join(directory, "users.yaml");
});
afterEach(() => rmSync(directory, { recursive: true }));

test("a generated file is readable for its owner alone, has random passwords, and is never replaced", () => {
  writeUsersFile(path);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const { users } = readUsersFile(path);
  expect(users.map(({ name }) => name)).toEqual(["admin", "demo"]);
  expect(new Set(users.map(({ password }) => password)).size).toBe(2);
  for (const { password } of users) expect(password).toMatch(/^[\w-]{24}$/);
  const text = readFileSync(path, "utf8");
  expect(() => writeUsersFile(path)).toThrow("EEXIST");
  expect(readFileSync(path, "utf8")).toBe(text);
});

test.each([
  ["users: [", "the document must be object"],
  ["users: []", "users must not have fewer than 1 items"],
  ["users: [{name: a, password: hidden, projects: {p: owner}}]", "users.0.projects.p"],
  ["users: [{name: a, password: hidden, projects: {}}]", "users.0.projects"],
  ["users: [{name: 'a b', password: hidden, projects: {p: admin}}]", "users.0.name"],
  ["users: [{name: a, password: hidden, projects: {p: admin}, role: admin}]", "users.0"],
  [
    "users: [{name: a, password: hidden, projects: {p: admin}}, {name: a, password: hidden, projects: {q: admin}}]",
    "names the user a twice",
  ],
])("refuses %s with the place of the fault, and shows no password", (text, why) => {
  writeFileSync(path, text, { mode: 0o600 });
  expect(() => readUsersFile(path)).toThrow(why);
  expect(() => readUsersFile(path)).not.toThrow("hidden");
});

test("refuses a file that is missing, or that others can read", () => {
  expect(() => readUsersFile(path)).toThrow(/--users-file\) ".*users\.yaml" cannot be read: ENOENT/);
  writeUsersFile(path);
  chmodSync(path, 0o640);
  expect(() => readUsersFile(path)).toThrow("chmod 600");
});

test("ids follow from names, and a role brings those that it implies", () => {
  const file: UsersFile = { users: [{ name: "ann", password: "x", projects: { red: "member", blue: "admin" } }] };
  const [one, other] = [new UserDirectory(file), new UserDirectory(file)];
  expect(one.users).toEqual(other.users);
  const [red, blue] = one.projects;
  const [ann] = one.users;
  expect([red?.name, blue?.name, ann?.defaultProjectId]).toEqual(["red", "blue", red?.id]);
  expect([...(ann?.roles.values() ?? [])]).toEqual([
    ["member", "reader"],
    ["admin", "member", "reader"],
  ]);
  expect(red?.id).toMatch(/^[0-9a-f]{32}$/);
});

test("a password is right only for its own user", () => {
  const users = ["ann", "bob"].map((name) => ({ name, password: `${name}'s`, projects: { p: "reader" as const } }));
  const known = new UserDirectory({ users });
  const [ann, bob] = known.users;
  const asked = [ann, bob, null].map((user) =>
    ["ann's", "bob's", ""].map((word) => known.isPassword(user ?? null, word)),
  );
  expect(asked).toEqual([
    [true, false, false],
    [false, true, false],
    [false, false, false],
  ]);
});
