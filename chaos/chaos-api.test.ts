import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ChaosApi } from "./chaos-api.ts";
import { ChaosHistory } from "./chaos-history.ts";
import { noServerTwice } from "./checkers/no-server-twice.ts";

/** Answers each path in its own way. */
const ANSWERS: Readonly<Record<string, readonly [number, string]>> = {
  "POST /v2.1/servers": [202, '{"server": {"id": "a"}}'],
  "GET /v2.1/servers": [200, '{"servers": [{"id": "a"}, {"id": "b"}, {"id": "a"}, {"id": "a"}]}'],
  "GET /v2.1/servers/gone": [404, '{"itemNotFound": {"message": "there is none"}}'],
  "DELETE /v2.1/servers/a": [503, "busy"],
};
let server: Server;
let url = "";

beforeAll(async () => {
  server = createServer((request, response) => {
    const [status, text] = ANSWERS[`${request.method} ${request.url}`] ?? [500, ""];
    if (request.url === "/v2.1/silent") return;
    response.writeHead(status).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function askAll(base: string, timeoutMs = 10_000) {
  const history = new ChaosHistory();
  const api = new ChaosApi({ urls: () => [base], history, timeoutMs });
  const who = "client-1";
  try {
    await api.ask({ who, op: "create", method: "POST", path: "/servers" });
    await api.ask({ who, op: "list", method: "GET", path: "/servers" });
    await api.ask({ who, op: "show", method: "GET", path: "/servers/gone", server: "gone" });
    await api.ask({ who, op: "delete", method: "DELETE", path: "/servers/a", server: "a" });
  } finally {
    await api.close();
  }
  return history.lines();
}

test("each request is recorded with the outcome that its answer means", async () => {
  const lines = await askAll(url);
  expect(lines.filter(({ what }) => what !== "invoke")).toEqual([
    expect.objectContaining({ id: 1, what: "ok", server: "a", status: 202 }),
    expect.objectContaining({ id: 2, what: "ok", status: 200, twice: ["a"] }),
    expect.objectContaining({ id: 3, what: "refused", status: 404, server: "gone" }),
    // The api may have carried out the request before it failed.
    expect.objectContaining({ id: 4, what: "unknown", status: 503 }),
  ]);
  expect(noServerTwice.check(lines)).toMatchObject({ kind: "broken", findings: [{ server: "a" }] });
});

test("an address without a listener is a refusal, and a missing answer is unknown", async () => {
  const history = new ChaosHistory();
  const silent = new ChaosApi({ urls: () => [url], history, timeoutMs: 50 });
  expect(await silent.ask({ who: "client-1", op: "show", method: "GET", path: "/silent" })).toMatchObject({
    ...{ kind: "unknown", status: null },
  });
  await silent.close();
  const nobody = await askAll("http://127.0.0.1:1");
  expect(nobody.filter(({ what }) => what !== "invoke").every(({ what }) => what === "refused")).toBe(true);
});
