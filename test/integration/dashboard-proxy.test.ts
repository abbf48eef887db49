import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ServiceProcess } from "../../chaos/local/service-process.ts";
import { runDashboardCommand } from "../../cli/operators/dashboard.ts";
import { DashboardProxy } from "../../cli/operators/dashboard-proxy.ts";
import { readLiveEvents } from "../../services/api/dashboard/read-live-events.ts";
import { eventually } from "../rigs/eventually.ts";
import { ApiRig } from "./api/api-rig.ts";

let rig: ApiRig;
let apiUrl: string;
let proxy: DashboardProxy;
let address: string;
let origin: string;
let cookie: string;

beforeAll(async () => {
  rig = await ApiRig.start({ dashboard: true, auth: "noauth2" });
  apiUrl = `http://127.0.0.1:${rig.api.address.port}`;
  proxy = new DashboardProxy({ apiUrl, token: "admin", port: 0 });
  address = await proxy.start();
  origin = new URL(address).origin;
});
afterAll(async () => {
  await proxy?.close();
  await rig?.close();
});
beforeEach(async () => {
  cookie = (await open(address)).cookie;
});

async function open(url: string) {
  const answer = await fetch(url, { redirect: "manual" });
  const given = answer.headers.get("set-cookie") ?? "";
  return { status: answer.status, location: answer.headers.get("location"), given, cookie: given.split(";")[0] ?? "" };
}
const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${origin}${path}`, { headers: { cookie, ...headers } });
const jsonOf = async <Content>(answer: Promise<Response>): Promise<Content> => (await (await answer).json()) as Content;

describe("berth dashboard", () => {
  test("its address leads to the api's own page, whose calls get the token", async () => {
    expect(await open(address)).toMatchObject({ status: 303, location: "/dashboard" });
    expect((await open(address)).given).toMatch(/^berth-dashboard-\d+=[\w-]{32}; HttpOnly; SameSite=Strict; Path=\/$/);
    const [own, direct] = await Promise.all([get("/dashboard"), fetch(`${apiUrl}/dashboard`)]);
    expect([own.status, await own.text()]).toEqual([direct.status, await direct.text()]);
    expect(own.headers.get("content-security-policy")).toBe(direct.headers.get("content-security-policy"));
    expect((await fetch(`${apiUrl}/berth/v1/live/picture`)).status).toBe(401);
    const picture = await jsonOf<{ hosts: object[] }>(get("/berth/v1/live/picture"));
    expect(picture.hosts).toHaveLength(6);
  });

  test("a token that the page's user enters counts instead", async () => {
    expect((await get("/berth/v1/live/picture", { "x-auth-token": "ann:blue" })).status).toBe(403);
  });

  test("bodies and query strings are passed", async () => {
    const body = JSON.stringify({ flavor: { id: "s", name: "s", vcpus: 1, ram: 512, disk: 1 } });
    const headers = { cookie, "content-type": "application/json" };
    expect((await fetch(`${origin}/v2.1/flavors`, { method: "POST", headers, body })).status).toBe(200);
    const flavorsOf = async (query: string) =>
      (await jsonOf<{ flavors: object[] }>(get(`/v2.1/flavors${query}`))).flavors;
    expect(await flavorsOf("")).toContainEqual(expect.objectContaining({ id: "s" }));
    expect([(await flavorsOf("")).length > 1, (await flavorsOf("?limit=1")).length]).toEqual([true, 1]);
  });

  test("the stream goes through, and ends at the api when the page is closed", async () => {
    const ending = new AbortController();
    const answer = await fetch(`${origin}/berth/v1/live`, { headers: { cookie }, signal: ending.signal });
    for await (const event of readLiveEvents(answer.body as ReadableStream<Uint8Array>)) {
      expect(event.kind).toBe("picture");
      break;
    }
    ending.abort();
    const server = rig.api.http.server;
    const connections = () => new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
    server.closeIdleConnections();
    await eventually("the api has no connection that is in use", async () => {
      server.closeIdleConnections();
      return (await connections()) === 0;
    });
  });
});

describe("a caller without the token's rights", () => {
  test("is refused without the key, with another one, and from another page of the same browser", async () => {
    const other = cookie.replace(/=.*/, `=${"A".repeat(32)}`);
    const elsewhere = { cookie, origin: "http://127.0.0.1:1" };
    for (const headers of [{}, { cookie: other }, { cookie, "sec-fetch-site": "same-site" }, elsewhere])
      expect((await fetch(`${origin}/berth/v1/live/picture`, { headers })).status).toBe(403);
    expect(await open(`${origin}/?key=${"A".repeat(32)}`)).toMatchObject({ status: 403, given: "" });
    expect((await fetch(`${origin}/dashboard`)).status).toBe(403);
  });

  test("reaches only the paths of the api that the page calls, in any spelling", async () => {
    for (const path of [
      "/metrics",
      "/v2.1/../metrics",
      "/v2.1/%2e%2e/metrics",
      "/placement/resource_providers",
      "//x/v2.1/",
    ])
      expect([path, (await get(path)).status]).toEqual([path, 404]);
    const preflight = await fetch(`${origin}/v2.1/flavors`, { method: "OPTIONS", headers: { cookie } });
    expect(preflight.status).toBe(404);
  });
});

test("the api gets no cookie, and an api that does not answer is reported to the page in the form of a fault", async () => {
  const seen: (string | undefined)[] = [];
  const api = createServer((call, answer) => {
    seen.push(call.headers.cookie, call.headers["x-auth-token"] as string);
    answer.setHeader("set-cookie", "a=b");
    answer.end("{}");
  });
  await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
  const beside = new DashboardProxy({ apiUrl: url, token: "secret", port: 0 });
  try {
    const opened = await open(await beside.start());
    const own = opened.given.replace(/^berth-dashboard-(\d+)=.*/, "http://127.0.0.1:$1/v2.1/servers");
    const answer = await fetch(own, { headers: { cookie: opened.cookie } });
    expect([answer.status, answer.headers.get("set-cookie"), seen]).toEqual([200, null, [undefined, "secret"]]);
    api.closeAllConnections();
    await new Promise((resolve) => api.close(resolve));
    const gone = await jsonOf(fetch(own, { headers: { cookie: opened.cookie } }));
    const message = expect.stringMatching(/^The api at http:\/\/127\.0\.0\.1:\d+ does not answer: /);
    expect(gone).toEqual({ dashboard: { code: 502, message } });
  } finally {
    await beside.close();
  }
});

test("the command prints the address, serves until it is told to end, and names an api without a dashboard", async () => {
  const command = new ServiceProcess({
    name: "dashboard",
    argv: ["dashboard", "--api", apiUrl],
    env: () => ({ BERTH_TOKEN: "admin" }),
  });
  const printed = await command.start();
  expect(printed).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?key=/);
  expect(await open(printed)).toMatchObject({ status: 303 });
  expect(await command.stop()).toBe("exit code 0");
  const plain = await ApiRig.start({});
  try {
    const words = ["--api", `http://127.0.0.1:${plain.api.address.port}`];
    await expect(runDashboardCommand(words)).rejects.toThrow(/serves no dashboard: start it with BERTH_DASHBOARD=true/);
  } finally {
    await plain.close();
  }
});
