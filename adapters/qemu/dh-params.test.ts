import { spawnSync } from "node:child_process";
import { getDiffieHellman } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { whyNoQemu } from "../../test/rigs/qemu-guests.ts";
import { dhParams } from "./dh-params.ts";

test("are a known group of 2048 bits in DER", () => {
  const der = Buffer.from(dhParams().replace(/-----[^\n]*-----/g, ""), "base64").toString("hex");
  const prime = getDiffieHellman("modp14").getPrime("hex");
  expect(prime).toHaveLength(512);
  expect(der).toBe(`30820108${"02820101"}00${prime}${"020102"}`);
});

test.skipIf(whyNoQemu() !== null)("are what QEMU reads instead of making a group of its own", () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-dh-params-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(join(dir, "keys.psk"), `berth:${"0f".repeat(32)}\n`);
  const errorsWith = (params: string) => {
    writeFileSync(join(dir, "dh-params.pem"), params);
    const server = `tls-creds-psk,id=transfer,endpoint=server,dir=${dir}`;
    const args = ["-machine", "none", "-nodefaults", "-display", "none", "-object", server, "-qmp", "stdio"];
    const input = '{"execute":"qmp_capabilities"}\n{"execute":"quit"}\n';
    const { status, stderr } = spawnSync("qemu-system-x86_64", args, { input, encoding: "utf8" });
    return { status, stderr };
  };
  expect(errorsWith(dhParams())).toEqual({ status: 0, stderr: "" });
  // A QEMU that does not read the file would not complain.
  expect(errorsWith(dhParams().slice(0, 100))).toMatchObject({ status: 1, stderr: expect.stringMatching(/DH param/i) });
});
