import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DATA_DIR, requireDirectory } from "./require-directory.ts";

test("a data directory is made, and a file of its name is refused with what to do", () => {
  const directory = mkdtempSync(join(tmpdir(), "berth-data-dir-"));
  try {
    requireDirectory(DATA_DIR, join(directory, "a/b"));
    expect(existsSync(join(directory, "a/b"))).toBe(true);
    writeFileSync(join(directory, "file"), "");
    for (const path of ["file", "file/below"])
      expect(() => requireDirectory(DATA_DIR, join(directory, path))).toThrow(
        /^BERTH_DATA_DIR \(--data-dir\) ".*" cannot be used \(.*\): give a directory in which you may write$/,
      );
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test.runIf(existsSync("/proc/self"))(
  "a directory below /proc is refused at once, where Node's recursive mkdir never returns",
  () => {
    for (const path of ["/proc/berth", "/proc/berth/below"])
      expect(() => requireDirectory(DATA_DIR, path)).toThrow(
        /^BERTH_DATA_DIR \(--data-dir\) "\/proc\/berth.*ENOENT.*give a directory in which you may write$/,
      );
  },
);
