import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeOwnedDir } from "../runtime/owned-dir.ts";
import { certificatePlan } from "./certificate-plan.ts";
import { makeCertificates } from "./make-certificates.ts";

let dir: string;
beforeEach(() => {
  dir = makeOwnedDir("secrets");
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** Runs the script for this number of cells. */
function makeSecrets(cells: number) {
  const script = join(import.meta.dirname, "make-secrets.ts");
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, `${cells}`, "--out", dir], {
    encoding: "utf8",
  });
  const lines = stdout.trimEnd().split("\n");
  return { status, stderr, lines, states: [...new Set(lines.map((line) => line.split("\t")[2]))] };
}

describe("make-secrets", () => {
  test("prints each certificate with the day on which it expires, and what was done with it", () => {
    const first = makeSecrets(1);
    expect(first).toMatchObject({ status: 0, stderr: "", states: ["made"] });
    expect(first.lines.filter((line) => !/^[a-z0-9-]+\.pem\t\d{4}-\d\d-\d\d\tmade$/.test(line))).toEqual([]);
    expect(first.lines).toContainEqual(expect.stringContaining("cell1-ca.pem"));
    const again = makeSecrets(1);
    expect(again).toMatchObject({ status: 0, states: ["kept"] });
    expect(again.lines).toHaveLength(first.lines.length);
  });

  test("says in one line that the key of an authority is missing, which a certificate needs", () => {
    makeSecrets(1);
    rmSync(join(dir, "cell1-ca-key.pem"));
    for (const file of readdirSync(dir).filter((name) => /^cell1-(?!ca)/.test(name))) rmSync(join(dir, file));
    const { status, stderr } = makeSecrets(1);
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(/^make-secrets: cell1-ca-key\.pem is missing, .*\(of berth certs\)\n$/),
    ]);
  });

  test("names certificates that expire soon and are of no cell of the call, and fails", async () => {
    const options = { nowMs: Date.now(), days: 5, renewWithinDays: 30, replace: "renew" } as const;
    const agents = [{ cell: "cell1", id: "far", hosts: ["far-*"] }];
    await makeCertificates(dir, certificatePlan(["cell1"], [], agents), options);
    const { status, stderr, lines } = makeSecrets(1);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^make-secrets: a certificate expires soon: /);
    expect(lines).toContainEqual(
      expect.stringMatching(/^cell1-far\.pem\t.*\tkept, but expires soon: this call does not name it/),
    );
    expect(lines).toContainEqual(expect.stringMatching(/\trenewed$/));
  });
});
