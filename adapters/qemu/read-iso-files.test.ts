import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { whyNoQemu } from "../../test/rigs/qemu-guests.ts";
import { writeConfigDrive } from "./config-drive.ts";
import { readIsoFiles } from "./read-iso-files.ts";

const METADATA = {
  ...{ uuid: "6f1f2ad0-7d3c-4d0b-8f0e-0c9b6a8c0001", name: "web", hostname: "web", projectId: "p" },
  ...{ availabilityZone: "az1", launchIndex: 0, meta: {}, publicKeys: {}, interfaces: [] },
  userData: Buffer.alloc(200_000, "user data "),
  // They need several sectors of the directory.
  files: Array.from({ length: 120 }, (_, index) => ({ path: `/etc/${index}`, contents: Buffer.from(`file ${index}`) })),
};

describe.skipIf(whyNoQemu() !== null)("the files of a config drive", () => {
  let dir: string;
  let path: string;
  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), "berth-iso-"));
    path = join(dir, "config.iso");
    await writeConfigDrive(path, METADATA);
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  test("are read back as they were written, without the guest", async () => {
    const files = await readIsoFiles(path);
    expect(files.get("openstack/latest/user_data")?.equals(METADATA.userData)).toBe(true);
    expect(JSON.parse(files.get("openstack/2018-08-27/meta_data.json")?.toString() ?? "")).toMatchObject({
      ...{ uuid: METADATA.uuid, hostname: "web", availability_zone: "az1" },
    });
    for (const [index, { contents }] of METADATA.files.entries())
      expect(files.get(`openstack/content/${String(index).padStart(4, "0")}`)?.equals(contents)).toBe(true);
    expect(files.size).toBe(8 + METADATA.files.length);
  });

  test("are an error, and not a part of the files, when the image is cut off or is none", async () => {
    truncateSync(path, 100_000);
    await expect(readIsoFiles(path).then(({ size }) => size)).rejects.toThrow(/config\.iso is damaged/);
    writeFileSync(path, "hello");
    await expect(readIsoFiles(path)).rejects.toThrow(/config\.iso is damaged/);
  });
});
