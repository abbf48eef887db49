import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SIMPLE_NETWORK } from "../../services/api/network/simple-network.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

// The requests of gophercloud (the library of Terraform's provider), as its packages below openstack/compute/v2 form them and its acceptance tests use them: the fields, the
// microversions, the statuses that it takes for a success, and the types into which it decodes the answers. What a tool that applies a plan twice relies on is checked
// besides: what is read is what was asked for, and reading it again shows the same.
// Source: https://github.com/gophercloud/gophercloud, at 95eea8e5 of 21 August 2026

let cloud: TestCloud;
beforeAll(async () => {
  const inventories = { VCPU: { total: 64 }, MEMORY_MB: { total: 65_536 }, DISK_GB: { total: 100 } };
  const hosts = ["h-0", "h-1"].map((name) => ({ name, inventories }));
  cloud = await startTestCloud({
    ...{ cells: [{ name: "c-1", hosts }], schedulers: 1, conductors: 1, networks: "simple", volumes: "simple" },
  });
  await cloud.call("POST", "/v2.1/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 0 } });
});
afterAll(() => cloud?.close());

/** A machine that is busy with other work takes long. */
const PATIENCE = { withinMs: 60_000 };

/** The statuses that gophercloud takes for a success, unless a call names others. */
const DEFAULT_OK: Readonly<Record<string, readonly number[]>> = {
  ...{ GET: [200], POST: [201, 202], PUT: [201, 202], DELETE: [202, 204] },
};

interface Asked {
  readonly body?: unknown;
  /** The microversion; null for none. */
  readonly version?: string | null;
  readonly ok?: readonly number[];
}

/** The JSON of any answer. */
type Json = ReturnType<typeof JSON.parse>;

/** Makes a call with gophercloud's headers. Fails for a status that it does not take for a success. */
async function ask(method: string, path: string, { body, version = null, ok = DEFAULT_OK[method] }: Asked = {}) {
  const answer = await fetch(`${cloud.apiUrl}/v2.1${path}`, {
    method,
    headers: {
      ...{ accept: "application/json", "content-type": "application/json" },
      ...(version !== null && {
        "x-openstack-nova-api-version": version,
        "openstack-api-version": `compute ${version}`,
      }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!ok?.includes(answer.status)) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return (text === "" ? null : JSON.parse(text)) as Json;
}

/** The types of Go's JSON decoder, which takes null for each of them and refuses what is of another one. */
const GO = {
  string: (value: unknown) => typeof value === "string",
  int: (value: unknown) => Number.isSafeInteger(value),
  bool: (value: unknown) => typeof value === "boolean",
  strings: (value: unknown) => Array.isArray(value) && value.every((one) => typeof one === "string"),
  texts: (value: unknown) => isObject(value) && Object.values(value).every((one) => typeof one === "string"),
  object: (value: unknown) => isObject(value),
  objects: (value: unknown) => Array.isArray(value) && value.every(isObject),
  time: (value: unknown) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(String(value)),
  timeWithoutZone: (value: unknown) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?$/.test(String(value)),
  /** Its decoder of servers takes both. */
  configDrive: (value: unknown) => ["", "True", "true", "False", "false"].includes(value as string) || value === true,
};
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
type Shape = Readonly<Record<string, keyof typeof GO>>;

/** Go finds a field of an answer also if it is written with other capitals. */
function undecodable(shape: Shape, answer: Json): readonly string[] {
  const fields = new Map(Object.entries(answer).map(([name, value]) => [name.toLowerCase(), value]));
  return Object.entries(shape).flatMap(([name, type]) => {
    const value = fields.get(name.toLowerCase()) ?? null;
    return value === null || GO[type](value) ? [] : [`${name}: ${JSON.stringify(value)} is no ${type}`];
  });
}

const SERVER: Shape = {
  ...{ id: "string", tenant_id: "string", user_id: "string", name: "string", hostid: "string", status: "string" },
  ...{ updated: "time", created: "time", progress: "int", accessIPv4: "string", accessIPv6: "string" },
  ...{ flavor: "object", addresses: "object", metadata: "texts", links: "objects", key_name: "string" },
  ...{ adminPass: "string", security_groups: "objects", "os-extended-volumes:volumes_attached": "objects" },
  ...{ tags: "strings", server_groups: "strings", locked: "bool", config_drive: "configDrive" },
  ...{ "OS-EXT-SRV-ATTR:host": "string", "OS-EXT-SRV-ATTR:instance_name": "string" },
  ...{ "OS-EXT-SRV-ATTR:hypervisor_hostname": "string", "OS-EXT-SRV-ATTR:reservation_id": "string" },
  ...{ "OS-EXT-SRV-ATTR:launch_index": "int", "OS-EXT-SRV-ATTR:ramdisk_id": "string" },
  ...{ "OS-EXT-SRV-ATTR:kernel_id": "string", "OS-EXT-SRV-ATTR:hostname": "string" },
  ...{ "OS-EXT-SRV-ATTR:root_device_name": "string", "OS-EXT-SRV-ATTR:user_data": "string" },
  ...{ "OS-EXT-STS:task_state": "string", "OS-EXT-STS:vm_state": "string", "OS-EXT-STS:power_state": "int" },
  ...{ "OS-SRV-USG:launched_at": "timeWithoutZone", "OS-SRV-USG:terminated_at": "timeWithoutZone" },
  ...{ "OS-DCF:diskConfig": "string", "OS-EXT-AZ:availability_zone": "string" },
};

/** The body of a creation: gophercloud writes `imageRef` and `flavorRef` also if they are empty. */
const creation = (fields: object = {}) => ({
  server: {
    ...{ name: "ACPTTEST", imageRef: "", flavorRef: "s", adminPass: "secret", networks: [{ uuid: SIMPLE_NETWORK.id }] },
    ...fields,
  },
});

const show = async (id: string, version: string | null = null) =>
  (await ask("GET", `/servers/${id}`, { version })).server;

async function settled(id: string, status = "ACTIVE"): Promise<Json> {
  await eventually(`${id} is ${status}`, async () => (await show(id)).status === status, PATIENCE);
  return show(id);
}

/** Creates a server, waits until it is active, and returns its id. */
async function create(fields: object, version: string | null = null): Promise<string> {
  const { server } = await ask("POST", "/servers", { body: creation(fields), version, ok: [200, 202] });
  expect(undecodable(SERVER, server)).toEqual([]);
  expect(server).toMatchObject({ id: expect.any(String), adminPass: "secret" });
  await settled(server.id);
  return server.id;
}

/** Deletes as a plan is taken back: a second deletion finds nothing, which counts as success. */
async function destroy(id: string): Promise<void> {
  await ask("DELETE", `/servers/${id}`);
  const isGone = () =>
    ask("GET", `/servers/${id}`, { ok: [404] }).then(
      () => true,
      () => false,
    );
  await eventually(`${id} is gone`, isGone, PATIENCE);
  await ask("DELETE", `/servers/${id}`, { ok: [404] });
}

describe("servers", () => {
  test("are created, read with gophercloud's types at each of its microversions, and read the same again", async () => {
    const personality = [{ path: "/etc/test", contents: Buffer.from("hello world").toString("base64") }];
    const id = await create({ metadata: { abc: "def" }, personality });
    for (const version of [null, "2.3", "2.19", "2.26", "2.52", "2.79", "2.90", "2.96"])
      expect([version, undecodable(SERVER, await show(id, version))]).toEqual([version, []]);
    const first = await show(id, "2.3");
    expect(first).toMatchObject({
      ...{ name: "ACPTTEST", metadata: { abc: "def" }, "OS-EXT-AZ:availability_zone": "nova" },
      ...{ "OS-EXT-STS:power_state": 1, "OS-EXT-STS:task_state": null, "OS-EXT-STS:vm_state": "active" },
      ...{ "OS-SRV-USG:launched_at": expect.any(String), "OS-SRV-USG:terminated_at": null },
      ...{ "OS-EXT-SRV-ATTR:launch_index": 0, "OS-EXT-SRV-ATTR:ramdisk_id": "", "OS-EXT-SRV-ATTR:kernel_id": "" },
      ...{ "OS-EXT-SRV-ATTR:user_data": null, "OS-EXT-SRV-ATTR:hostname": "acpttest" },
    });
    expect(await show(id, "2.3")).toEqual(first);
    const { servers } = await ask("GET", "/servers/detail");
    expect(servers.filter((one: Json) => one.id === id)).toHaveLength(1);
    const { addresses } = await ask("GET", `/servers/${id}/ips`);
    expect(addresses[SIMPLE_NETWORK.name]).toMatchObject([{ version: 4, addr: expect.any(String) }]);
    expect(await ask("GET", `/servers/${id}/ips/${SIMPLE_NETWORK.name}`)).toEqual(addresses);
    await destroy(id);
  });

  test("are changed, and the same change again changes nothing", async () => {
    const id = await create({});
    for (let time = 0; time < 2; time += 1) {
      const renamed = await ask("PUT", `/servers/${id}`, { body: { server: { name: "other" } }, ok: [200] });
      expect([renamed.server.name, undecodable(SERVER, renamed.server)]).toEqual(["other", []]);
      const hostname = { body: { server: { hostname: "host-2" } }, version: "2.90", ok: [200] };
      expect((await ask("PUT", `/servers/${id}`, hostname)).server["OS-EXT-SRV-ATTR:hostname"]).toBe("host-2");
      const metadata = { body: { metadata: { a: "b" } }, ok: [200] };
      expect(await ask("PUT", `/servers/${id}/metadata`, metadata)).toEqual({ metadata: { a: "b" } });
    }
    await destroy(id);
  });

  test("without networks are created from 2.37 on, and the same creation again makes another server", async () => {
    const ids = [await create({ networks: "none" }, "2.37"), await create({ networks: "none" }, "2.37")];
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) {
      expect(await ask("GET", `/servers/${id}/ips`)).toEqual({ addresses: {} });
      await ask("GET", `/servers/${id}/ips/${SIMPLE_NETWORK.name}`, { ok: [404] });
      await destroy(id);
    }
  });

  test("have tags, which gophercloud lists in their order and replaces one by one", async () => {
    const id = await create({ tags: ["tag1", "tag2"] }, "2.52");
    const version = "2.26";
    const tags = async () => (await ask("GET", `/servers/${id}/tags`, { version, ok: [200] })).tags;
    const one = (method: string, tag: string, ok: readonly number[]) =>
      ask(method, `/servers/${id}/tags/${tag}`, { version, ok });
    expect([(await show(id, version)).tags, await tags()]).toEqual([
      ["tag1", "tag2"],
      ["tag1", "tag2"],
    ]);
    await one("GET", "tag2", [204]);
    const replaced = { body: { tags: ["tag3", "tag4"] }, version, ok: [200] };
    for (let time = 0; time < 2; time += 1)
      expect((await ask("PUT", `/servers/${id}/tags`, replaced)).tags).toEqual(["tag3", "tag4"]);
    for (let time = 0; time < 2; time += 1) await one("PUT", "tag5", [201, 204]);
    expect(await tags()).toEqual(["tag3", "tag4", "tag5"]);
    await one("DELETE", "tag4", [204]);
    await one("GET", "tag4", [404]);
    await ask("DELETE", `/servers/${id}/tags`, { version, ok: [204] });
    expect(await tags()).toEqual([]);
    await destroy(id);
  });
});

const ATTACHMENT: Shape = {
  ...{ id: "string", device: "string", volumeId: "string", serverId: "string", tag: "string" },
  delete_on_termination: "bool",
};

test("volumes are attached once, are read as they were attached, and are taken away", async () => {
  const id = await create({});
  const { json } = await cloud.call("POST", "/volume/v3/volumes", { volume: { size: 1 } });
  const volumeId = json.volume.id;
  const path = `/servers/${id}/os-volume_attachments`;
  const wanted = { body: { volumeAttachment: { volumeId, tag: "ACPTTEST" } }, version: "2.79" };
  const { volumeAttachment: made } = await ask("POST", path, { ...wanted, ok: [200] });
  expect([undecodable(ATTACHMENT, made), made]).toEqual([
    [],
    { ...made, serverId: id, volumeId, tag: "ACPTTEST", delete_on_termination: false },
  ]);
  const volumeStatus = async () => (await cloud.call("GET", `/volume/v3/volumes/${volumeId}`)).json.volume.status;
  await eventually("the volume is in use", async () => (await volumeStatus()) === "in-use", PATIENCE);
  await eventually(
    "the server has nothing under way",
    async () => (await show(id))["OS-EXT-STS:task_state"] === null,
    PATIENCE,
  );
  const read = async () => (await ask("GET", `${path}/${volumeId}`, { version: "2.79" })).volumeAttachment;
  const first = await read();
  expect([undecodable(ATTACHMENT, first), first, await read()]).toEqual([[], { ...made, device: first.device }, first]);
  expect(first.device).toMatch(/^\/dev\/vd[a-z]$/);
  const { volumeAttachments } = await ask("GET", path, { version: "2.79" });
  expect(volumeAttachments).toEqual([first]);
  await ask("POST", path, { ...wanted, ok: [400, 409] });
  await ask("DELETE", `${path}/${volumeId}`);
  await eventually("the volume is available", async () => (await volumeStatus()) === "available", PATIENCE);
  await ask("GET", `${path}/${volumeId}`, { ok: [404] });
  await destroy(id);
});

const KEY_PAIR: Shape = {
  ...{ name: "string", fingerprint: "string", public_key: "string", private_key: "string", user_id: "string" },
  type: "string",
};
const PUBLIC_KEY =
  "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl nobody@example.org";

test("key pairs are imported once, used by servers, listed, and deleted, also with the user's id", async () => {
  const { user_id: userId } = (await ask("POST", "/os-keypairs", { body: { keypair: { name: "k" } }, ok: [200, 201] }))
    .keypair;
  const made = await ask("POST", "/os-keypairs", {
    ...{ body: { keypair: { name: "imported", public_key: PUBLIC_KEY } }, ok: [200, 201] },
  });
  expect([undecodable(KEY_PAIR, made.keypair), made.keypair.public_key]).toEqual([[], PUBLIC_KEY]);
  await ask("POST", "/os-keypairs", { body: { keypair: { name: "imported", public_key: PUBLIC_KEY } }, ok: [409] });
  const first = (await ask("GET", "/os-keypairs/imported")).keypair;
  expect([undecodable(KEY_PAIR, first), first.public_key, (await ask("GET", "/os-keypairs/imported")).keypair]).toEqual(
    [...[[], PUBLIC_KEY, first]],
  );
  const listed = (await ask("GET", "/os-keypairs")).keypairs.map(({ keypair }: Json) => keypair.name);
  expect(listed.toSorted()).toEqual(["imported", "k"]);
  const id = await create({ key_name: "imported" });
  expect((await show(id)).key_name).toBe("imported");
  await destroy(id);
  const version = "2.10";
  expect((await ask("GET", `/os-keypairs/k?user_id=${userId}`, { version })).keypair.name).toBe("k");
  await ask("DELETE", `/os-keypairs/k?user_id=${userId}`, { version });
  await ask("DELETE", "/os-keypairs/imported");
  await ask("DELETE", "/os-keypairs/imported", { ok: [404] });
});

test("server groups have gophercloud's fields before and from 2.64 on, and keep their servers together", async () => {
  const body = { server_group: { name: "ACPTTEST", policies: ["affinity"] } };
  const { server_group: group } = await ask("POST", "/os-server-groups", { body, ok: [200] });
  const shape: Shape = { id: "string", name: "string", policies: "strings", members: "strings", metadata: "object" };
  expect([undecodable(shape, group), group.policies]).toEqual([[], ["affinity"]]);
  const read = async () => (await ask("GET", `/os-server-groups/${group.id}`)).server_group;
  expect([await read(), await read()]).toEqual([group, group]);
  const hints = { body: { ...creation(), "os:scheduler_hints": { group: group.id } }, ok: [200, 202] };
  const servers = [(await ask("POST", "/servers", hints)).server.id, (await ask("POST", "/servers", hints)).server.id];
  const [one, other] = [await settled(servers[0]), await settled(servers[1])];
  expect([one.hostId, (await read()).members.toSorted()]).toEqual([other.hostId, servers.toSorted()]);
  const version = "2.64";
  const newer = { server_group: { name: "n", policy: "anti-affinity", rules: { max_server_per_host: 3 } } };
  const { server_group: made } = await ask("POST", "/os-server-groups", { body: newer, version, ok: [200] });
  expect(undecodable({ policy: "string", rules: "object", user_id: "string", project_id: "string" }, made)).toEqual([]);
  expect(made).toMatchObject(newer.server_group);
  expect((await ask("GET", "/os-server-groups", { version })).server_groups).toHaveLength(2);
  for (const id of servers) await destroy(id);
  for (const { id } of [group, made]) {
    await ask("DELETE", `/os-server-groups/${id}`);
    await ask("DELETE", `/os-server-groups/${id}`, { ok: [404] });
  }
});

test("quotas are set as gophercloud sets them, twice with the same result, and go back to their defaults", async () => {
  const path = "/os-quota-sets/a-project";
  const wanted = {
    ...{ fixed_ips: 10, floating_ips: 10, injected_file_content_bytes: 10_240, injected_file_path_bytes: 255 },
    ...{ injected_files: 5, key_pairs: 10, metadata_items: 128, ram: 20_000, security_group_rules: 20 },
    ...{ security_groups: 10, cores: 10, instances: 4, server_groups: 2, server_group_members: 3 },
  };
  const shape = Object.fromEntries(Object.keys(wanted).map((name) => [name, "int"])) as Shape;
  const before = (await ask("GET", path)).quota_set;
  expect([undecodable(shape, before), before.fixed_ips]).toEqual([[], -1]);
  for (let time = 0; time < 2; time += 1) {
    const { quota_set: set } = await ask("PUT", path, { body: { quota_set: wanted }, ok: [200] });
    expect([undecodable(shape, set), set]).toEqual([[], wanted]);
  }
  expect((await ask("GET", path)).quota_set).toEqual({ id: "a-project", ...wanted });
  await ask("DELETE", path);
  expect((await ask("GET", path)).quota_set).toEqual(before);
});
