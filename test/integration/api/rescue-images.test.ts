import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
});
afterAll(() => rig.close());

const OWNER = "dora:p";
const STRANGER = "eve:q";
const as = (token: string) => ({ "x-auth-token": token, "openstack-api-version": "compute 2.96" });

async function imageOf(token: string, fields: object = {}): Promise<string> {
  const image = await rig.post("/image/v2/images", { name: "image", disk_format: "raw", ...fields }, as(token));
  expect(image.statusCode, image.body).toBe(201);
  return image.json().id;
}

/** An ACTIVE server of the owner. */
async function active(imageRef: string): Promise<string> {
  const server = { name: "web", flavorRef: "1", networks: "none", imageRef };
  const { id } = (await rig.post("/v2.1/servers", { server }, as(OWNER))).json().server;
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
}

const rescue = (id: string, value: object | null = null) =>
  rig.post(`/v2.1/servers/${id}/action`, { rescue: value }, as(OWNER));

/** The image of the rescue that has begun, as the cell knows it. */
async function rescuedWith(id: string) {
  // The boot and the rescue can be of the same millisecond, so the order of the tasks does not tell which one is the rescue.
  const works = (await rig.cell("north").store.tasksOf(id)).map(({ task }) => task.work);
  const rescue = works.find((work) => work?.$case === "operate" && work.value.kind === "rescue");
  return rescue?.$case === "operate" ? rescue.value.rescueImage : undefined;
}

test("a server is rescued with the image of which its own image was made", async () => {
  const base = await imageOf(OWNER, { hw_disk_bus: "virtio" });
  const id = await active(await imageOf(OWNER, { base_image_ref: base }));
  const answer = await rescue(id);
  expect([answer.statusCode, answer.json()]).toEqual([200, { adminPass: expect.stringMatching(/^\w{12}$/) }]);
  const imageProperties = expect.objectContaining({ hw_disk_bus: "virtio", disk_format: "raw" });
  expect(await rescuedWith(id)).toEqual({ imageRef: base, imageProperties });
  const { server } = (await rig.get(`/v2.1/servers/${id}`, as(OWNER))).json();
  expect(server).toMatchObject({ status: "ACTIVE", "OS-EXT-STS:task_state": "rescuing" });
});

test.each(["deleted", "another project's"])(
  "a base image that is %s is replaced by the server's own image",
  async (what) => {
    const base = await imageOf(what === "deleted" ? OWNER : STRANGER, { visibility: "private" });
    const own = await imageOf(OWNER, { base_image_ref: base });
    const id = await active(own);
    if (what === "deleted") await rig.delete(`/image/v2/images/${base}`, as(OWNER));
    expect((await rescue(id)).statusCode).toBe(200);
    expect(await rescuedWith(id)).toMatchObject({ imageRef: own, imageProperties: { base_image_ref: base } });
  },
);

test("a server is rescued with the image that the call names, in any spelling, and with the password that it gives", async () => {
  const [own, other] = [await imageOf(OWNER), await imageOf(OWNER)];
  const id = await active(own);
  const answer = await rescue(id, { rescue_image_ref: other.toUpperCase(), adminPass: "secret" });
  expect([answer.statusCode, answer.json()]).toEqual([200, { adminPass: "secret" }]);
  expect(await rescuedWith(id)).toMatchObject({ imageRef: other });
});

test("a rescue is refused with an image that is gone or hidden, without an image, and with wrong fields", async () => {
  const own = await imageOf(OWNER);
  const gone = await imageOf(OWNER);
  await rig.delete(`/image/v2/images/${gone}`, as(OWNER));
  const hidden = await imageOf(STRANGER, { visibility: "private" });
  const withHiddenKernel = await imageOf(OWNER, { kernel_id: hidden });
  const [id, without] = [await active(own), await active("")];
  const unusable = (image: string) => `Requested rescue image '${image}' is not supported`;
  for (const [server, value, why] of [
    [without, null, `Instance ${without} cannot be rescued`],
    [id, { rescue_image_ref: gone }, unusable(gone)],
    [id, { rescue_image_ref: hidden }, unusable(hidden)],
    [id, { rescue_image_ref: withHiddenKernel }, unusable(withHiddenKernel)],
    [id, { rescue_image_ref: "debian" }, "'debian' is not a 'uuid'"],
    [id, { rescue_image_ref: null }, "rescue_image_ref"],
    [id, { adminPass: 5 }, "adminPass"],
    [id, { image: own }, "Additional properties are not allowed"],
  ] as const) {
    const { statusCode, body } = await rescue(server, value);
    expect([statusCode, body]).toEqual([400, expect.stringContaining(why)]);
    expect(await rescuedWith(server)).toBeUndefined();
  }
  expect((await rescue(randomUUID())).statusCode).toBe(404);
  expect((await rig.post(`/v2.1/servers/${id}/action`, { unrescue: null }, as(OWNER))).statusCode).toBe(409);
});
