import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../runtime/clock.ts";
import { type FakeKeystone, passwordOf, startFakeKeystone } from "../../test/rigs/fake-keystone.ts";
import { KeystoneSession, type ServiceCredentials } from "./keystone-session.ts";
import { NeighbourClient, type NeighbourSettings } from "./neighbour-client.ts";

interface Heard {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

let keystone: FakeKeystone;
let server: Server;
let heard: Heard[];
let reply: (response: ServerResponse, count: number) => void;
let sessions: KeystoneSession[];
let clients: NeighbourClient[];
let url: string;

beforeEach(async () => {
  keystone = await startFakeKeystone();
  [heard, sessions, clients] = [[], [], []];
  reply = (response) => response.end("{}");
  server = createServer(async (request, response) => {
    const body = (await request.toArray()).join("");
    heard.push({ method: request.method, url: request.url, headers: request.headers, body });
    reply(response, heard.length);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  keystone.catalog = [
    {
      type: "image",
      name: "glance",
      endpoints: [
        { interface: "public", region_id: "two", region: "two", url: "http://public.invalid" },
        { interface: "internal", region_id: "one", region: "one", url: "http://one.invalid" },
        { interface: "internal", region_id: "two", region: "two", url: `${url}/` },
      ],
    },
  ];
});
afterEach(async () => {
  for (const one of [...clients, ...sessions]) await one.close();
  await keystone.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const SECRET = passwordOf("placement", "secret");

function open(settings: Partial<NeighbourSettings> = {}, credentials: ServiceCredentials = SECRET): NeighbourClient {
  const keystoneSettings = { url: keystone.url, credentials, timeoutMs: 5_000, triesMax: 1 };
  const session = new KeystoneSession({ clock: systemClock }, keystoneSettings, { catalogue: true });
  const client = new NeighbourClient(
    { session, clock: systemClock },
    {
      ...{ service: "Glance", types: ["picture", "image"], interface: "internal", region: "two", url: null },
      ...{ timeoutMs: 5_000, triesMax: 2, ...settings },
    },
  );
  sessions.push(session);
  clients.push(client);
  return client;
}

const GET = { method: "GET", path: "/v2/images", callerToken: null, requestId: null, expect: [200] } as const;

describe("a call", () => {
  test("goes to the endpoint of the catalogue with the service's token and the id of the request", async () => {
    reply = (response) => response.end('{"images":[]}');
    const client = open();
    const asked = { ...GET, requestId: "req-1", headers: { "openstack-api-version": "volume 3.27" } };
    expect((await client.call(asked)).body).toEqual({ images: [] });
    await client.call({ ...GET, method: "PATCH", body: [1], contentType: "text/x" });
    expect(heard[0]).toMatchObject({
      ...{ method: "GET", url: "/v2/images" },
      headers: {
        ...{ "x-auth-token": keystone.serviceToken, "x-openstack-request-id": "req-1" },
        "openstack-api-version": "volume 3.27",
      },
    });
    expect(heard[0]?.headers).not.toHaveProperty("x-service-token");
    expect(heard[1]).toMatchObject({ method: "PATCH", body: "[1]", headers: { "content-type": "text/x" } });
    expect(keystone.asked).toEqual(["login"]);
  });

  test("in a caller's name has the caller's token, and the service's beside it", async () => {
    await open().call({ ...GET, callerToken: "of ann" });
    expect(heard[0]?.headers).toMatchObject({ "x-auth-token": "of ann", "x-service-token": keystone.serviceToken });
  });

  test("is made with a new token when the present one is refused, once", async () => {
    reply = (response, count) => response.writeHead(count === 1 ? 401 : 200).end("{}");
    await open().call(GET);
    expect(heard.map((one) => one.headers["x-auth-token"])).toEqual(["service-token-1", "service-token-2"]);
    reply = (response) => response.writeHead(401).end("{}");
    await expect(open().call(GET)).rejects.toMatchObject({ code: "refused", status: 401 });
    expect(heard).toHaveLength(4);
  });

  test("is made with a new token when the present one expires soon", async () => {
    const client = open();
    keystone.loginLifeMs = 59_000;
    await client.call(GET);
    keystone.loginLifeMs = 3_600_000;
    await client.call(GET);
    await client.call(GET);
    expect(heard.map((one) => one.headers["x-auth-token"])).toEqual([1, 2, 2].map((n) => `service-token-${n}`));
  });

  test("is made with an application credential, or at a given address", async () => {
    const credentials = { kind: "application-credential", id: "credential", secret: "secret" } as const;
    await open({ url: `${url}/given/`, region: "none" }, credentials).call(GET);
    expect(heard[0]?.url).toBe("/given/v2/images");
  });

  test("is refused with a hint when the catalogue has no endpoint, and when Keystone does not let the service in", async () => {
    await expect(open({ region: "three" }).call(GET)).rejects.toMatchObject({
      code: "bad-answer",
      message: expect.stringMatching(/no internal endpoint of type picture or image in the region three: register one/),
    });
    const wrong = open({}, passwordOf("placement", "wrong"));
    await expect(wrong.call(GET)).rejects.toMatchObject({
      code: "refused",
      message: expect.not.stringMatching(/wrong/),
    });
    expect(heard).toEqual([]);
  });
});

describe("an error", () => {
  test.each([
    [400, '{"badRequest":{"code":400,"message":"bad  size"}}', "invalid", "bad size", null],
    [
      403,
      "<html><head><title>403</title></head><body><h1>403 Forbidden</h1>no</body></html>",
      "refused",
      "403 Forbidden no",
      null,
    ],
    [404, "", "not-found", null, null],
    [
      409,
      '{"NeutronError":{"type":"OverQuota","message":"no more","detail":""}}',
      "over-quota",
      "no more",
      "OverQuota",
    ],
    [409, '{"conflictingRequest":{"code":409,"message":"in use"}}', "conflict", "in use", null],
    [413, '{"overLimit":{"code":413,"message":"VolumeLimitExceeded"}}', "over-quota", "VolumeLimitExceeded", null],
    [204, "", "bad-answer", null, null],
  ])("%s %s is %s", async (status, body, code, explanation, type) => {
    reply = (response) => response.writeHead(status).end(body);
    await expect(open().call(GET)).rejects.toMatchObject({ code, status, explanation, type, service: "Glance" });
    expect(heard).toHaveLength(1);
  });

  test("of a service that is down is reported after some tries, if the call may be repeated", async () => {
    reply = (response) => response.writeHead(503).end();
    const client = open();
    await expect(client.call(GET)).rejects.toMatchObject({ code: "unreachable", status: 503 });
    expect(heard).toHaveLength(2);
    reply = (response) => response.destroy();
    await expect(client.call({ ...GET, method: "POST", body: {} })).rejects.toMatchObject({
      code: "unreachable",
      status: null,
    });
    expect(heard).toHaveLength(3);
  });

  test("is told when the service is silent, sends too much, or no JSON", async () => {
    reply = () => undefined;
    await expect(open({ timeoutMs: 50, triesMax: 1 }).call(GET)).rejects.toMatchObject({ code: "unreachable" });
    reply = (response) => response.end("<html>");
    await expect(open().call(GET)).rejects.toMatchObject({ code: "bad-answer" });
    reply = (response) => response.end(Buffer.alloc((16 << 20) + 1, " "));
    await expect(open().call(GET)).rejects.toMatchObject({ code: "bad-answer", message: /too large/ });
  });
});

describe("a stream", () => {
  test("is downloaded and uploaded", async () => {
    reply = (response) => response.end("bits");
    const client = open();
    const answer = await client.download({ ...GET, callerToken: "of ann" });
    expect((await buffer(answer.body)).toString()).toBe("bits");
    reply = (response, count) => response.writeHead(count === 2 ? 401 : 204).end();
    const call = { ...GET, method: "PUT", contentType: "application/octet-stream", expect: [204] } as const;
    await client.upload(call, () => Readable.from([Buffer.from("more "), Buffer.from("bits")]));
    expect(heard.slice(1).map(({ body }) => body)).toEqual(["more bits", "more bits"]);
  });

  test("that is refused or breaks off is an error", async () => {
    reply = (response) => response.writeHead(404).end("No image found");
    await expect(open().download(GET)).rejects.toMatchObject({ code: "not-found", explanation: "No image found" });
    reply = (response) => response.writeHead(413).end();
    const call = { ...GET, method: "PUT", expect: [204] } as const;
    const bits = () => Readable.from([Buffer.from("bits")]);
    await expect(open().upload(call, bits)).rejects.toMatchObject({ code: "over-quota" });
    const broken = () =>
      new Readable({
        read() {
          this.destroy(new Error("the file is gone"));
        },
      });
    await expect(open().upload(call, broken)).rejects.toMatchObject({ code: "unreachable" });
  });
});
