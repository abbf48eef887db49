import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FunctionNotes } from "./function-notes.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "berth-function-notes-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const note = { dir: "/guests/a", portId: "p", mac: "fa:16:3e:00:00:01" };
const opened = (boot = "b1", name = "notes.json") => new FunctionNotes({ path: join(dir, "data", name), boot });

test("the next process knows the functions that were noted and not forgotten, until the host restarts", () => {
  const first = opened();
  first.put("0000:3b:02.0", note);
  first.put("0000:3b:02.1", note);
  first.remove("0000:3b:02.1");
  expect([...opened().all()]).toEqual([["0000:3b:02.0", note]]);
  expect(opened("b2").all().size).toBe(0);
  expect(readdirSync(join(dir, "data"))).toEqual(["notes.json"]);
});

test.each([
  "",
  "{",
  "[]",
  '{"version":1,"boot":"b1","functions":{"a":{"dir":1}}}',
  '{"version":2,"boot":"b1","functions":{}}',
])("a file with %j counts as empty, and is written over", (text) => {
  opened().put("0000:3b:02.0", note);
  writeFileSync(join(dir, "data/notes.json"), text);
  const notes = opened();
  expect(notes.all().size).toBe(0);
  notes.put("0000:3b:02.1", note);
  expect(JSON.parse(readFileSync(join(dir, "data/notes.json"), "utf8")).functions).toEqual({ "0000:3b:02.1": note });
});

test("a note that cannot be written is kept in memory, and is written with the next one", () => {
  writeFileSync(join(dir, "data"), "a file in the place of the directory");
  const notes = opened();
  notes.put("0000:3b:02.0", note);
  expect(notes.all().get("0000:3b:02.0")).toEqual(note);
  rmSync(join(dir, "data"));
  notes.put("0000:3b:02.1", note);
  expect([...opened().all().keys()]).toEqual(["0000:3b:02.0", "0000:3b:02.1"]);
});
