import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";
import { SettingsError } from "../../runtime/settings-error.ts";
import { refuseMissingTools } from "./refuse-missing-tools.ts";

test("a host without the programs that guests need is told what to install, and one that has them is not", () => {
  const dir = makeOwnedDir("tools");
  try {
    const [first, second] = [join(dir, "first"), join(dir, "second")];
    for (const one of [first, second]) mkdirSync(one);
    const path = `${first}:${second}`;
    expect(() => refuseMissingTools(path)).toThrow(SettingsError);
    expect(() => refuseMissingTools(path)).toThrow(
      /qemu-img and genisoimage and taskset.*apt install qemu-utils genisoimage util-linux/,
    );
    const programs = [join(first, "qemu-img"), join(second, "genisoimage"), join(second, "taskset")];
    for (const program of programs) writeFileSync(program, "");
    chmodSync(join(first, "qemu-img"), 0o755);
    chmodSync(join(second, "taskset"), 0o755);
    expect(() => refuseMissingTools(path)).toThrow(/needs genisoimage: .*apt install genisoimage\)/);
    chmodSync(join(second, "genisoimage"), 0o755);
    refuseMissingTools(path);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
