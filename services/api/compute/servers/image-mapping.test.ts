import { expect, test } from "vitest";
import { hasNoDisk, readImageMapping } from "./image-mapping.ts";
import { readBlockDevices } from "./read-block-devices.ts";

const IMAGE = "5f0a4b5e-7a6c-4f3c-9d1e-2a1b6c8d9e01";
const imageWith = (text: string) => ({
  ...{ id: IMAGE, bytes: 0, properties: { bdm_v2: "True", block_device_mapping: text } },
});
const uuidOf = (at: number): string => `5f0a4b5e-7a6c-4f3c-9d1e-${String(at).padStart(12, "0")}`;
const devicesOf = (text: string) =>
  readBlockDevices({ name: "s", flavorRef: "f", imageRef: IMAGE }, 90, readImageMapping(imageWith(text)));

test("a mapping in an image has no more devices and no more text than a call may have", () => {
  const boot = { source_type: "volume", uuid: uuidOf(0), boot_index: 0 };
  const others = Array.from({ length: 256 }, (_, at) => ({ source_type: "volume", uuid: uuidOf(at + 1) }));
  const most = JSON.stringify([boot, ...others.slice(1)]);
  expect(devicesOf(most).volumes).toHaveLength(256);
  const many = JSON.stringify([boot, ...others]);
  const long = JSON.stringify([{ ...boot, note: "x".repeat(70_000) }]);
  for (const text of [many, long]) {
    expect(() => readImageMapping(imageWith(text))).toThrow(/is unacceptable/);
    expect(() => hasNoDisk(imageWith(text))).toThrow(expect.objectContaining({ status: 400 }));
  }
});

test("fields of other types in an image's mapping are refused", () => {
  const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  for (const uuid of ['{"toString":1,"valueOf":1}', nested(20_000), "[]", "7", "true"])
    for (const source of ["snapshot", "volume", "image"]) {
      const text = `[{"source_type":"${source}","destination_type":"volume","uuid":${uuid},"boot_index":0,"volume_size":1}]`;
      expect(() => devicesOf(text)).toThrow(expect.objectContaining({ status: 400 }));
    }
});

test("an image with bits and further devices gives its servers both", () => {
  const data = { source_type: "blank", destination_type: "volume", volume_size: 3, device_name: "/dev/vdb" };
  const text = JSON.stringify([data, { source_type: "blank", destination_type: "local", guest_format: "swap" }]);
  expect(devicesOf(text)).toMatchObject({
    volumes: [{ source: { kind: "blank" }, sizeGib: 3, isRoot: false, device: "/dev/vdb" }],
    localDisks: [{ kind: "swap", size: null, isOfImage: true }],
  });
});
