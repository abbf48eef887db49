import { afterEach, beforeEach, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
});
afterEach(() => rig.close());

const IMAGE = "70a599e0-31e7-49b7-b260-868f441e862b";
const DISK = {
  ...{ source_type: "image", destination_type: "local", uuid: IMAGE },
  ...{ boot_index: 0, delete_on_termination: true },
};
const create = (mappings: unknown, fields: object = {}) => {
  const server = { name: "web", flavorRef: "1", imageRef: IMAGE, ...fields, block_device_mapping_v2: mappings };
  return rig.post("/v2.1/servers", { server });
};

test("a mapping of the image to the local boot disk is an ordinary boot", async () => {
  const words = { uuid: IMAGE.toUpperCase(), boot_index: "0", delete_on_termination: "True" };
  for (const mappings of [[], [DISK], [{ ...DISK, ...words }]]) {
    const answer = await create(mappings);
    expect(answer.statusCode, answer.body).toBe(202);
    const [record] = await rig.store.requests([answer.json().server.id]);
    expect(record?.spec.imageRef).toBe(IMAGE);
  }
});

test.each([
  ["a second disk", [DISK, { ...DISK, boot_index: 1 }]],
  ["a volume", [{ ...DISK, destination_type: "volume" }]],
  ["a blank disk", [{ source_type: "blank", destination_type: "local", boot_index: -1 }]],
  ["another image", [{ ...DISK, uuid: "70a599e0-31e7-49b7-b260-868f441e862c" }]],
  ["a disk that is not booted from", [{ ...DISK, boot_index: 1 }]],
  ["a disk without its place in the boot order", [{ ...DISK, boot_index: null }]],
  ["a disk that outlives the server", [{ ...DISK, delete_on_termination: false }]],
  ["a flag that is none", [{ ...DISK, delete_on_termination: {} }]],
  ["a size", [{ ...DISK, volume_size: 1 }]],
  ["no object", ["local"]],
  ["a list", [[]]],
  ["null", [null]],
])("a mapping with %s is refused, and nothing is created", async (_title, mappings) => {
  const refused = await create(mappings);
  expect([refused.statusCode, refused.json().badRequest.message]).toEqual([
    400,
    expect.stringMatching(
      /^Invalid input for field\/attribute block_device_mapping_v2\. Berth attaches no volumes to a new server: /,
    ),
  ]);
  expect((await rig.get("/v2.1/servers")).json().servers).toEqual([]);
});

test("a mapping without imageRef is refused", async () => {
  expect((await create([DISK], { imageRef: "" })).statusCode).toBe(400);
});
