import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ImageDirectory } from "../../../adapters/images/image-directory.ts";
import { makeOwnedDir } from "../../../runtime/owned-dir.ts";
import { tinyQcow2 } from "../../contract/image-service.contract.ts";
import { ApiRig } from "./api-rig.ts";

const GIB = 2 ** 30;
const OWNER = { "x-auth-token": "dora:p", "openstack-api-version": "compute 2.79" };
const ADMIN = { ...OWNER, "x-auth-token": "admin:p" };

let root: string;
let rig: ApiRig;
beforeAll(async () => {
  root = makeOwnedDir("image-sizes");
  mkdirSync(join(root, "images"));
  rig = await ApiRig.start({ auth: "noauth2" }, null, null, new ImageDirectory(join(root, "images")));
  const flavor = { id: "none", name: "none", vcpus: 1, ram: 512, disk: 0 };
  expect((await rig.post("/v2.1/flavors", { flavor }, ADMIN)).statusCode).toBe(200);
});
afterAll(async () => {
  await rig.close();
  rmSync(root, { recursive: true, force: true });
});

/** An image in qcow2 whose guests see a disk of this size. */
async function image(virtualBytes: number): Promise<string> {
  const fields = { name: "image", disk_format: "qcow2", container_format: "bare" };
  const { id } = (await rig.post("/image/v2/images", fields, OWNER)).json();
  const payload = tinyQcow2();
  payload.writeBigUInt64BE(BigInt(virtualBytes), 24);
  const headers = { ...OWNER, "content-type": "application/octet-stream" };
  const answer = await rig.call({ method: "PUT", url: `/image/v2/images/${id}/file`, payload, headers });
  expect(answer.statusCode, answer.body).toBe(204);
  return id;
}

const create = (imageRef: string, flavorRef: string) =>
  rig.post("/v2.1/servers", { server: { name: "web", flavorRef, networks: "none", imageRef } }, ADMIN);

/** An ACTIVE server. */
async function active(imageRef: string, flavorRef: string): Promise<string> {
  const answer = await create(imageRef, flavorRef);
  expect(answer.statusCode, answer.body).toBe(202);
  const { id } = answer.json().server;
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
}
const act = (id: string, body: object) => rig.post(`/v2.1/servers/${id}/action`, body, ADMIN);
const tooSmall = (owner: string, disk: number, bytes: number) =>
  `${owner}'s disk is too small for requested image. ${owner} disk is ${disk} bytes, image is ${bytes} bytes.`;

test("an image with a larger disk than the flavor's makes no server and rebuilds none", async () => {
  const [fits, large] = [await image(GIB), await image(GIB + 512)];
  const words = tooSmall("Flavor", GIB, GIB + 512);
  const answer = await create(large, "1");
  expect([answer.statusCode, answer.json().badRequest?.message]).toEqual([400, words]);
  expect((await create(large, "none")).statusCode).toBe(202);
  const id = await active(fits, "1");
  const rebuilt = await act(id, { rebuild: { imageRef: large } });
  expect([rebuilt.statusCode, rebuilt.json().badRequest?.message]).toEqual([400, words]);
});

test("an image with a larger disk than the server's own rescues no server", async () => {
  const [fits, large] = [await image(GIB), await image(10 * 1_024 * GIB)];
  const id = await active(fits, "1");
  const answer = await act(id, { rescue: { rescue_image_ref: large } });
  expect([answer.statusCode, answer.json().badRequest?.message]).toEqual([
    400,
    tooSmall("Flavor", GIB, 10 * 1_024 * GIB),
  ]);
  expect((await act(id, { rescue: { rescue_image_ref: await image(GIB) } })).statusCode).toBe(200);
});

test("a server of a flavor without a disk is rescued with images up to the size of its own", async () => {
  const own = await image(2 * GIB);
  const id = await active(own, "none");
  const answer = await act(id, { rescue: { rescue_image_ref: await image(2 * GIB + 512) } });
  expect([answer.statusCode, answer.json().badRequest?.message]).toEqual([
    400,
    tooSmall("Server", 2 * GIB, 2 * GIB + 512),
  ]);
  expect((await act(id, { rescue: { rescue_image_ref: await image(2 * GIB) } })).statusCode).toBe(200);
});
