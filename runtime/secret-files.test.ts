import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readProcessSettings } from "./secret-files.ts";
import { text, url } from "./setting-kinds.ts";
import { helpText, optional, SettingsError, setting } from "./settings.ts";

const declaration = {
  command: "berth try",
  about: "Tries.",
  settings: {
    databaseUrl: optional(url("postgres"), { about: "a database" }),
    name: optional(text(), { about: "a name" }),
  },
};
let dir: string;
let file: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "berth-secret-"));
  file = join(dir, "url");
  writeFileSync(file, "postgres://berth:s3cret@db/api\n");
});
afterAll(() => rmSync(dir, { recursive: true }));

const read = (env: Readonly<Record<string, string>>) => readProcessSettings(declaration, { argv: [], env });

test("a setting that may hold a password is read from the file that its variable with _FILE names", () => {
  expect(read({ BERTH_DATABASE_URL_FILE: file })).toMatchObject({
    settings: { databaseUrl: "postgres://berth:s3cret@db/api" },
  });
  expect(read({ BERTH_DATABASE_URL_FILE: "" })).toMatchObject({ settings: { databaseUrl: null } });
  expect(read({ BERTH_NAME_FILE: file })).toMatchObject({ settings: { name: null } });
});

test("setting both variables, or a file that cannot be read, is refused by name and without showing the secret", () => {
  const both = { BERTH_DATABASE_URL: "postgres://x:s3cret@y/z", BERTH_DATABASE_URL_FILE: file };
  expect(() => read(both)).toThrow(new SettingsError("give either BERTH_DATABASE_URL or BERTH_DATABASE_URL_FILE"));
  expect(() => read({ BERTH_DATABASE_URL_FILE: join(dir, "none") })).toThrow(/^BERTH_DATABASE_URL_FILE: ENOENT/);
});

test("a file that cannot be read does not hide the other errors", () => {
  const env = { BERTH_DATABASE_URL_FILE: join(dir, "none") };
  const command = { ...declaration, settings: { ...declaration.settings, cell: setting(text(), { about: "a cell" }) } };
  expect(() => readProcessSettings(command, { argv: ["--nam=x"], env })).toThrow(
    /^3 errors:\n {2}Unknown option '--nam'.*\n {2}BERTH_DATABASE_URL_FILE: ENOENT.*\n {2}BERTH_CELL \(--cell\) is missing/,
  );
});

test("the help names the variable with _FILE for each setting that has one", () => {
  const help = helpText(declaration);
  expect(help).toContain("BERTH_DATABASE_URL, BERTH_DATABASE_URL_FILE");
  expect(help).not.toContain("BERTH_NAME_FILE");
});
