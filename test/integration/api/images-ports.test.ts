import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
});
afterEach(() => rig.close());

const as = (who: string) => ({ "x-auth-token": who });
const call = (method: "GET" | "POST" | "PATCH" | "DELETE", url: string, who: string, body?: unknown, type?: string) =>
  rig.api.http.inject({
    method,
    url,
    headers: { ...as(who), "content-type": type ?? "application/json" },
    ...(body !== undefined && { payload: JSON.stringify(body) }),
  });
const PATCH = "application/openstack-images-v2.1-json-patch";

describe("the Image API", () => {
  it("registers an image with its properties, shows, changes, lists and deletes it", async () => {
    const created = await call("POST", "/image/v2/images", "bob:p", {
      ...{ name: "cirros", disk_format: "qcow2", container_format: "bare", min_ram: 64, tags: ["a"] },
      ...{ hw_cpu_policy: "dedicated", "trait:CUSTOM_X": "required" },
    });
    expect(created.statusCode).toBe(201);
    const image = created.json();
    expect(image).toMatchObject({
      ...{ name: "cirros", status: "active", visibility: "shared", owner: "p", min_ram: 64, min_disk: 0, tags: ["a"] },
      ...{ hw_cpu_policy: "dedicated", "trait:CUSTOM_X": "required", protected: false, self: `/v2/images/${image.id}` },
    });
    const patched = await call(
      "PATCH",
      `/image/v2/images/${image.id}`,
      "bob:p",
      [
        { op: "replace", path: "/name", value: "other" },
        { op: "remove", path: "/hw_cpu_policy" },
        { op: "add", path: "/hw_disk_bus", value: "virtio" },
      ],
      PATCH,
    );
    expect(patched.statusCode).toBe(200);
    expect(patched.json()).toMatchObject({ name: "other", hw_disk_bus: "virtio", "trait:CUSTOM_X": "required" });
    expect(patched.json()).not.toHaveProperty("hw_cpu_policy");
    expect((await call("GET", `/image/v2/images/${image.id}`, "bob:p")).json()).toEqual(patched.json());
    expect((await call("GET", "/image/v2/images", "bob:p")).json()).toMatchObject({ images: [{ id: image.id }] });
    expect((await call("DELETE", `/image/v2/images/${image.id}`, "bob:p")).statusCode).toBe(204);
    expect((await call("GET", `/image/v2/images/${image.id}`, "bob:p")).statusCode).toBe(404);
  });

  it("hides a project's images from others, and lets only admins make them public", async () => {
    const { id } = (await call("POST", "/image/v2/images", "bob:p", {})).json();
    expect((await call("GET", `/image/v2/images/${id}`, "eve:q")).statusCode).toBe(404);
    expect((await call("GET", "/image/v2/images", "eve:q")).json().images).toEqual([]);
    const open = [{ op: "replace", path: "/visibility", value: "public" }];
    expect((await call("PATCH", `/image/v2/images/${id}`, "bob:p", open, PATCH)).statusCode).toBe(403);
    expect((await call("PATCH", `/image/v2/images/${id}`, "admin:x", open, PATCH)).statusCode).toBe(200);
    expect((await call("GET", `/image/v2/images/${id}`, "eve:q")).statusCode).toBe(200);
    expect((await call("DELETE", `/image/v2/images/${id}`, "eve:q")).statusCode).toBe(403);
    expect((await call("POST", "/image/v2/images", "bob:p", { visibility: "public" })).statusCode).toBe(403);
  });

  it("gives an image tags and takes them away, and lists images by their visibility", async () => {
    const { id } = (await call("POST", "/image/v2/images", "bob:p", { tags: ["a"], visibility: "private" })).json();
    const tag = (method: "PUT" | "DELETE", name: string, who = "bob:p") =>
      rig.api.http.inject({ method, url: `/image/v2/images/${id}/tags/${name}`, headers: as(who) });
    expect((await tag("PUT", "b")).statusCode).toBe(204);
    expect((await tag("PUT", "b")).statusCode).toBe(204);
    expect((await tag("DELETE", "a")).statusCode).toBe(204);
    expect((await tag("DELETE", "a")).statusCode).toBe(404);
    expect((await tag("PUT", "c", "eve:q")).statusCode).toBe(404);
    expect((await tag("PUT", "x".repeat(256))).statusCode).toBe(400);
    expect((await call("GET", `/image/v2/images/${id}`, "bob:p")).json().tags).toEqual(["b"]);
    const listed = async (query: string) =>
      (await call("GET", `/image/v2/images?${query}`, "bob:p")).json().images?.length;
    expect(await listed("visibility=private")).toBe(1);
    expect(await listed("visibility=public")).toBe(0);
    expect(await listed("visibility=all&os_hidden=false")).toBe(1);
    expect(await listed("os_hidden=true")).toBe(0);
    expect((await call("GET", "/image/v2/images?visibility=secret", "bob:p")).statusCode).toBe(400);
  });

  it("describes the fields of images in the schema that they name, for Glance's own client", async () => {
    const { id } = (await call("POST", "/image/v2/images", "bob:p", { name: "described" })).json();
    const image = (await call("GET", `/image/v2/images/${id}`, "bob:p")).json();
    const schema = (await call("GET", `/image${image.schema}`, "bob:p")).json();
    expect(Object.keys(image).filter((field) => !(field in schema.properties))).toEqual([]);
    const list = (await call("GET", "/image/v2/images", "bob:p")).json();
    expect((await call("GET", `/image${list.schema}`, "bob:p")).json().name).toBe("images");
  });

  it("continues a list after an image that has left the list's filters since", async () => {
    const ids = new Map<string, string>();
    for (const [name, visibility] of [..."dacb"].map((one) => [one, "private"]))
      ids.set(name ?? "", (await call("POST", "/image/v2/images", "bob:p", { name, visibility })).json().id);
    const change = [{ op: "replace", path: "/visibility", value: "shared" }];
    await call("PATCH", `/image/v2/images/${ids.get("b")}`, "bob:p", change, PATCH);
    const pageAfter = async (query: string) => {
      const url = `/image/v2/images?visibility=private&marker=${ids.get("b")}&${query}`;
      return (await call("GET", url, "bob:p")).json().images.map(({ name }: { name: string }) => name);
    };
    expect(await pageAfter("sort=name:asc")).toEqual(["c", "d"]);
    expect(await pageAfter("sort=name:desc")).toEqual(["a"]);
    // Equal images keep the order of the index.
    expect(await pageAfter("sort=container_format:asc")).toEqual(await pageAfter("status=active"));
  });

  it("lists images by the values of their fields and properties, as Glance", async () => {
    const add = (name: string, fields: object) => call("POST", "/image/v2/images", "bob:p", { name, ...fields });
    await add("a", { image_type: "backup", backup_type: "daily", visibility: "private" });
    await add("b", { image_type: "backup", backup_type: "weekly", protected: true });
    await add("c", { disk_format: "raw", container_format: "bare" });
    const listed = async (query: string) => {
      const answer = await call("GET", `/image/v2/images?${query}`, "bob:p");
      return (
        answer
          .json()
          .images?.map(({ name }: { name: string }) => name)
          .join("") ?? answer.statusCode
      );
    };
    expect(await listed("image_type=backup&sort_key=name&sort_dir=asc")).toBe("ab");
    expect(await listed("image_type=backup&backup_type=daily")).toBe("a");
    expect([await listed("backup_type=d"), await listed("constructor=x"), await listed("toString=")]).toEqual([
      "",
      "",
      "",
    ]);
    expect([await listed("protected=True"), await listed("disk_format=raw")]).toEqual(["b", "c"]);
    const page = (await call("GET", "/image/v2/images?image_type=backup&limit=1", "bob:p")).json();
    expect(page.next).toContain("image_type=backup");
    const refused = await call("GET", "/image/v2/images?size_min=1", "bob:p");
    expect([refused.statusCode, refused.body]).toEqual([400, expect.stringContaining("size_min")]);
    expect(await listed(Array.from({ length: 65 }, (_, at) => `p${at}=x`).join("&"))).toBe(400);
  });

  it("lists images by their status and in any order, page by page, as Horizon asks for them", async () => {
    for (const name of ["b", "c", "a"]) await call("POST", "/image/v2/images", "bob:p", { name });
    const listed = async (query: string) => {
      const { images, next } = (await call("GET", `/image/v2/images?${query}`, "bob:p")).json();
      return { names: images?.map(({ name }: { name: string }) => name).join(""), next };
    };
    const all = "status=active&sort_key=name&sort_dir=asc";
    expect((await listed(all)).names).toBe("abc");
    expect((await listed("sort=name:desc")).names).toBe("cba");
    expect((await listed("sort_key=status&sort_key=name&sort_dir=asc")).names).toBe("abc");
    expect((await listed("status=queued")).names).toBe("");
    const first = await listed(`${all}&limit=2`);
    expect(first.names).toBe("ab");
    expect(await listed(first.next.slice(first.next.indexOf("?") + 1))).toEqual({ names: "c", next: undefined });
    for (const wrong of ["sort_key=owner", "sort_dir=up", "sort=name:asc&sort_key=name", "sort_dir=asc&sort_dir=asc"])
      expect([wrong, (await call("GET", `/image/v2/images?${wrong}`, "bob:p")).statusCode]).toEqual([wrong, 400]);
  });

  it.each([
    [{ status: "queued" }, 403],
    [{ disk_format: "floppy" }, 400],
    [{ min_ram: -1 }, 400],
    [{ hw_cpu_policy: 5 }, 400],
    [{ id: "no uuid" }, 400],
  ])("refuses an image like %o", async (body, status) => {
    expect((await call("POST", "/image/v2/images", "bob:p", body)).statusCode).toBe(status);
  });

  it("refuses a change that would make an image invalid, and keeps the previous state", async () => {
    const { id } = (await call("POST", "/image/v2/images", "bob:p", { name: "a" })).json();
    const patch = (path: string, value: unknown) =>
      call("PATCH", `/image/v2/images/${id}`, "bob:p", [{ op: "add", path, value }], PATCH);
    expect((await patch("/min_ram", "much")).statusCode).toBe(400);
    expect((await patch("/owner", "q")).statusCode).toBe(403);
    for (const fixed of ["/id", "/os_hash_value", "/os_hash_other"])
      expect((await patch(fixed, randomUUID())).statusCode).toBe(403);
    expect((await call("POST", "/image/v2/images", "bob:p", { id })).statusCode).toBe(409);
    expect((await patch("/protected", true)).statusCode).toBe(200);
    expect((await call("DELETE", `/image/v2/images/${id}`, "bob:p")).statusCode).toBe(403);
  });

  it("lets nobody boot from a deleted image, whose file hosts may still have, or register its id", async () => {
    const boot = (imageRef: string) =>
      call("POST", "/v2.1/servers", "eve:q", { server: { name: "x", flavorRef: "1", imageRef } });
    const { id } = (await call("POST", "/image/v2/images", "bob:p", { visibility: "private" })).json();
    expect((await boot(randomUUID())).statusCode).toBe(202);
    expect((await call("DELETE", `/image/v2/images/${id}`, "bob:p")).statusCode).toBe(204);
    const refused = await boot(id.toUpperCase());
    expect([refused.statusCode, refused.json().badRequest.message]).toEqual([
      400,
      `Can not find requested image. Image ${id.toUpperCase()} could not be found.`,
    ]);
    expect((await call("POST", "/image/v2/images", "eve:q", { id })).statusCode).toBe(409);
    const ask = (who: string) => call("POST", "/berth/v1/deleted-images", who, { ids: [id, randomUUID()] });
    expect((await ask("admin:x")).json()).toEqual({ deleted: [id], fetchedOnly: false });
    expect((await ask("bob:p")).statusCode).toBe(403);
  });

  it("refuses an image whose kernel or RAM disk is another project's private image, and shows those of a server", async () => {
    const register = async (who: string, fields: object) =>
      (await call("POST", "/image/v2/images", who, { visibility: "private", ...fields })).json().id as string;
    const boot = (imageRef: string) =>
      call("POST", "/v2.1/servers", "bob:p", { server: { name: "x", flavorRef: "1", imageRef } });
    const [own, foreign] = [await register("bob:p", {}), await register("eve:q", {})];
    for (const properties of [{ kernel_id: foreign }, { kernel_id: own, ramdisk_id: foreign }]) {
      const refused = await boot(await register("bob:p", properties));
      expect([refused.statusCode, refused.json().badRequest.message]).toEqual([
        400,
        `Can not find requested image. Image ${foreign} could not be found.`,
      ]);
    }
    const { id } = (await boot(await register("bob:p", { kernel_id: own }))).json().server;
    const shown = await rig.get(`/v2.1/servers/${id}`, { ...as("admin:p"), "openstack-api-version": "compute 2.3" });
    expect(shown.json().server).toMatchObject({
      "OS-EXT-SRV-ATTR:kernel_id": own,
      "OS-EXT-SRV-ATTR:ramdisk_id": "",
    });
  });

  it("refuses names of files in the place of ids, since hosts would boot from the file of another project's image", async () => {
    const foreign = (await call("POST", "/image/v2/images", "eve:q", { visibility: "private" })).json().id as string;
    const own = (await call("POST", "/image/v2/images", "bob:p", { visibility: "private" })).json().id as string;
    const id = await rig.bootActive("north", 1, {}, as("bob:p"));
    // Hosts put the images that they make of servers into the directory of images under this name.
    const file = `${foreign}.qcow2`;
    const rebuilt = await call("POST", `/v2.1/servers/${id}/action`, "bob:p", { rebuild: { imageRef: file } });
    expect([rebuilt.statusCode, rebuilt.json().badRequest?.message]).toEqual([
      400,
      `Invalid input for field/attribute imageRef. Value: ${file}. '${file}' is not a 'uuid'`,
    ]);
    for (const properties of [{ kernel_id: file }, { kernel_id: own, ramdisk_id: file }]) {
      const image = await call("POST", "/image/v2/images", "bob:p", { visibility: "private", ...properties });
      const body = { server: { name: "x", flavorRef: "1", imageRef: image.json().id } };
      const refused = await call("POST", "/v2.1/servers", "bob:p", body);
      expect([refused.statusCode, refused.json().badRequest?.message]).toEqual([
        400,
        `Can not find requested image. Image ${file} could not be found.`,
      ]);
    }
    const upper = await call("POST", `/v2.1/servers/${id}/action`, "bob:p", {
      rebuild: { imageRef: own.toUpperCase() },
    });
    expect(upper.statusCode, upper.body).toBe(202);
    const task = rig
      .cell("north")
      .store.tasks()
      .find(({ kind }) => kind === "operate");
    expect(task?.task.server?.imageRef).toBe(own);
  });

  it("refuses more images of a project than it may have, by both APIs", async () => {
    const small = await ApiRig.start({ imagesPerProjectMax: 1 });
    try {
      const server = await small.bootActive("north", 1);
      expect((await small.post("/image/v2/images", {})).statusCode).toBe(201);
      const [byImageApi, byComputeApi] = [
        await small.post("/image/v2/images", {}),
        await small.post(`/v2.1/servers/${server}/action`, { createImage: { name: "x" } }),
      ];
      expect([byImageApi.statusCode, byComputeApi.statusCode]).toEqual([413, 403]);
      expect(byComputeApi.json().forbidden.message).toMatch(/^Quota exceeded for images: project .* may have 1\./);
    } finally {
      await small.close();
    }
  });

  it("is deleted, filtered and changed through the Compute API's proxy", async () => {
    const old = { "x-auth-token": "bob:p", "openstack-api-version": "compute 2.35" };
    const server = randomUUID();
    const fields = { name: "a", min_disk: 2, instance_uuid: server, image_type: "snapshot", visibility: "private" };
    const { id } = (await call("POST", "/image/v2/images", "bob:p", fields)).json();
    await call("POST", "/image/v2/images", "bob:p", { name: "b", visibility: "private" });
    const listed = async (query: string, path = "") => {
      const answer = await rig.get(`/v2.1/images${path}?${query}`, old);
      return answer.json().images?.map(({ name }: { name: string }) => name) ?? answer.statusCode;
    };
    expect(await listed("name=b")).toEqual(["b"]);
    expect(await listed(`server=http://nova/servers/${server}`)).toEqual(["a"]);
    expect(await listed(`server=${server}&status=ACTIVE`, "/detail")).toEqual(["a"]);
    expect(await listed("type=snapshot")).toEqual(["a"]);
    expect(await listed("minDisk=2")).toEqual(["a"]);
    expect(await listed("property-image_type=snapshot")).toEqual(["a"]);
    for (const status of ["none", "constructor"]) expect(await listed(`status=${status}`)).toBe(400);
    expect(await listed("changes-since=2099-01-01T00:00:00Z")).toEqual([]);
    expect(await listed("limit=0")).toEqual([]);
    const page = (await rig.get("/v2.1/images?limit=1", old)).json();
    const next = new URL(page.images_links[0].href);
    expect(await listed(next.search.slice(1))).not.toEqual([page.images[0].name]);
    const shown = (await rig.get(`/v2.1/images/${id}`, old)).json().image;
    expect(shown.server).toMatchObject({ id: server, links: [{ rel: "self" }, { rel: "bookmark" }] });

    const url = `/v2.1/images/${id}/metadata`;
    expect((await rig.post(url, { metadata: { os: "linux" } }, old)).json().metadata).toMatchObject({
      os: "linux",
      image_type: "snapshot",
    });
    expect((await rig.put(`${url}/os`, { meta: { os: "bsd" } }, old)).json()).toEqual({ meta: { os: "bsd" } });
    expect((await rig.get(`${url}/os`, old)).json()).toEqual({ meta: { os: "bsd" } });
    expect((await rig.put(`${url}/os`, { meta: { other: "bsd" } }, old)).statusCode).toBe(400);
    expect((await rig.delete(`${url}/os`, old)).statusCode).toBe(204);
    expect((await rig.delete(`${url}/os`, old)).statusCode).toBe(404);
    expect((await rig.put(url, { metadata: { only: "this" } }, old)).json()).toEqual({ metadata: { only: "this" } });
    expect((await rig.get(url, { ...old, "openstack-api-version": "compute 2.38" })).json()).toEqual({
      metadata: { only: "this" },
    });
    expect((await rig.get(url, { ...old, "openstack-api-version": "compute 2.39" })).statusCode).toBe(404);
    for (const name of ["status", "os_hash_value", "owner", "min_ram"])
      expect((await rig.post(url, { metadata: { [name]: "x" } }, old)).statusCode).toBe(403);
    const many = Object.fromEntries(Array.from({ length: 129 }, (_, at) => [`k${at}`, "v"]));
    expect((await rig.put(url, { metadata: many }, old)).statusCode).toBe(403);
    expect((await rig.put(url, { metadata: {} }, as("eve:q"))).statusCode).toBe(404);

    expect((await rig.delete(`/v2.1/images/${id}`, as("eve:q"))).statusCode).toBe(404);
    expect((await rig.delete(`/v2.1/images/${id}`, old)).statusCode).toBe(204);
    expect((await rig.delete(`/v2.1/images/${id}`, old)).statusCode).toBe(404);
    expect((await rig.delete("/v2.1/images/no-uuid", old)).statusCode).toBe(404);
  });

  it("is read through the Compute API's proxy, up to 2.35", async () => {
    const { id } = (await call("POST", "/image/v2/images", "bob:p", { name: "a", hw_disk_bus: "ide" })).json();
    const shown = await rig.get(`/v2.1/images/${id}`, as("bob:p"));
    expect(shown.json().image).toMatchObject({ id, name: "a", status: "ACTIVE", metadata: { hw_disk_bus: "ide" } });
    const [self, , alternate] = shown.json().image.links;
    expect(alternate).toEqual({
      ...{ rel: "alternate", type: "application/vnd.openstack.image" },
      href: self.href.replace("/v2.1/images/", "/image/v2/images/"),
    });
    const { status, ...found } = (await rig.get(new URL(alternate.href).pathname, as("bob:p"))).json();
    expect([status, found.id]).toEqual(["active", id]);
    expect((await rig.get("/v2.1/images/detail", as("bob:p"))).json().images).toHaveLength(1);
    const newer = { ...as("bob:p"), "openstack-api-version": "compute 2.36" };
    expect((await rig.get(`/v2.1/images/${id}`, newer)).statusCode).toBe(404);
  });
});

describe("the Networking API's ports", () => {
  const network_id = randomUUID();
  it("stores the resources that a port requests from a host", async () => {
    const ask = { resources: { NET_BW_EGR_KILOBIT_PER_SEC: 1000 }, required: ["CUSTOM_PHYSNET_A"] };
    const created = await call("POST", "/network/v2.0/ports", "admin:x", {
      port: { network_id, name: "nic", project_id: "p", resource_request: { request_groups: [ask] } },
    });
    expect(created.statusCode).toBe(201);
    const { port } = created.json();
    expect(port).toMatchObject({
      name: "nic",
      network_id,
      project_id: "p",
      resource_request: { request_groups: [ask] },
    });
    expect((await call("GET", `/network/v2.0/ports/${port.id}`, "bob:p")).json()).toEqual({ port });
    expect((await call("GET", "/network/v2.0/ports", "bob:p")).json()).toEqual({ ports: [port] });
    expect((await call("GET", "/network/v2.0/ports", "eve:q")).json()).toEqual({ ports: [] });
    expect((await call("DELETE", `/network/v2.0/ports/${port.id}`, "eve:q")).statusCode).toBe(404);
    const server = randomUUID();
    await rig.networkPorts.bindPorts([port.id], server, []);
    const inUse = await call("DELETE", `/network/v2.0/ports/${port.id}`, "bob:p");
    expect([inUse.statusCode, inUse.body]).toEqual([409, expect.stringContaining(`attached device ${server}`)]);
    await rig.networkPorts.unbindPorts([port.id], server);
    expect((await call("DELETE", `/network/v2.0/ports/${port.id}`, "bob:p")).statusCode).toBe(204);
    expect((await call("GET", `/network/v2.0/ports/${port.id}`, "bob:p")).statusCode).toBe(404);
  });

  it("accepts a port's resources only from admins, as Neutron does by the port's QoS policy", async () => {
    const port = { network_id, resource_request: { resources: { NET_BW_EGR_KILOBIT_PER_SEC: 1 } } };
    const refused = await call("POST", "/network/v2.0/ports", "bob:p", { port });
    expect([refused.statusCode, refused.body]).toEqual([403, expect.stringContaining("Only admins")]);
    const plain = { network_id, resource_request: null };
    expect((await call("POST", "/network/v2.0/ports", "bob:p", { port: plain })).statusCode).toBe(201);
    expect((await call("POST", "/network/v2.0/ports", "admin:p", { port })).statusCode).toBe(201);
  });

  it.each([
    ["no network", {}],
    [
      "five groups",
      { network_id, resource_request: { request_groups: [1, 2, 3, 4, 5].map((VCPU) => ({ resources: { VCPU } })) } },
    ],
    ["an amount of nothing", { network_id, resource_request: { resources: { NET_BW_EGR_KILOBIT_PER_SEC: 0 } } }],
    ["a class in small letters", { network_id, resource_request: { resources: { bandwidth: 1 } } }],
    [
      "a subtree of other groups",
      {
        network_id,
        resource_request: { request_groups: [{ resources: { VCPU: 1 } }], same_subtree: [randomUUID()] },
      },
    ],
  ])("refuses a port with %s", async (_, port) => {
    expect((await call("POST", "/network/v2.0/ports", "admin:p", { port })).statusCode).toBe(400);
  });
});
