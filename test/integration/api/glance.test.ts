import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { neighbourOptions } from "../../../adapters/openstack/neighbour-options.ts";
import { type Neighbours, openNeighbours } from "../../../adapters/openstack/open-neighbours.ts";
import { systemClock } from "../../../runtime/clock.ts";
import { makeOwnedDir } from "../../../runtime/owned-dir.ts";
import { readSettings } from "../../../runtime/settings.ts";
import { KeystoneAuthenticator } from "../../../services/api/identity/keystone-authenticator.ts";
import { keystoneOptions, keystoneSettings } from "../../../services/api/identity/keystone-options.ts";
import { openGlanceParts, refuseBadGlance } from "../../../services/api/image/open-glance.ts";
import { eventually } from "../../rigs/eventually.ts";
import { type FakeGlance, startFakeGlance } from "../../rigs/fake-glance.ts";
import { type FakeKeystone, startFakeKeystone, tokenDocument } from "../../rigs/fake-keystone.ts";
import { ApiRig } from "./api-rig.ts";
import { attachmentCalls } from "./attachment-calls.ts";

let keystone: FakeKeystone;
let glance: FakeGlance;
let neighbours: Neighbours;
let authenticator: KeystoneAuthenticator;
let rig: ApiRig;
let dir: string;

beforeEach(async () => {
  [keystone, glance] = await Promise.all([startFakeKeystone(), startFakeGlance()]);
  keystone.catalog = [{ type: "image", endpoints: [{ interface: "internal", region_id: "one", url: glance.url }] }];
  const declaration = { command: "berth try", about: "", settings: { ...keystoneOptions, ...neighbourOptions } };
  const env = { BERTH_KEYSTONE_URL: keystone.url, BERTH_KEYSTONE_PASSWORD: keystone.password };
  const read = readSettings(declaration, { argv: [], env });
  if (read.kind !== "settings") throw new Error("there are no settings");
  authenticator = new KeystoneAuthenticator(
    { clock: systemClock, shared: null, onLost: () => undefined, onBack: () => undefined },
    keystoneSettings(read.settings),
  );
  neighbours = openNeighbours(read.settings);
  dir = join(makeOwnedDir("glance"), randomUUID());
  mkdirSync(dir);
  const options = { images: "glance", auth: "keystone", imagesPath: dir, glanceUrl: null } as const;
  const parts = openGlanceParts(neighbours, options, randomBytes(32));
  rig = await ApiRig.start(
    { auth: "keystone", imageRule: "glance" },
    undefined,
    authenticator.authenticate,
    null,
    null,
    parts,
  );
  const expiresAtMs = Date.now() + 3_600_000;
  for (const project of ["ann", "bob"])
    keystone.tokens.set(project, tokenDocument({ user: project, project, roles: ["member", "reader"], expiresAtMs }));
  keystone.tokens.set("admin", tokenDocument({ user: "admin", project: "ops", roles: ["admin"], expiresAtMs }));
});
afterEach(async () => {
  await rig.close();
  await neighbours.close();
  await authenticator.close();
  await Promise.all([keystone.close(), glance.close()]);
  rmSync(dir, { recursive: true });
});

const { finish, openTask } = attachmentCalls(() => rig);

const as = (project: string) => ({ "x-auth-token": project, "openstack-api-version": "compute 2.35" });

/** Stores an image of Ann's in Glance. */
async function upload(fields: Readonly<Record<string, unknown>> = {}, bits: string | null = "disk"): Promise<string> {
  const id = randomUUID();
  const image = { id, name: "base", disk_format: "raw", container_format: "bare", visibility: "private", ...fields };
  const headers = { "x-auth-token": "ann", "content-type": "application/octet-stream" };
  await fetch(`${glance.url}/v2/images`, { method: "POST", headers, body: JSON.stringify(image) });
  if (bits !== null) await fetch(`${glance.url}/v2/images/${id}/file`, { method: "PUT", headers, body: bits });
  return id;
}
const create = (imageRef: string, project = "ann") =>
  rig.post("/v2.1/servers", { server: { name: "web", flavorRef: "1", imageRef } }, as(project));

test("a server is scheduled by the properties of its image in Glance, whose data hosts get", async () => {
  const id = await upload({ hw_disk_bus: "virtio", "trait:CUSTOM_X": "required" });
  const answer = await create(id);
  expect(answer.statusCode).toBe(202);
  const [record] = await rig.store.requests([answer.json().server.id]);
  expect(record?.spec).toMatchObject({
    imageRef: id,
    imageProperties: {
      ...{ hw_disk_bus: "virtio", "trait:CUSTOM_X": "required" },
      ...{ os_hash_algo: "sha512", os_hash_value: expect.stringMatching(/^[0-9a-f]{128}$/) },
    },
  });
  const name = `${id}-${record?.spec.imageProperties.os_hash_value?.slice(0, 32)}`;
  await eventually("the file", () => readdirSync(dir).join() === name);
  // The caller was asked for with the caller's own token, and the data with the service's.
  expect(glance.asked.filter((one) => one.startsWith("GET"))).toEqual([
    ...[`GET /v2/images/${id} ann`, `GET /v2/images/${id}/file service`],
  ]);
});

test.each([
  [
    "that does not exist",
    async () => randomUUID(),
    "ann",
    /^Can not find requested image\. Image \S+ could not be found\.$/,
  ],
  ["of another project", () => upload(), "bob", /could not be found/],
  ["without data", () => upload({}, null), "ann", /^Image \S+ is not active\.$/],
  ["that needs more memory", () => upload({ min_ram: 4_096 }), "ann", /memory is too small/],
  ["that needs a larger disk", () => upload({ min_disk: 40 }), "ann", /disk is too small/],
  ["whose kernel is missing", () => upload({ kernel_id: randomUUID() }), "ann", /^Can not find requested image/],
])("no server is made of an image %s", async (_what, image, project, why) => {
  const answer = await create(await image(), project);
  expect([answer.statusCode, answer.json().badRequest?.message]).toEqual([400, expect.stringMatching(why)]);
  // A refused call makes no api fetch the data.
  expect(readdirSync(dir)).toEqual([]);
});

test("a rebuild or rescue that is refused makes no api fetch the data of its image, and one that is accepted does", async () => {
  const [base, other] = [await upload(), await upload()];
  const uuid = await rig.bootActive("north", 0, { imageRef: base }, as("ann"));
  await eventually("the server's image", () => readdirSync(dir).some((name) => name.startsWith(`${base}-`)));
  const act = (body: object) => rig.post(`/v2.1/servers/${uuid}/action`, body, as("ann"));
  const large = { metadata: { key: "x".repeat(300) } };
  expect((await act({ rebuild: { imageRef: other, ...large } })).statusCode).toBe(400);
  expect((await act({ createImage: { name: "busy" } })).statusCode).toBe(202);
  for (const body of [{ rebuild: { imageRef: other } }, { rescue: { rescue_image_ref: other } }])
    expect((await act(body)).statusCode).toBe(409);
  const isFetched = () => readdirSync(dir).some((name) => name.includes(other));
  expect(isFetched()).toBe(false);
  const second = await rig.bootActive("north", 0, { imageRef: base }, as("ann"));
  const rescue = { rescue: { rescue_image_ref: other } };
  expect((await rig.post(`/v2.1/servers/${second}/action`, rescue, as("ann"))).statusCode).toBe(200);
  await eventually("the rescue's image", isFetched);
});

test("the image of an offloaded server is noted when the server is asked to be unshelved, and stays in Glance until that has happened", async () => {
  const uuid = await rig.bootActive("north", 0, { imageRef: await upload() }, as("ann"));
  const act = (action: string, who: string) =>
    rig.post(`/v2.1/servers/${uuid}/action`, { [action]: null }, as(who)).then(({ statusCode }) => statusCode);
  expect(await act("shelve", "ann")).toBe(202);
  await finish(uuid, "succeed");
  expect(await act("shelveOffload", "admin")).toBe(202);
  const imageId = openTask(uuid)?.id ?? "";
  await finish(uuid, "snapshotting", "offloading", "succeed");
  expect(await rig.images.unshelveAsked(null, 10)).toEqual([]);
  expect(await act("unshelve", "ann")).toBe(202);
  expect(await rig.images.unshelveAsked(null, 10)).toMatchObject([{ id: imageId, shelvedServer: uuid }]);
  expect(glance.images.has(imageId)).toBe(true);
});

test("while Glance does not answer, callers are asked to try again", async () => {
  const id = await upload();
  glance.broken = 503;
  const answer = await create(id);
  expect([answer.statusCode, answer.json().serviceUnavailable?.message]).toEqual([
    503,
    expect.stringMatching(/^Glance does not answer as it should/),
  ]);
  expect((await rig.get("/v2.1/images", as("ann"))).statusCode).toBe(503);
});

test("the old proxy shows Glance's images to those who may see them, and the own Image API is not served", async () => {
  const [first, second] = [await upload({ name: "one" }), await upload({ name: "two" }, null)];
  const list = async (url: string, project = "ann") => (await rig.get(url, as(project))).json().images;
  expect((await list("/v2.1/images")).map(({ id }: { id: string }) => id)).toEqual([second, first]);
  expect(await list("/v2.1/images", "bob")).toEqual([]);
  expect((await list(`/v2.1/images/detail?limit=1&marker=${second}`))[0]).toMatchObject({
    ...{ id: first, name: "one", status: "ACTIVE", progress: 100, "OS-EXT-IMG-SIZE:size": 4 },
  });
  const { image } = (await rig.get(`/v2.1/images/${second}`, as("ann"))).json();
  expect(image).toMatchObject({ status: "SAVING" });
  expect(image.links[2]).toEqual({
    ...{ rel: "alternate", type: "application/vnd.openstack.image" },
    href: `${glance.url}/images/${second}`,
  });
  for (const [url, status] of [
    [`/v2.1/images/${first}`, 404],
    [`/v2.1/images?marker=${first}`, 400],
    ["/v2.1/images/no-uuid", 404],
    ["/image/v2/images", 404],
  ] as const)
    expect((await rig.get(url, as("bob"))).statusCode).toBe(status);
});

test("an image of a server is registered in Glance for its caller, without the hash of the server's image", async () => {
  const base = await upload({ hw_disk_bus: "virtio", min_ram: 64 });
  const uuid = await rig.bootActive("north", 0, { imageRef: base }, as("ann"));
  const act = () =>
    rig.post(
      `/v2.1/servers/${uuid}/action`,
      { createImage: { name: "mine", metadata: { purpose: "test" } } },
      as("ann"),
    );
  const answer = await act();
  expect(answer.statusCode).toBe(202);
  const id = answer.headers.location?.split("/").at(-1) ?? "";
  expect(glance.asked.at(-1)).toBe("POST /v2/images ann");
  expect(glance.images.get(id)?.fields).toMatchObject({ name: "mine", owner: "ann", min_disk: 1, min_ram: 64 });
  expect(glance.images.get(id)?.properties).toMatchObject({
    ...{ hw_disk_bus: "virtio", purpose: "test", instance_uuid: uuid, base_image_ref: base, image_type: "snapshot" },
  });
  expect(Object.keys(glance.images.get(id)?.properties ?? {}).filter((name) => name.startsWith("os_"))).toEqual([]);
  // The server is busy, so a second image is not made, and not left in Glance.
  expect((await act()).statusCode).toBe(409);
  expect(glance.images.size).toBe(2);
});

test("Glance needs Keystone and a directory of images", () => {
  const options = { images: "glance", auth: "none", imagesPath: null, glanceUrl: null } as const;
  const faults = [/BERTH_AUTH .*set BERTH_AUTH=keystone/, /BERTH_IMAGES_PATH .* is missing/];
  expect(() => refuseBadGlance(options)).toThrow(
    expect.objectContaining({ faults: faults.map((fault) => expect.stringMatching(fault)) }),
  );
  refuseBadGlance({ ...options, images: "any" });
});

test("an admin's question which images were deleted is answered for the files that apis fetch, and by nobody while Glance is silent", async () => {
  const [kept, gone] = [await upload(), await upload()];
  await fetch(`${glance.url}/v2/images/${gone}`, { method: "DELETE", headers: { "x-auth-token": "ann" } });
  const ask = (token: string) =>
    rig.post("/berth/v1/deleted-images", { ids: [kept, gone, "none"] }, { "x-auth-token": token });
  expect((await ask("admin")).json()).toEqual({ deleted: [gone], fetchedOnly: true });
  expect((await ask("ann")).statusCode).toBe(403);
  glance.broken = 0;
  expect((await ask("admin")).statusCode).toBe(503);
});

test("the images of an aggregate are looked up at most four at a time, and the first one in the request's order that cannot be used is named", async () => {
  const ids = await Promise.all(Array.from({ length: 9 }, () => upload()));
  const aggregate = (await rig.post("/v2.1/os-aggregates", { aggregate: { name: "a" } }, as("admin"))).json().aggregate;
  const cache = (images: readonly string[]) =>
    rig.post(
      `/v2.1/os-aggregates/${aggregate.id}/images`,
      { cache: images.map((id) => ({ id })) },
      { ...as("admin"), "openstack-api-version": "compute 2.81" },
    );
  glance.countLookUps();
  expect((await cache(ids)).statusCode).toBe(202);
  expect(glance.lookUpsMax).toBe(4);
  const [missing, other] = [randomUUID(), randomUUID()];
  const refused = await cache([ids[0] ?? "", missing, other]);
  expect([refused.statusCode, refused.json().badRequest.message]).toEqual([
    400,
    `Image ${missing} could not be found.`,
  ]);
});
