import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { StorageGate } from "../../../runtime/storage-gate.ts";
import { DirectoryMark } from "./directory-mark.ts";
import { GuestDirs } from "./guest-dirs.ts";
import { KnownGuests } from "./known-guests.ts";

const GUEST = { host: "h", serverUuid: "s", attemptId: "t/0" };

/** A place for a directory of guests, and the notes of agents. `open` opens the directory as a new process of the agent does. */
function setUp() {
  const top = mkdtempSync(join(tmpdir(), "berth-mark-"));
  onTestFinished(() => rmSync(top, { recursive: true, force: true }));
  const path = join(top, "instances");
  const note = (agent: string) => join(top, "data", `${agent}.instances`);
  const open = async (agent = "a") => {
    const dirs = new GuestDirs(path, new StorageGate({ name: path }), new DirectoryMark(note(agent)));
    await dirs.open();
    return dirs;
  };
  return { path, note, open };
}

test("a directory is made and marked once, and is the same one for each later process and for other agents", async () => {
  const { path, open } = setUp();
  await open();
  expect(readdirSync(path)).toEqual([".berth-guests"]);
  for (const agent of ["a", "b", "b"]) await open(agent);
  expect(readdirSync(path)).toEqual([".berth-guests"]);
});

test("agents that mark a new directory at once agree on its mark", async () => {
  const { path, open } = setUp();
  mkdirSync(path);
  const agents = ["a", "b", "c", "d"];
  await Promise.all([...agents, ...agents].map((agent) => open(agent)));
  expect(readdirSync(path)).toEqual([".berth-guests"]);
  for (const agent of agents) await open(agent);
});

test.each(["empty", "missing", "another"])(
  "an %s directory in its place is refused, and nothing is made there",
  async (what) => {
    const { path, note, open } = setUp();
    await open();
    renameSync(path, `${path}.away`);
    if (what !== "missing") mkdirSync(path);
    if (what === "another") await open("other");
    await expect(open()).rejects.toThrow(
      `Mount the file system with the guests. If they are gone for good, remove ${note("a")}`,
    );
    expect(existsSync(path) && readdirSync(path)).toEqual(
      what === "missing" ? false : what === "empty" ? [] : [".berth-guests"],
    );
    rmSync(path, { recursive: true, force: true });
    renameSync(`${path}.away`, path);
    await open();
  },
);

test("another directory is taken when the operator has removed the note", async () => {
  const { path, note, open } = setUp();
  await open();
  rmSync(path, { recursive: true });
  rmSync(note("a"));
  await open();
  await open();
  expect(readdirSync(path)).toEqual([".berth-guests"]);
});

test("a death between the mark and its note leaves a mark that the next process notes", async () => {
  const { path, note, open } = setUp();
  await open();
  rmSync(note("a"));
  await open();
  expect(existsSync(note("a"))).toBe(true);
  expect(readdirSync(path)).toEqual([".berth-guests"]);
});

test("no guest counts as lost while its directory's file system is away", async () => {
  const { path, open } = setUp();
  const guests = new KnownGuests(await open(), () => () => undefined);
  expect(await guests.isLost(GUEST)).toBe(true);
  renameSync(path, `${path}.away`);
  mkdirSync(path);
  await expect(guests.isLost(GUEST)).rejects.toThrow("is not the directory in which this agent's guests are");
});
