import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../../runtime/clock.ts";
import { VolumeSettler } from "../../../services/api/compute/server-volumes/volume-settler.ts";
import { serverSpec } from "../../contract/cell-fixtures.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", volumes: "simple", volumesPerProject: { volumes: 9, gib: 40 } });
});
afterEach(() => rig.close());

const IMAGE = "70a599e0-31e7-49b7-b260-868f441e862b";
const DISK = {
  ...{ source_type: "image", destination_type: "local", uuid: IMAGE },
  ...{ boot_index: 0, delete_on_termination: true },
};
const call = async (method: "GET" | "POST" | "DELETE", url: string, body?: unknown, who = "admin:p", minor = 90) => {
  const type = body === undefined ? {} : { "content-type": "application/json" };
  const headers = { "x-auth-token": who, "openstack-api-version": `compute 2.${minor}`, ...type };
  const answer = await rig.call({
    ...{ method, url, headers },
    ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
  });
  return { status: answer.statusCode, json: answer.body === "" ? null : answer.json() };
};
const create = (mappings: unknown, fields: object = {}, minor = 90) => {
  const networks = minor < 37 ? {} : { networks: "none" };
  const server = { name: "web", flavorRef: "1", imageRef: IMAGE, ...networks, ...fields };
  return call("POST", "/v2.1/servers", { server: { ...server, block_device_mapping_v2: mappings } }, "admin:p", minor);
};
const newVolume = async (isBootable = true, who = "admin:p"): Promise<string> => {
  const { id } = (await call("POST", "/volume/v3/volumes", { volume: { size: 2 } }, who)).json.volume;
  if (isBootable) await call("POST", `/volume/v3/volumes/${id}/action`, { "os-set_bootable": { bootable: true } }, who);
  return id;
};
const statusOf = async (id: string) => (await call("GET", `/volume/v3/volumes/${id}`)).json.volume.status;
const specOf = async (server: string) => (await rig.store.requests([server]))[0]?.spec;
const mapped = (uuid: string, boot_index: unknown, fields: object = {}) => ({
  ...{ source_type: "volume", destination_type: "volume", uuid, boot_index, ...fields },
});

test("a mapping of the image to the local boot disk is an ordinary boot", async () => {
  const words = { uuid: IMAGE.toUpperCase(), boot_index: "0", delete_on_termination: "True" };
  for (const mappings of [[], [DISK], [{ ...DISK, ...words }], [{ no_device: true }]]) {
    const answer = await create(mappings);
    expect(answer.status, JSON.stringify(answer.json)).toBe(202);
    expect(await specOf(answer.json.server.id)).toMatchObject({ imageRef: IMAGE, volumes: [] });
  }
});

test("a server boots from a volume, and has a second one", async () => {
  const [root, data] = [await newVolume(), await newVolume(false)];
  const more = { tag: "db", delete_on_termination: true, disk_bus: "scsi" };
  const answer = await create([mapped(data, -1, more), mapped(root, "0", { device_name: "vda" })], { imageRef: "" });
  expect(answer.status, JSON.stringify(answer.json)).toBe(202);
  const { id } = answer.json.server;
  expect(await specOf(id)).toMatchObject({
    ...{ imageRef: "", imageProperties: {} },
    volumes: [
      { volumeId: data, device: "/dev/vdb", tag: "db", deleteOnTermination: true, isRoot: false },
      { volumeId: root, device: "/dev/vda", tag: "", deleteOnTermination: false, isRoot: true, sizeBytes: 2 ** 31 },
    ],
  });
  for (const volume of [root, data]) expect(await statusOf(volume)).toBe("attaching");
  const { server } = (await call("GET", `/v2.1/servers/${id}`)).json;
  expect(server).toMatchObject({
    image: "",
    "os-extended-volumes:volumes_attached": [
      { id: data, delete_on_termination: true },
      { id: root, delete_on_termination: false },
    ],
  });
  expect((await create([mapped(root, 0)], { imageRef: "" })).json.badRequest.message).toBe(
    `Invalid volume: volume '${root}' status must be 'available'. Currently in 'attaching' status`,
  );
});

test("a server with an image gets volumes by both fields, and boots from the first volume of the older field without one", async () => {
  const [one, other, root] = [await newVolume(false), await newVolume(false), await newVolume()];
  const current = await create([DISK, mapped(one, null)]);
  const older = await create([], { block_device_mapping: [{ volume_id: other, device_name: "/dev/sdc" }] });
  const bare = await create([], {
    imageRef: "",
    block_device_mapping: [{ volume_id: root, delete_on_termination: "1" }],
  });
  const volumes = await Promise.all([current, older, bare].map(({ json }) => specOf(json.server.id)));
  expect(volumes).toMatchObject([
    { imageRef: IMAGE, volumes: [{ volumeId: one, device: "/dev/vdb", isRoot: false }] },
    { imageRef: IMAGE, volumes: [{ volumeId: other, device: "/dev/sdc", isRoot: false }] },
    { imageRef: "", volumes: [{ volumeId: root, device: "/dev/vda", isRoot: true, deleteOnTermination: true }] },
  ]);
});

const ANY = randomUUID();
const local = (fields: object = {}) => ({ source_type: "blank", destination_type: "local", ...fields });
const SEQUENCE = /^Block Device Mapping is Invalid: Boot sequence for the instance/;
test.each([
  ["no boot disk", [mapped(ANY, -1)], SEQUENCE],
  ["two boot disks", [DISK, mapped(ANY, 0)], SEQUENCE],
  ["a gap in the boot order", [DISK, mapped(ANY, 2)], SEQUENCE],
  ["a second disk to boot from", [DISK, mapped(ANY, 1)], /A server boots from one disk/],
  ["a boot index that is not a number", [mapped(ANY, "first")], /boot_index.*first/],
  ["an unknown volume", [DISK, mapped(ANY, -1)], new RegExp(`^Volume ${ANY} could not be found\\.$`)],
  ["a volume that has no id", [{ ...mapped(ANY, 0), uuid: undefined }], /Missing device UUID\.$/],
  ["a volume twice", [DISK, mapped(ANY, -1), mapped(ANY.toUpperCase(), -1)], /a volume is mapped twice/],
  ["a type of an existing volume", [mapped(ANY, 0, { volume_type: "t" })], /volume type to existing volume/],
  ["a new volume without a size", [{ ...DISK, destination_type: "volume" }], /need to have a non-zero size/],
  ["a new volume of an image", [{ ...DISK, destination_type: "volume", volume_size: 1 }], /own volumes begin empty/],
  ["a blank disk with an id", [DISK, { ...DISK, source_type: "blank", boot_index: -1 }], /Invalid device UUID/],
  ["a local disk that the flavor lacks", [DISK, local()], /Ephemeral disks requested are larger/],
  ["swap that the flavor lacks", [DISK, local({ guest_format: "swap", volume_size: 1 })], /Swap drive requested/],
  ["two swap disks", [DISK, local({ guest_format: "swap" }), local({ guest_format: "swap" })], /More than one swap/],
  ["a type of a local disk", [DISK, local({ volume_type: "t" })], /volume_type with destination_type=local/],
  ["another image", [{ ...DISK, uuid: "70a599e0-31e7-49b7-b260-868f441e862c" }], /has the image of imageRef/],
  ["a local image beside a volume", [mapped(ANY, 0), { ...DISK, boot_index: -1 }], /Mapping image to local/],
  ["a local disk that outlives the server", [{ ...DISK, delete_on_termination: false }], /deleted with its server/],
  ["a flag that is none", [{ ...DISK, delete_on_termination: {} }], /delete_on_termination/],
  ["the size of a local disk", [{ ...DISK, volume_size: 1 }], /that of the flavor/],
  ["an unknown source", [{ ...DISK, source_type: "tape" }], /source_type.*tape/],
  ["an unknown destination", [{ ...DISK, destination_type: "tape" }], /destination_type.*tape/],
  ["an unknown field", [{ ...DISK, other: 1 }], /\('other' was unexpected\)/],
  ["a device that is none", [DISK, mapped(ANY, -1, { device_name: "a b" })], /device_name/],
  ["a tag that is none", [DISK, mapped(ANY, -1, { tag: "a/b" })], /tag/],
  ["no object", ["local"], /not of type 'object'/],
  ["null", [null], /not of type 'object'/],
])("a mapping with %s is refused, and nothing is created", async (_title, mappings, message) => {
  const refused = await create(mappings);
  expect([refused.status, refused.json.badRequest?.message]).toEqual([400, expect.stringMatching(message)]);
  expect((await call("GET", "/v2.1/servers")).json.servers).toEqual([]);
});

test("a blank volume is made with its server, within the project's limits", async () => {
  const blank = { source_type: "blank", destination_type: "volume", volume_size: 3, delete_on_termination: true };
  const answer = await create([DISK, blank], { min_count: 2 });
  expect(answer.status, JSON.stringify(answer.json)).toBe(202);
  const { volumes } = (await call("GET", "/volume/v3/volumes/detail")).json;
  expect(volumes).toMatchObject([
    { size: 3, status: "attaching" },
    { size: 3, status: "attaching" },
  ]);
  const { servers } = (await call("GET", "/v2.1/servers")).json;
  for (const { id } of servers) expect(await specOf(id)).toMatchObject({ volumes: [{ device: "/dev/vdb" }] });
  const large = await create([DISK, blank, { ...blank, volume_size: 39 }]);
  expect([large.status, large.json.forbidden?.message]).toEqual([403, expect.stringContaining("gigabytes quota")]);
  const huge = await create([DISK, { ...blank, volume_size: 65_537 }]);
  expect([huge.status, huge.json.badRequest?.message]).toEqual([400, expect.stringContaining("at most 65536")]);
  expect((await call("GET", "/volume/v3/volumes")).json.volumes).toHaveLength(2);
});

test("local disks that the flavor gives may be named, with their sizes or without", async () => {
  const flavor = { id: "e", name: "e", vcpus: 1, ram: 64, disk: 1, swap: 8, "OS-FLV-EXT-DATA:ephemeral": 2 };
  expect((await call("POST", "/v2.1/flavors", { flavor })).status).toBe(200);
  const swap = { guest_format: "swap" };
  for (const disks of [
    [local(), local(swap)],
    [local({ volume_size: 2 }), local({ ...swap, volume_size: "8" })],
  ])
    expect((await create([DISK, ...disks], { flavorRef: "e" })).status).toBe(202);
  const refused = await Promise.all(
    [
      [local({ volume_size: 1 })],
      [local({ volume_size: 1 }), local({ volume_size: 1 })],
      [local({ ...swap, volume_size: 4 })],
    ].map((disks) => create([DISK, ...disks], { flavorRef: "e" })),
  );
  for (const { status, json } of refused)
    expect([status, json.badRequest?.message]).toEqual([400, expect.stringContaining("one ephemeral disk of 2 GiB")]);
});

test("both fields, a volume for several servers, a tag before 2.42, and another project's volume are refused", async () => {
  const id = await newVolume();
  const root = [mapped(id, 0)];
  const messages = await Promise.all([
    create(root, { imageRef: "", block_device_mapping: [{ volume_id: id }] }),
    create(root, { imageRef: "", min_count: 2 }),
    create([mapped(id, 0, { tag: "t" })], { imageRef: "" }, 41),
    create([mapped(id, 0, { tag: "t" })], { imageRef: "" }, 33),
    create([mapped(await newVolume(false), 0)], { imageRef: "" }),
  ]);
  expect(messages.map(({ status, json }) => [status, json.badRequest?.message])).toEqual([
    [400, "Using different block_device_mapping syntaxes is not allowed in the same request."],
    [400, "Cannot attach one or more volumes to multiple instances"],
    [400, expect.stringContaining("('tag' was unexpected)")],
    [400, expect.stringContaining("('tag' was unexpected)")],
    [400, expect.stringMatching(/^Block Device .* is not bootable\.$/)],
  ]);
  const server = { name: "w", flavorRef: "1", networks: "none", block_device_mapping_v2: root };
  const foreign = await call("POST", "/v2.1/servers", { server }, "eve:other");
  expect([foreign.status, foreign.json.badRequest?.message]).toEqual([400, `Volume ${id} could not be found.`]);
  expect(await statusOf(id)).toBe("available");
  // Nova took tags in 2.32, too.
  expect((await create([mapped(id, 0, { tag: "t" })], { imageRef: "" }, 32)).status).toBe(202);
});

describe("a volume that was reserved", () => {
  test("is free again when another volume of the server is taken, or when the server is not accepted", async () => {
    const [root, data] = [await newVolume(), await newVolume(false)];
    const reserve = rig.volumes.reserve.bind(rig.volumes);
    rig.volumes.reserve = async (id, attachment) => {
      if (id === data) await reserve(data, { ...attachment, serverUuid: randomUUID() });
      return reserve(id, attachment);
    };
    expect((await create([mapped(root, 0), mapped(data, -1)], { imageRef: "" })).status).toBe(400);
    rig.volumes.reserve = reserve;
    expect([await statusOf(root), await statusOf(data)]).toEqual(["available", "attaching"]);
  });

  test("goes to one of several servers that are created at once", async () => {
    const id = await newVolume();
    const answers = await Promise.all(Array.from({ length: 5 }, () => create([mapped(id, 0)], { imageRef: "" })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([202, 400, 400, 400, 400]);
  });

  test("is free again after its api died, and not while its server may still be accepted", async () => {
    const [server, id] = [randomUUID(), await newVolume()];
    const requested = {
      ...{ serverUuid: server, cell: "", attachmentId: randomUUID(), mappingUuid: randomUUID() },
      ...{ device: "/dev/vda", tag: null, deleteOnTermination: true, taskId: server },
    };
    const settle = (settleMs: number) => {
      const deps = {
        volumes: rig.volumes,
        store: rig.store,
        cells: new Map(),
        events: { volumesNotSettled() {}, volumeLeftInDoubt() {} },
      };
      return new VolumeSettler({ ...deps, clock: systemClock }, { pollMs: 1_000, settleMs }).settle();
    };
    await rig.volumes.reserve(id, requested);
    await settle(600_000);
    expect([await statusOf(id), await rig.store.requests([server])]).toEqual(["attaching", []]);
    await settle(-1);
    // The slow api accepts the server now, in vain: nothing is ever built under this UUID.
    await rig.store.accept([serverSpec(1, { uuid: server })]);
    expect(await rig.store.requests([server])).toMatchObject([{ state: "deleted", spec: { projectId: "" } }]);
    await settle(-1);
    expect(await statusOf(id)).toBe("available");
    // A server that was accepted in time keeps its volume.
    const [accepted, kept] = [randomUUID(), await newVolume()];
    await rig.volumes.reserve(kept, { ...requested, serverUuid: accepted, taskId: accepted });
    await rig.store.accept([serverSpec(2, { uuid: accepted })]);
    await settle(-1);
    expect([await statusOf(kept), (await rig.store.requests([accepted]))[0]?.state]).toEqual(["attaching", "accepted"]);
  });
});
