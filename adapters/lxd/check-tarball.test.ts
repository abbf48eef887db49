import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";
import { whyNoTarball } from "./check-tarball.ts";

const NEVER = new AbortController().signal;
let dir: string;

beforeEach(() => {
  dir = join(makeOwnedDir("check-tarball"), randomUUID());
  mkdirSync(join(dir, "rootfs"), { recursive: true });
  writeFileSync(join(dir, "metadata.yaml"), "architecture: x86_64\n");
  return () => vi.unstubAllEnvs();
});

/** Puts another program in the place of one that is run here. */
function replaceProgram(name: string, script: string): void {
  const programs = join(dir, "programs");
  mkdirSync(programs, { recursive: true });
  writeFileSync(join(programs, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(programs, name), 0o755);
  vi.stubEnv("PATH", `${programs}${delimiter}${process.env.PATH}`);
}

function tarballOf(...names: readonly string[]): string {
  const path = join(dir, "image.tar.gz");
  execFileSync("tar", ["czf", path, "-C", dir, ...names]);
  return path;
}

describe("a tarball", () => {
  test.each([
    [["metadata.yaml", "rootfs"], null],
    [["./metadata.yaml", "./rootfs"], null],
    [["rootfs"], "it is no unified tarball of LXD: metadata.yaml is not in it"],
    [["metadata.yaml"], "it is no unified tarball of LXD: rootfs/ is not in it"],
  ])("with %j is answered with %j", async (names, why) => {
    expect(await whyNoTarball(tarballOf(...names), NEVER)).toBe(why);
  });

  test("that is cut off is broken on every host", async () => {
    const path = tarballOf("metadata.yaml", "rootfs");
    const whole = execFileSync("cat", [path]);
    writeFileSync(path, whole.subarray(0, whole.length / 2));
    expect(await whyNoTarball(path, NEVER)).toMatch(/^it is no whole tarball/);
  });

  test("with a name longer than a string can be does not end the process", async () => {
    replaceProgram("tar", "echo metadata.yaml; head -c 550000000 /dev/zero; echo; echo rootfs/");
    expect(await whyNoTarball("image.tar", NEVER)).toBeNull();
  });

  test("is read by a tar that may take no more than a GiB of memory, whatever the tarball makes it keep", async () => {
    replaceProgram("tar", 'test "$(ulimit -v)" -le 1048576 && printf "metadata.yaml\\nrootfs/\\n"');
    expect(await whyNoTarball("image.tar", NEVER)).toBeNull();
  });

  test("whose decompressor the kernel kills says nothing about the image", async () => {
    const path = tarballOf("metadata.yaml", "rootfs");
    replaceProgram("gzip", "kill -KILL $$");
    expect(await whyNoTarball(path, NEVER)).toBeNull();
  });

  test("that this host cannot open says nothing about the image", async () => {
    expect(await whyNoTarball(join(dir, "missing"), NEVER)).toBeNull();
  });
});
