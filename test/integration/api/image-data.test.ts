import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ImageDirectory } from "../../../adapters/images/image-directory.ts";
import { makeOwnedDir } from "../../../runtime/owned-dir.ts";
import { DEFAULT_API_SETTINGS } from "../../../services/api/settings.ts";
import { ALL_PATHS } from "../../rigs/api-paths.ts";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

const BITS = Buffer.alloc(300_000, "guest");
const SHA512 = createHash("sha512").update(BITS).digest("hex");
const MD5 = createHash("md5").update(BITS).digest("hex");
const OWNER = { "x-auth-token": "bob:p" };

let root: string;
let dir: string;
let rig: ApiRig;
beforeEach(async () => {
  root = makeOwnedDir("image-data");
  dir = join(root, "images");
  mkdirSync(dir);
  rig = await ApiRig.start({ auth: "noauth2", imageBytesMax: 400_000 }, null, null, new ImageDirectory(dir));
});
afterEach(async () => {
  await rig.close();
  rmSync(root, { recursive: true, force: true });
});

async function created(fields: object = {}): Promise<string> {
  const body = { name: "web", disk_format: "raw", container_format: "bare", ...fields };
  const answer = await rig.post("/image/v2/images", body, OWNER);
  expect([answer.statusCode, answer.json().status]).toEqual([201, "queued"]);
  return answer.json().id;
}
const upload = (id: string, payload: Buffer = BITS, headers: Record<string, string> = {}) =>
  rig.call({
    ...{ method: "PUT", url: `/image/v2/images/${id}/file`, payload },
    headers: { ...OWNER, "content-type": "application/octet-stream", ...headers },
  });
const download = (id: string, headers: Record<string, string> = OWNER) =>
  rig.get(`/image/v2/images/${id}/file`, headers);
const show = async (id: string) => (await rig.get(`/image/v2/images/${id}`, OWNER)).json();

/** Sends the beginning of an upload of a length. */
function begin(id: string, length: number) {
  const { port } = rig.api.http.server.address() as AddressInfo;
  const headers = { ...OWNER, "content-type": "application/octet-stream", "content-length": length };
  const client = httpRequest({
    ...{ host: "127.0.0.1", port, method: "PUT", path: `/image/v2/images/${id}/file` },
    headers,
  });
  const answered = new Promise<{ status: number; headers: object } | null>((resolve) => {
    client.on("response", ({ statusCode = 0, headers }) => resolve({ status: statusCode, headers }));
    client.on("error", () => resolve(null));
  });
  client.write(BITS.subarray(0, 1_000));
  return { client, answered };
}

describe("the data of an image", () => {
  test("makes it active, with the size and the hashes, and can be downloaded", async () => {
    const id = await created();
    expect((await download(id)).statusCode).toBe(204);
    const { statusCode, body } = await upload(id);
    expect([statusCode, body]).toEqual([204, ""]);
    expect(await show(id)).toMatchObject({
      ...{ status: "active", size: 300_000, virtual_size: null, checksum: MD5 },
      ...{ os_hash_algo: "sha512", os_hash_value: SHA512 },
    });
    const answer = await download(id);
    expect([answer.statusCode, answer.rawPayload.equals(BITS)]).toEqual([200, true]);
    expect(answer.headers).toMatchObject({
      ...{ "content-type": "application/octet-stream", "content-length": "300000", "content-md5": MD5 },
    });
  });

  test("boots servers, whose hosts are told the hash; before, the image is refused", async () => {
    const id = await created();
    const boot = () => rig.post("/v2.1/servers", { server: { name: "web", flavorRef: "1", imageRef: id } }, OWNER);
    const early = await boot();
    expect([early.statusCode, early.body]).toEqual([400, expect.stringContaining(`Image ${id} is not active.`)]);
    await upload(id);
    const answer = await boot();
    expect(answer.statusCode, answer.body).toBe(202);
    const [record] = await rig.store.requests([answer.json().server.id]);
    const hash = { os_hash_algo: "sha512", os_hash_value: SHA512 };
    expect(record?.spec.imageProperties).toMatchObject({ disk_format: "raw", ...hash });
  });

  test("is uploaded once: of two uploads at the same time one counts, and the other leaves no file", async () => {
    const id = await created();
    const other = Buffer.alloc(1_000, "other");
    const answers = await Promise.all([upload(id), upload(id, other)]);
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([204, 409]);
    const { os_hash_value: sha512 } = await show(id);
    const winner = answers[0]?.statusCode === 204 ? BITS : other;
    expect(sha512).toBe(createHash("sha512").update(winner).digest("hex"));
    expect((await download(id)).rawPayload.equals(winner)).toBe(true);
    expect(readdirSync(dir)).toHaveLength(1);
    expect((await upload(id)).statusCode).toBe(409);
    expect(readdirSync(dir)).toHaveLength(1);
  });

  test("is uploaded twice with the same bits at the same time without losing them", async () => {
    const id = await created();
    const answers = await Promise.all([upload(id), upload(id)]);
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([204, 409]);
    expect((await download(id)).rawPayload.equals(BITS)).toBe(true);
  });

  test.each([
    ["is too large", {}, Buffer.alloc(400_001), {}, 413],
    ["is empty", {}, Buffer.alloc(0), {}, 400],
    ["has another format than declared", { disk_format: "qcow2" }, BITS, {}, 400],
    ["is JSON", {}, Buffer.from("{}"), { "content-type": "application/json" }, 415],
    ["is for an image without formats", { container_format: null }, BITS, {}, 400],
  ])("that %s is refused, and can be uploaded again", async (_what, fields, bits, headers, status) => {
    const id = await created(fields);
    expect((await upload(id, bits, headers)).statusCode).toBe(status);
    expect([(await show(id)).status, readdirSync(dir)]).toEqual(["queued", []]);
  });

  test("is neither written nor read by another project, and not written to a public image", async () => {
    const id = await created();
    const eve = { "x-auth-token": "eve:q" };
    expect((await upload(id, BITS, eve)).statusCode).toBe(404);
    await upload(id);
    expect((await download(id, eve)).statusCode).toBe(404);
    const open = await rig.post(
      "/image/v2/images",
      { visibility: "public", disk_format: "raw", container_format: "bare" },
      { "x-auth-token": "admin:x" },
    );
    expect((await upload(open.json().id, BITS, eve)).statusCode).toBe(403);
    expect((await upload(randomUUID())).statusCode).toBe(404);
    expect((await rig.call({ method: "PUT", url: `/image/v2/images/${id}/file`, payload: BITS })).statusCode).toBe(401);
  });

  test("keeps its formats afterwards, and other changes keep the data", async () => {
    const id = await created();
    const patch = (path: string, value: string) =>
      rig.call({
        ...{ method: "PATCH", url: `/image/v2/images/${id}` },
        headers: { ...OWNER, "content-type": "application/openstack-images-v2.1-json-patch" },
        payload: JSON.stringify([{ op: "replace", path, value }]),
      });
    expect((await patch("/disk_format", "raw")).statusCode).toBe(200);
    await upload(id);
    expect((await patch("/disk_format", "qcow2")).statusCode).toBe(403);
    expect((await patch("/name", "other")).json()).toMatchObject({ name: "other", os_hash_value: SHA512 });
  });

  test("of an upload whose client goes away leaves nothing, and can be uploaded again", async () => {
    const id = await created();
    const { port } = rig.api.http.server.address() as AddressInfo;
    const client = httpRequest({
      ...{ host: "127.0.0.1", port, method: "PUT", path: `/image/v2/images/${id}/file` },
      headers: { ...OWNER, "content-type": "application/octet-stream", "content-length": "300000" },
    });
    client.on("error", () => {});
    client.write(BITS.subarray(0, 100_000));
    await eventually("the upload begins", () => readdirSync(dir).length === 1);
    client.destroy();
    await eventually("the upload is removed", () => readdirSync(dir).length === 0);
    expect((await show(id)).status).toBe("queued");
    expect((await upload(id)).statusCode).toBe(204);
  });

  test("is not begun when its size is announced as too large, and the rest of it is not awaited", async () => {
    const id = await created();
    const { answered } = begin(id, 400_001);
    expect(await answered).toMatchObject({ status: 413, headers: { connection: "close" } });
    expect(readdirSync(dir)).toEqual([]);
  });

  test("has two uploads under way at most, and a project has eight", async () => {
    const ids = await Promise.all([created(), created(), created(), created(), created()]);
    const under = ids.slice(0, 4).flatMap((id) => [begin(id, 300_000), begin(id, 300_000)]);
    await eventually("all uploads begin", () => readdirSync(dir).length === 8);
    for (const id of [ids[0] ?? "", ids[4] ?? ""]) {
      const refused = await upload(id);
      expect([refused.statusCode, refused.body]).toEqual([429, expect.stringMatching(/uploads under way/)]);
    }
    for (const { client } of under) client.destroy();
    await eventually("the uploads are removed", () => readdirSync(dir).length === 0);
    expect((await upload(ids[0] ?? "")).statusCode).toBe(204);
  });

  test("is broken off when the api is stopped, in both directions", async () => {
    await rig.close();
    rig = await ApiRig.start({ auth: "noauth2" }, null, null, new ImageDirectory(dir));
    const [id, large] = [await created(), await created()];
    // More than the buffers of a connection hold.
    expect((await upload(large, Buffer.alloc(50_000_000))).statusCode).toBe(204);
    const { answered } = begin(id, 300_000);
    const { port } = rig.api.http.server.address() as AddressInfo;
    const download = httpRequest({ host: "127.0.0.1", port, path: `/image/v2/images/${large}/file`, headers: OWNER });
    const begun = new Promise<IncomingMessage>((resolve) => download.end().once("response", resolve));
    const answer = await begun;
    const ended = new Promise((resolve) => answer.once("error", resolve));
    await eventually("the upload begins", () => readdirSync(dir).length === 2);
    await rig.api.close();
    expect(await answered).toMatchObject({ status: 503 });
    answer.resume();
    expect(await ended).toMatchObject({ code: "ECONNRESET" });
  });

  test("is not read for HEAD", async () => {
    await rig.close();
    rig = await ApiRig.start({ auth: "noauth2", ...ALL_PATHS }, null, null, new ImageDirectory(dir));
    const id = await created();
    await upload(id);
    const answer = await rig.call({ method: "HEAD", url: `/image/v2/images/${id}/file`, headers: OWNER });
    expect([answer.statusCode, answer.headers["allow"]]).toEqual([405, expect.not.stringContaining("HEAD")]);
  });

  test("may take longer to come than a request may take, and no other request may", async () => {
    const id = await created();
    const { server } = rig.api.http;
    const sockets: Socket[] = [];
    server.on("connection", (socket) => sockets.push(socket));
    const { port } = server.address() as AddressInfo;
    const begin = (path: string, type: string, length: number) => {
      const headers = { ...OWNER, "content-type": type, "content-length": length };
      const client = httpRequest({ host: "127.0.0.1", port, method: "PUT", path, headers });
      const answered = new Promise<number>((resolve) => {
        client.on("response", ({ statusCode = 0 }) => resolve(statusCode));
        client.on("error", () => resolve(0));
      });
      client.write(BITS.subarray(0, length / 2));
      return { client, answered };
    };
    /** Says, as Node does, that the request of a connection took too long. */
    const tooLong = (socket: Socket | undefined) =>
      server.emit("clientError", Object.assign(new Error("timeout"), { code: "ERR_HTTP_REQUEST_TIMEOUT" }), socket);

    const slow = begin(`/image/v2/images/${id}/file`, "application/octet-stream", 300_000);
    await eventually("the upload begins", () => readdirSync(dir).length === 1);
    tooLong(sockets[0]);
    slow.client.end(BITS.subarray(150_000));
    expect(await slow.answered).toBe(204);
    slow.client.destroy();

    const other = begin("/v2.1/os-quota-sets/p", "application/json", 1_000);
    await eventually("the second connection", () => sockets.length === 2);
    tooLong(sockets[1]);
    expect(await other.answered).toBe(408);
  });
});

test("an upload that is refused leaves nothing that breaks off later", async () => {
  const brief = { ...DEFAULT_API_SETTINGS.http, requestTimeoutMs: 500 };
  const quick = await ApiRig.start({ auth: "noauth2", http: brief }, null, null, new ImageDirectory(dir));
  const breaks: unknown[] = [];
  const note = (error: unknown) => breaks.push(error);
  process.on("uncaughtExceptionMonitor", note);
  try {
    const body = { disk_format: "raw", container_format: "bare" };
    const { id } = (await quick.post("/image/v2/images", body, OWNER)).json();
    const send = () =>
      quick.call({
        ...{ method: "PUT", url: `/image/v2/images/${id}/file`, payload: BITS },
        headers: { ...OWNER, "content-type": "application/octet-stream" },
      });
    expect((await send()).statusCode).toBe(204);
    const refused = await send();
    expect([refused.statusCode, refused.headers.connection]).toEqual([409, "close"]);
    const atMs = performance.now();
    await eventually("the time after which a silent upload is broken off", () => performance.now() - atMs > 1_000);
    expect(breaks).toEqual([]);
  } finally {
    process.off("uncaughtExceptionMonitor", note);
    await quick.close();
  }
});

test("an api without a directory makes images active at once, and says that it stores no data", async () => {
  const without = await ApiRig.start({ auth: "noauth2" });
  try {
    const { id, status } = (await without.post("/image/v2/images", { disk_format: "raw" }, OWNER)).json();
    expect(status).toBe("active");
    for (const method of ["PUT", "GET"] as const) {
      const headers = { ...OWNER, ...(method === "PUT" && { "content-type": "application/octet-stream" }) };
      const answer = await without.call({
        ...{ method, url: `/image/v2/images/${id}/file`, headers },
        ...(method === "PUT" && { payload: BITS }),
      });
      expect([answer.statusCode, answer.body]).toEqual([409, expect.stringContaining("--images-path")]);
    }
  } finally {
    await without.close();
  }
});
