import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const host = (name: string): HostConfig => ({
  name,
  inventories: { VCPU: { total: 16 }, PCPU: { total: 4 }, MEMORY_MB: { total: 16_384 }, DISK_GB: { total: 10_000 } },
});
const faked = (script: object) => ({ metadata: { "berth:fake": JSON.stringify(script) } });

describe("images of servers in a whole cloud", () => {
  let cloud: TestCloud;
  let base: string;
  beforeAll(async () => {
    const cells = [{ name: "cell-1", hosts: [host("one"), host("two")] }];
    cloud = await startTestCloud({ cells, schedulers: 1, conductors: 1 });
    await call("POST", "/v2.1/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 3 } });
    const image = { name: "base", disk_format: "raw", container_format: "bare", min_ram: 32, hw_disk_bus: "virtio" };
    base = (await call("POST", "/image/v2/images", image)).json.id;
  }, 60_000);
  afterAll(() => cloud?.close());

  const call: TestCloud["call"] = (...asked) => cloud.call(...asked);
  const act = (id: string, action: string, value: unknown, minor = 90) =>
    call("POST", `/v2.1/servers/${id}/action`, { [action]: value }, minor);
  const serverOf = async (id: string) => (await call("GET", `/v2.1/servers/${id}`)).json.server;
  const imageOf = (id: string) => call("GET", `/image/v2/images/${id}`);

  async function boot(fields: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const server = { name: "x", flavorRef: "s", imageRef: base, networks: "none", ...fields };
    const { id } = (await call("POST", "/v2.1/servers", { server })).json.server;
    await settled(id, "ACTIVE");
    return id;
  }
  const settled = (id: string, status: string) =>
    eventually(`the server to be ${status}`, async () => {
      const server = await serverOf(id);
      return server.status === status && server["OS-EXT-STS:task_state"] === null && server;
    });
  const active = (imageId: string) =>
    eventually("the image to be active", async () => {
      const { json } = await imageOf(imageId);
      return json.status === "active" && json;
    });
  const diskImageOf = async (id: string) => (await cloud.cells[0]?.store.servers([id]))?.[0]?.spec.diskImageRef;
  const gone = (imageId: string) => eventually("the image to go", async () => (await imageOf(imageId)).status === 404);

  test("a running server's image has its properties, and a server boots from it", async () => {
    const id = await boot();
    const answer = await act(id, "createImage", { name: "mine", metadata: { purpose: "test", user_id: "me" } });
    expect([answer.status, answer.json]).toEqual([202, { image_id: expect.any(String) }]);
    const { image_id } = answer.json;
    expect(await active(image_id)).toMatchObject({
      ...{ name: "mine", visibility: "private", disk_format: "qcow2", container_format: "bare" },
      ...{ min_disk: 3, min_ram: 32, hw_disk_bus: "virtio", purpose: "test", user_id: "me" },
      ...{ instance_uuid: id, image_type: "snapshot", base_image_ref: base },
    });
    await settled(id, "ACTIVE");
    const { instanceActions } = (await call("GET", `/v2.1/servers/${id}/os-instance-actions`)).json;
    expect(instanceActions[0]).toMatchObject({ action: "createImage", message: null });
    await boot({ imageRef: image_id });
  });

  test("a server is rescued with its own image and with the named one, is shown so, and is unrescued", async () => {
    const id = await boot();
    const other = (await call("POST", "/image/v2/images", { name: "rescue", disk_format: "raw" })).json.id;
    for (const body of [null, { rescue_image_ref: other, adminPass: "secret" }]) {
      const answer = await act(id, "rescue", body);
      expect([answer.status, answer.json]).toEqual([200, { adminPass: body?.adminPass ?? expect.any(String) }]);
      expect(await settled(id, "RESCUE")).toMatchObject({
        ...{ "OS-EXT-STS:vm_state": "rescued", "OS-EXT-STS:power_state": 1, image: { id: base } },
      });
      const listed = (await call("GET", "/v2.1/servers?status=RESCUE")).json.servers;
      expect(listed.map((one: { id: string }) => one.id)).toEqual([id]);
      expect((await act(id, "unrescue", null)).status).toBe(202);
      await settled(id, "ACTIVE");
    }
    const { instanceActions } = (await call("GET", `/v2.1/servers/${id}/os-instance-actions`)).json;
    const actions = instanceActions.map(({ action }: { action: string }) => action);
    expect(actions).toEqual(["unrescue", "rescue", "unrescue", "rescue", "create"]);
    const [{ request_id }] = instanceActions;
    const { instanceAction } = (await call("GET", `/v2.1/servers/${id}/os-instance-actions/${request_id}`)).json;
    expect(instanceAction.events).toMatchObject([{ event: "compute_unrescue_instance", result: "Success" }]);
  });

  test("a rescued server can only be deleted, or do what needs no guest, until its rescue has ended", async () => {
    const id = await boot();
    await act(id, "rescue", null);
    await settled(id, "RESCUE");
    for (const [action, body] of [
      ["reboot", { type: "SOFT" }],
      ["reboot", { type: "HARD" }],
      ["os-stop", null],
      ["rescue", null],
      ["createImage", { name: "x" }],
    ] as const) {
      const { status, json } = await act(id, action, body);
      expect([action, status, json.conflictingRequest?.message]).toEqual([
        ...[action, 409, expect.stringMatching(/ while it is in vm_state rescued$/)],
      ]);
    }
    expect((await act(id, "lock", null)).status).toBe(202);
    expect((await act(id, "unlock", null)).status).toBe(202);
    expect((await call("DELETE", `/v2.1/servers/${id}`)).status).toBe(204);
    await eventually("it to be gone", async () => (await call("GET", `/v2.1/servers/${id}`)).status === 404);
  });

  test("a stopped server stays stopped, and before 2.45 the image's URL is in a header", async () => {
    const id = await boot();
    await act(id, "os-stop", null);
    await settled(id, "SHUTOFF");
    const headers = { "content-type": "application/json", "openstack-api-version": "compute 2.44" };
    const body = JSON.stringify({ createImage: { name: "mine" } });
    const answer = await fetch(`${cloud.apiUrl}/v2.1/servers/${id}/action`, { method: "POST", headers, body });
    expect([answer.status, await answer.text()]).toEqual([202, ""]);
    const location = answer.headers.get("location") ?? "";
    expect(location).toMatch(/^http:\/\/.*\/image\/v2\/images\/[0-9a-f-]{36}$/);
    await active(location.split("/").at(-1)!);
    await settled(id, "SHUTOFF");
  });

  test("while an image is made, a second one conflicts, and no server boots from the first", async () => {
    const id = await boot(faked({ snapshot_ms: 600_000 }));
    const { image_id } = (await act(id, "createImage", { name: "slow" })).json;
    expect((await serverOf(id))["OS-EXT-STS:task_state"]).toBe("image_snapshot");
    const second = await act(id, "createImage", { name: "second" });
    expect([second.status, second.json.conflictingRequest.message]).toEqual([
      409,
      `Cannot 'createImage' instance ${id} while it is in task_state image_snapshot`,
    ]);
    expect((await call("GET", "/image/v2/images?name=second")).json.images).toEqual([]);
    const server = { name: "y", flavorRef: "s", imageRef: image_id, networks: "none" };
    const refused = await call("POST", "/v2.1/servers", { server });
    expect([refused.status, refused.json.badRequest.message]).toEqual([400, `Image ${image_id} is not active.`]);
    await call("DELETE", `/v2.1/servers/${id}`);
    await gone(image_id);
  });

  test("an image that cannot be made is removed, and the server stays as it was", async () => {
    const id = await boot(faked({ snapshot_failures: 1 }));
    const { image_id } = (await act(id, "createImage", { name: "broken" })).json;
    await gone(image_id);
    await settled(id, "ACTIVE");
    const { instanceActions } = (await call("GET", `/v2.1/servers/${id}/os-instance-actions`)).json;
    expect(instanceActions[0]).toMatchObject({ action: "createImage", message: "Error" });
  });

  test("an offloaded server keeps its disk in an image, is unshelved from it, and the image ends with the server", async () => {
    const id = await boot({ name: "web" });
    const shelvedImages = async () => (await call("GET", "/image/v2/images?name=web-shelved")).json.images;
    await act(id, "shelve", null);
    await settled(id, "SHELVED");
    expect(await shelvedImages()).toEqual([]);
    expect((await act(id, "shelveOffload", null)).status).toBe(202);
    expect(await settled(id, "SHELVED_OFFLOADED")).toMatchObject({ image: { id: base } });
    const [{ id: imageId }] = await shelvedImages();
    expect(await active(imageId)).toMatchObject({ image_type: "snapshot", instance_uuid: id, base_image_ref: base });
    expect(await diskImageOf(id)).toBe(imageId);
    await act(id, "unshelve", null);
    expect(await settled(id, "ACTIVE")).toMatchObject({ image: { id: base } });
    expect(await diskImageOf(id)).toBe(imageId);
    await active(imageId);
    await act(id, "rebuild", { imageRef: base });
    await settled(id, "ACTIVE");
    expect(await diskImageOf(id)).toBe("");
    await call("DELETE", `/v2.1/servers/${id}`);
    await gone(imageId);
  });

  test("a server whose disk cannot be copied stays shelved on its host, and starts there again", async () => {
    const id = await boot({ name: "db", ...faked({ snapshot_failures: 1 }) });
    await act(id, "shelve", null);
    await settled(id, "SHELVED");
    expect((await act(id, "shelveOffload", null)).status).toBe(202);
    const shelved = await settled(id, "SHELVED");
    expect(shelved["OS-EXT-SRV-ATTR:host"]).not.toBeNull();
    await eventually("its image to go", async () => {
      const { images } = (await call("GET", "/image/v2/images?name=db-shelved")).json;
      return images.length === 0;
    });
    const { instanceActions } = (await call("GET", `/v2.1/servers/${id}/os-instance-actions`)).json;
    expect(instanceActions[0]).toMatchObject({ action: "shelveOffload", message: "Error" });
    await act(id, "unshelve", null);
    await settled(id, "ACTIVE");
    await act(id, "shelve", null);
    await settled(id, "SHELVED");
    await act(id, "shelveOffload", null);
    await settled(id, "SHELVED_OFFLOADED");
  });

  test("backups beyond the rotation are removed, the oldest first, and those of another type are kept", async () => {
    const id = await boot();
    const backup = async (backup_type: string, rotation: number) => {
      const { json } = await act(id, "createBackup", { name: backup_type, backup_type, rotation });
      await active(json.image_id);
      await settled(id, "ACTIVE");
      return json.image_id as string;
    };
    const [weekly, first, second, third] = [
      await backup("weekly", 1),
      await backup("daily", 2),
      await backup("daily", 2),
      await backup("daily", 2),
    ];
    await gone(first);
    for (const one of [weekly, second, third])
      expect((await imageOf(one)).json).toMatchObject({ image_type: "backup", instance_uuid: id, status: "active" });
    const none = await act(id, "createBackup", { name: "none", backup_type: "daily", rotation: 0 });
    expect([none.status, none.json]).toEqual([202, null]);
    await Promise.all([gone(second), gone(third)]);
    expect((await imageOf(weekly)).status).toBe(200);
  });

  test.each([
    ["createImage", {}, "'name' is a required property"],
    ["createImage", { name: "" }, "name"],
    ["createImage", { name: "x", other: 1 }, "Additional properties are not allowed"],
    ["createImage", { name: "x", metadata: { a: 1 } }, "metadata/a"],
    ["createImage", { name: "x", metadata: { os_hash_value: "/../../../../proc/kcore" } }, "metadata/os_hash_value"],
    ["createImage", { name: "x", metadata: { os_hash_other: "a" } }, "metadata/os_hash_other"],
    ["createImage", { name: "x", metadata: { disk_format: "raw" } }, "metadata/disk_format"],
    ["createBackup", { name: "x", rotation: 1 }, "'backup_type' is a required property"],
    ["createBackup", { name: "x", backup_type: "d", rotation: -1 }, "less than the minimum of 0"],
    ["createBackup", { name: "x", backup_type: "d", rotation: "many" }, "rotation"],
    ["createBackup", { name: "x", backup_type: "d", rotation: 1, metadata: { status: "a" } }, "metadata/status"],
  ])("%s with %j is refused", async (action, value, message) => {
    const id = "11111111-1111-4111-8111-111111111111";
    const answer = await act(id, action, value);
    expect([answer.status, answer.json.badRequest.message]).toEqual([400, expect.stringContaining(message)]);
  });
});
