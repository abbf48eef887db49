import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { openSharedFile, readSharedText } from "./open-shared-file.ts";
import { makeOwnedDir } from "./owned-dir.ts";

let dir: string;
beforeEach(() => {
  dir = makeOwnedDir("shared-file");
});

describe("a file of a directory that other machines write to", () => {
  test("is read up to its bound, and refused beyond it", async () => {
    const path = join(dir, "mark");
    writeFileSync(path, "reasön");
    expect(await readSharedText(path, 7)).toBe("reasön");
    await expect(readSharedText(path, 6)).rejects.toThrow(`${path} is not read: it is longer than 6 bytes`);
    writeFileSync(path, "");
    expect(await readSharedText(path, 7)).toBe("");
  });

  test("fails with the system's error if it is missing", async () => {
    await expect(readSharedText(join(dir, "mark"), 7)).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("is refused if it is a symbolic link, a directory, or a pipe to which nobody writes", async () => {
    const [file, link, folder, pipe] = ["file", "link", "folder", "pipe"].map((name) => join(dir, name)) as [
      string,
      string,
      string,
      string,
    ];
    writeFileSync(file, "secret");
    symlinkSync(file, link);
    mkdirSync(folder);
    execFileSync("mkfifo", [pipe]);
    await expect(openSharedFile(link)).rejects.toThrow(`${link} is a symbolic link`);
    for (const path of [folder, pipe]) await expect(openSharedFile(path)).rejects.toThrow(`${path} is no regular file`);
    await (await openSharedFile(file)).close();
  });
});
