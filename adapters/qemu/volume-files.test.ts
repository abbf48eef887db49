import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { VolumeFiles } from "./volume-files.ts";

const ID = "0000feed-0000-4000-8000-000000000001";
const SIZE = 2 ** 20;
const volume = (sizeBytes = SIZE) => ({ volumeId: ID, sizeBytes });

let dir: string;
let files: VolumeFiles;
const path = () => join(dir, `volume-${ID}.raw`);
const make = (sizeBytes = SIZE) => files.ensure(volume(sizeBytes), { mayCreate: true });
const find = (sizeBytes = SIZE) => files.ensure(volume(sizeBytes), { mayCreate: false });

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "berth-volumes-"));
  files = new VolumeFiles({ own: dir, mounts: null });
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test("makes a missing file once, sparse and private, and never changes its content", async () => {
  await expect(find()).rejects.toThrow(`volume ${ID} has no file on this host`);
  expect(await Promise.all([make(), make(), make()])).toEqual([path(), path(), path()]);
  const { size, blocks, mode } = statSync(path());
  expect([size, blocks, mode & 0o777]).toEqual([SIZE, 0, 0o600]);
  writeFileSync(path(), "data", { flag: "r+" });
  for (const open of [make, find]) expect(await open()).toBe(path());
  expect(await find(0)).toBe(path());
  expect([statSync(path()).size, readFileSync(path()).subarray(0, 4).toString()]).toEqual([SIZE, "data"]);
});

test("finishes a file that was left empty, also for a guest that only expects it", async () => {
  writeFileSync(path(), "");
  await expect(find(0)).rejects.toThrow("is empty");
  await find();
  expect(statSync(path()).size).toBe(SIZE);
});

test("refuses a file that is smaller than the volume, and leaves it as it is", async () => {
  writeFileSync(path(), "half");
  await expect(make()).rejects.toThrow(`has 4 bytes and volume ${ID} has ${SIZE}`);
  expect(readFileSync(path(), "utf8")).toBe("half");
  truncateSync(path(), SIZE * 2);
  expect(await make()).toBe(path());
  expect(statSync(path()).size).toBe(SIZE * 2);
});

test("makes no file without a size", async () => {
  for (const size of [0, -1, Number.NaN, 1.5]) await expect(make(size)).rejects.toThrow("no size to make one with");
  expect(readdirSync(dir)).toEqual([]);
});

test("does not make the directory, since its file system may not be mounted", async () => {
  rmSync(dir, { recursive: true });
  await expect(make()).rejects.toThrow(`is ${dir} there, and the same on all hosts?`);
});

test("follows no symbolic link, and uses nothing but regular files", async () => {
  const other = join(dir, "other");
  writeFileSync(other, "");
  symlinkSync(other, path());
  await expect(make()).rejects.toThrow("is a symbolic link");
  expect(statSync(other).size).toBe(0);
  rmSync(path());
  symlinkSync(join(dir, "nothing"), path());
  await expect(make()).rejects.toThrow("is a symbolic link");
  rmSync(path());
  mkdirSync(path());
  await expect(make()).rejects.toThrow("is no regular file");
  rmSync(path(), { recursive: true });
  execFileSync("mkfifo", [path()]);
  await expect(make()).rejects.toThrow("is no regular file");
  expect(readdirSync(dir).sort()).toEqual(["other", `volume-${ID}.raw`]);
});

test.each(["", "../../etc/passwd", `${ID}x`, ID.toUpperCase(), `${ID}\n`])("refuses the id %j", async (volumeId) => {
  await expect(files.ensure({ volumeId, sizeBytes: SIZE }, { mayCreate: true })).rejects.toThrow("is no volume id");
  expect(readdirSync(dir)).toEqual([]);
});
