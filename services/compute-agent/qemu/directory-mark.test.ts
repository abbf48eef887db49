import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { StorageGate } from "../../../runtime/storage-gate.ts";
import { NANO_DEFAULTS } from "../../../test/rigs/qemu-guests.ts";
import { DirectoryMark } from "./directory-mark.ts";
import { GuestDirs } from "./guest-dirs.ts";
import { hostedGuests } from "./hosted-guests.ts";
import { KnownGuests } from "./known-guests.ts";
import { QemuDriver } from "./qemu-driver.ts";

const GUEST = { host: "h", serverUuid: "s", attemptId: "t/0" };

/** A place for a directory of guests, and the notes of agents. `open` opens the directory as a new process of the agent does. */
function setUp() {
  const top = mkdtempSync(join(tmpdir(), "berth-mark-"));
  onTestFinished(() => rmSync(top, { recursive: true, force: true }));
  const path = join(top, "instances");
  const unmarked: string[] = [];
  const note = (agent: string) => join(top, "data", `${agent}.instances`);
  const open = async (agent = "a") => {
    const mark = new DirectoryMark(note(agent), (error) => unmarked.push(String(error)));
    const dirs = new GuestDirs(path, new StorageGate({ name: path }), mark);
    await dirs.open();
    return dirs;
  };
  return { top, path, note, open, unmarked };
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
      `Mount the file system with the guests. If it is mounted, or they are gone for good, remove ${note("a")}`,
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

test.each(["empty", "missing"])(
  "a directory that is %s since it was opened is not taken for one without guests",
  async (what) => {
    const { path, open } = setUp();
    const dirs = await open();
    const list = () => hostedGuests(dirs, new Set([GUEST.host]), { known: [], onDamaged: () => undefined });
    expect(await list()).toEqual([]);
    renameSync(path, `${path}.away`);
    if (what === "empty") mkdirSync(path);
    await expect(list()).rejects.toThrow("is not the directory in which this agent's guests are");
  },
);

test("a directory that has lost its file system is not marked in its place, also if the note was removed meanwhile", async () => {
  const { path, note, open } = setUp();
  const dirs = await open();
  renameSync(path, `${path}.away`);
  mkdirSync(path);
  rmSync(note("a"));
  await expect(dirs.confirm()).rejects.toThrow("is not the directory in which this agent's guests are");
  expect(readdirSync(path)).toEqual([]);
  expect(existsSync(note("a"))).toBe(false);
});

test("every user can read the mark, since agents that share the directory may run as different ones", async () => {
  const { path, open } = setUp();
  await open();
  expect(statSync(join(path, ".berth-guests")).mode & 0o044).toBe(0o044);
});

test("a first directory whose mark cannot be noted is used, and is noted at a later start", async () => {
  const { top, path, note, open, unmarked } = setUp();
  writeFileSync(join(top, "data"), "");
  await (await open()).confirm();
  expect(unmarked).toEqual([expect.stringContaining(join(top, "data"))]);
  expect(readdirSync(path)).toEqual([".berth-guests"]);
  rmSync(join(top, "data"));
  await open();
  expect(existsSync(note("a"))).toBe(true);
  expect(unmarked).toHaveLength(1);
});

test("a first directory that cannot be marked is used, and leaves nothing; one that is noted is refused if its mark cannot be read", async () => {
  const { top, path, note, open, unmarked } = setUp();
  mkdirSync(join(path, ".berth-guests"), { recursive: true });
  const dirs = await open();
  await dirs.confirm();
  expect(unmarked).toEqual([expect.stringContaining("EISDIR")]);
  expect(readdirSync(path)).toEqual([".berth-guests"]);
  expect(existsSync(note("a"))).toBe(false);
  mkdirSync(join(top, "data"));
  writeFileSync(note("a"), "a mark");
  await expect(open()).rejects.toThrow("EISDIR");
});

test("no guest is built where the directory's file system is away", async () => {
  const { path, note } = setUp();
  const driver = new QemuDriver({
    ...{ clock: new ManualClock(), program: "qemu-system-x86_64", instancesPath: path, directoryNote: note("a") },
    ...{ imagesPath: path, imageCache: join(path, "_base"), transferHost: "127.0.0.1", hasSecretTransfers: true },
    ...{ hasDisplays: false, userNetwork: "isolated", sysroot: "/", shutdownMs: 1_000, pressAgainMs: 1_000 },
    defaults: async () => NANO_DEFAULTS,
  });
  onTestFinished(() => driver.close());
  await driver.open();
  renameSync(path, `${path}.away`);
  mkdirSync(path);
  const order = { ...GUEST, server: { volumes: [] }, movedFrom: null, allocation: undefined };
  const control = { signal: new AbortController().signal, onStep: () => undefined };
  const outcome = await driver.prepare(order as unknown as Parameters<QemuDriver["prepare"]>[0], control);
  const reason = expect.stringContaining("is not the directory in which this agent's guests are");
  expect(outcome).toEqual({ kind: "failed", failure: "reschedule", reason });
  expect(readdirSync(path)).toEqual([]);
});
