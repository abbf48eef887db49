import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { qemuVersion } from "./qemu-version.ts";

const dir = mkdtempSync(join(tmpdir(), "berth-qemu-version-"));
afterAll(() => rmSync(dir, { recursive: true }));

function program(name: string, script: string): string {
  const path = join(dir, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return path;
}

test("the version of QEMU is one number, with or without its last part", () => {
  expect(qemuVersion(program("whole", "echo QEMU emulator version 7.2.22 '(Debian 1:7.2)'"))).toBe(7_002_022);
  expect(qemuVersion(program("short", "echo QEMU emulator version 10.1"))).toBe(10_001_000);
});

test("a QEMU that is missing, one that is too slow, and one that fails are told apart", () => {
  const missing = join(dir, "missing");
  expect(() => qemuVersion(missing)).toThrow(`${missing} is not installed on this host`);
  const slow = program("slow", "exec sleep 600");
  expect(() => qemuVersion(slow, 200)).toThrow(`${slow} did not tell its version within 0.2 s`);
  const broken = program("broken", "exit 3");
  expect(() => qemuVersion(broken)).toThrow(`${broken} does not tell its version: Command failed`);
});
